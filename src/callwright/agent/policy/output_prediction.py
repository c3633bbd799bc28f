"""Predicts what a command prints, where that is possible without running it.

`echo 'rm -rf /' | sh` and `echo cm0gLXJmIC8K | base64 -d | sh` contain what the shell will run. Only literal text goes
in, so this module covers only commands that make text from text; for all others the prediction is None.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Callable, Sequence

from callwright.agent.policy.shell_words import CommandStream, ShellWord

__all__ = ["predict_output"]


def predict_output(argv: Sequence[ShellWord], stdin: CommandStream | None) -> str | None:
    """Predict the output, with `UNKNOWN` wherever the words or the input contain it."""
    if not argv:
        return ""
    words = [word.text for word in argv[1:]]
    text = stdin.text if stdin else None
    printed = _PREDICTORS.get(argv[0].text.rpartition("/")[2])
    if printed is None or any(word.has_glob for word in argv):
        return None
    try:
        return printed(words, text)
    except (ValueError, binascii.Error):
        return None


def _predict_echo(words: list[str], _: str | None) -> str | None:
    escapes = False
    while words and re.fullmatch(r"-[neE]+", words[0]):
        escapes |= "e" in words.pop(0)
    line = " ".join(words)
    # sh's built-in echo interprets escapes without `-e`; a backslash that remains does not make the judgement less
    # strict
    return f"{_decode_escapes(line) if escapes else line}\n"


def _predict_printf(words: list[str], _: str | None) -> str | None:
    if words[:1] == ["--"]:
        words = words[1:]
    if not words or words[0] == "-v":
        return None
    form, values = _decode_escapes(words[0]), words[1:]
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
            lambda found, row=row: "%" if found[1] == "%" else _format_printf_value(next(row, ""), found[1]),  # type: ignore[misc]
            form,
        )
    return printed


def _format_printf_value(value: str, kind: str) -> str:
    return _decode_escapes(value) if kind == "b" else value


def _decode_escapes(text: str) -> str:
    text = re.sub(r"\\0([0-7]{1,3})", r"\\\1", text)
    return re.sub(r"\\(?:x[0-9a-fA-F]{1,2}|[0-7]{1,3}|[abefnrtv\\])", _decode_escape, text)


def _decode_escape(found: re.Match[str]) -> str:
    written = found[0][1:]
    if written[0] == "x":
        return chr(int(written[1:], 16))
    if written.isdigit():
        return chr(int(written, 8) & 0xFF)
    return {"a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}[
        written
    ]


def _predict_cat(words: list[str], text: str | None) -> str | None:
    return text if all(word.startswith("-") for word in words) else None


def _predict_base64(words: list[str], text: str | None) -> str | None:
    decodes = any(word in ("-d", "-D", "--decode") or re.fullmatch(r"-\w*[dD]\w*", word) for word in words)
    if text is None or not decodes:
        return None
    return base64.b64decode("".join(text.split()), validate=True).decode("utf-8", "replace")


def _predict_base32(words: list[str], text: str | None) -> str | None:
    if text is None or not any(word in ("-d", "--decode") for word in words):
        return None
    return base64.b32decode("".join(text.split())).decode("utf-8", "replace")


def _predict_openssl(words: list[str], text: str | None) -> str | None:
    return _predict_base64(["-d"], text) if "base64" in words and "-d" in words else None


def _predict_xxd(words: list[str], text: str | None) -> str | None:
    flags = "".join(word for word in words if word.startswith("-"))
    if text is None or "r" not in flags or "p" not in flags:
        return None
    return bytes.fromhex("".join(text.split())).decode("utf-8", "replace")


def _predict_rev(_: list[str], text: str | None) -> str | None:
    return None if text is None else "\n".join(line[::-1] for line in text.split("\n"))


def _predict_tac(_: list[str], text: str | None) -> str | None:
    return None if text is None else "".join(reversed(text.splitlines(keepends=True)))


def _predict_tr(words: list[str], text: str | None) -> str | None:
    if text is None:
        return None
    if words[:1] == ["-d"] and len(words) == 2:
        return text.translate(dict.fromkeys(map(ord, _expand_character_set(words[1]))))
    if len(words) != 2 or words[0].startswith("-"):
        return None
    first, second = _expand_character_set(words[0]), _expand_character_set(words[1])
    return text.translate(dict(zip(map(ord, first), second.ljust(len(first), second[-1:]), strict=False)))


def _expand_character_set(text: str) -> str:
    """Expand ranges such as `a-z`."""
    return re.sub(
        r"(.)-(.)", lambda found: "".join(map(chr, range(ord(found[1]), ord(found[2]) + 1))), _decode_escapes(text)
    )


def _predict_which(words: list[str], _: str | None) -> str | None:
    names = [word for word in words if not word.startswith("-")]
    return f"{names[0]}\n" if len(names) == 1 else None


def _predict_command(words: list[str], text: str | None) -> str | None:
    return _predict_which(words, text) if words[:1] in (["-v"], ["-V"]) else None


def _predict_rot13(_: list[str], text: str | None) -> str | None:
    return None if text is None else codecs.encode(text, "rot13")


_PREDICTORS: dict[str, Callable[[list[str], str | None], str | None]] = {
    "echo": _predict_echo,
    "printf": _predict_printf,
    "cat": _predict_cat,
    "tee": _predict_cat,
    "base64": _predict_base64,
    "base32": _predict_base32,
    "openssl": _predict_openssl,
    "xxd": _predict_xxd,
    "rev": _predict_rev,
    "tac": _predict_tac,
    "tr": _predict_tr,
    "rot13": _predict_rot13,
    "which": _predict_which,
    "command": _predict_command,
    "pwd": lambda words, _: ".\n",
    "true": lambda words, _: "",
    ":": lambda words, _: "",
}
