"""What a command prints, where that can be known without running it.

`echo 'rm -rf /' | sh` and `echo cm0gLXJmIC8K | base64 -d | sh` say what the shell will get. Only literal text goes
in, so only commands that make text from text are here; for every other one the answer is None.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Callable, Sequence

from callwright.agent.policy.words import Stream, Word

__all__ = ["output_of"]


def output_of(argv: Sequence[Word], stdin: Stream | None) -> str | None:
    """What it prints, with `UNKNOWN` in it where its words or what it reads have that."""
    if not argv:
        return ""
    words = [word.text for word in argv[1:]]
    text = stdin.text if stdin else None
    printed = _PRINTS.get(argv[0].text.rpartition("/")[2])
    if printed is None or any(word.glob for word in argv):
        return None
    try:
        return printed(words, text)
    except (ValueError, binascii.Error):
        return None


def _echo(words: list[str], _: str | None) -> str | None:
    escapes = False
    while words and re.fullmatch(r"-[neE]+", words[0]):
        escapes |= "e" in words.pop(0)
    line = " ".join(words)
    # sh's own echo reads escapes without being asked; a backslash that stays is no danger to what is judged
    return f"{_escaped(line) if escapes else line}\n"


def _printf(words: list[str], _: str | None) -> str | None:
    if words[:1] == ["--"]:
        words = words[1:]
    if not words or words[0] == "-v":
        return None
    form, values = _escaped(words[0]), words[1:]
    slots = len(re.findall(r"%[sbdq]", form))
    if "%" in re.sub(r"%[sbdq%]", "", form):
        return None
    if not slots:
        return form.replace("%%", "%")
    printed = ""
    for at in range(0, max(len(values), 1), slots):
        row = iter(values[at : at + slots])
        printed += re.sub(
            r"%([sbdq%])",
            lambda found, row=row: "%" if found[1] == "%" else _slot(next(row, ""), found[1]),  # type: ignore[misc]
            form,
        )
    return printed


def _slot(value: str, kind: str) -> str:
    return _escaped(value) if kind == "b" else value


def _escaped(text: str) -> str:
    text = re.sub(r"\\0([0-7]{1,3})", r"\\\1", text)
    return re.sub(r"\\(?:x[0-9a-fA-F]{1,2}|[0-7]{1,3}|[abefnrtv\\])", _escape, text)


def _escape(found: re.Match[str]) -> str:
    written = found[0][1:]
    if written[0] == "x":
        return chr(int(written[1:], 16))
    if written.isdigit():
        return chr(int(written, 8) & 0xFF)
    return {"a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}[
        written
    ]


def _same(words: list[str], text: str | None) -> str | None:
    return text if all(word.startswith("-") for word in words) else None


def _base64(words: list[str], text: str | None) -> str | None:
    decodes = any(word in ("-d", "-D", "--decode") or re.fullmatch(r"-\w*[dD]\w*", word) for word in words)
    if text is None or not decodes:
        return None
    return base64.b64decode("".join(text.split()), validate=True).decode("utf-8", "replace")


def _base32(words: list[str], text: str | None) -> str | None:
    if text is None or not any(word in ("-d", "--decode") for word in words):
        return None
    return base64.b32decode("".join(text.split())).decode("utf-8", "replace")


def _openssl(words: list[str], text: str | None) -> str | None:
    return _base64(["-d"], text) if "base64" in words and "-d" in words else None


def _xxd(words: list[str], text: str | None) -> str | None:
    flags = "".join(word for word in words if word.startswith("-"))
    if text is None or "r" not in flags or "p" not in flags:
        return None
    return bytes.fromhex("".join(text.split())).decode("utf-8", "replace")


def _rev(_: list[str], text: str | None) -> str | None:
    return None if text is None else "\n".join(line[::-1] for line in text.split("\n"))


def _tac(_: list[str], text: str | None) -> str | None:
    return None if text is None else "".join(reversed(text.splitlines(keepends=True)))


def _tr(words: list[str], text: str | None) -> str | None:
    if text is None:
        return None
    if words[:1] == ["-d"] and len(words) == 2:
        return text.translate(dict.fromkeys(map(ord, _set(words[1]))))
    if len(words) != 2 or words[0].startswith("-"):
        return None
    first, second = _set(words[0]), _set(words[1])
    return text.translate(dict(zip(map(ord, first), second.ljust(len(first), second[-1:]), strict=False)))


def _set(text: str) -> str:
    """`a-z` written out."""
    return re.sub(r"(.)-(.)", lambda found: "".join(map(chr, range(ord(found[1]), ord(found[2]) + 1))), _escaped(text))


def _which(words: list[str], _: str | None) -> str | None:
    names = [word for word in words if not word.startswith("-")]
    return f"{names[0]}\n" if len(names) == 1 else None


def _command(words: list[str], text: str | None) -> str | None:
    return _which(words, text) if words[:1] in (["-v"], ["-V"]) else None


def _rot13(_: list[str], text: str | None) -> str | None:
    return None if text is None else codecs.encode(text, "rot13")


_PRINTS: dict[str, Callable[[list[str], str | None], str | None]] = {
    "echo": _echo,
    "printf": _printf,
    "cat": _same,
    "tee": _same,
    "base64": _base64,
    "base32": _base32,
    "openssl": _openssl,
    "xxd": _xxd,
    "rev": _rev,
    "tac": _tac,
    "tr": _tr,
    "rot13": _rot13,
    "which": _which,
    "command": _command,
    "pwd": lambda words, _: ".\n",
    "true": lambda words, _: "",
    ":": lambda words, _: "",
}
