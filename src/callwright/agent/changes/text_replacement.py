"""A text with one passage replaced by another, exactly. Pure.

What the passage says must stand in the file, to the letter; line ends are the file's own business. A file keeps its
line ends, its byte order mark, and the line end at its end or the lack of it, whatever the call was written with.
A passage that is not found is answered with what comes nearest, so that the next call can be right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches

from callwright.errors import ToolError

__all__ = ["decode_utf8", "describe_nearest", "replace_text"]

_MAX_SHOWN_MATCHES = 10
_MAX_SHOWN_LINES = 8
_MAX_OCCURRENCES = 50
"""A line that occurs more often says nothing about where a passage belongs."""
_MAX_COMPARED_LINES = 5000
"""Lines that are compared letter by letter with one that does not occur."""
_MAX_COMPARED_CHARACTERS = 200
_BYTE_ORDER_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def decode_utf8(data: bytes, path: str) -> str:
    """A file's text, its byte order mark included. `ToolError` for what is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        kind = _BYTE_ORDER_MARKS.get(data[:2], "binary" if b"\0" in data else "in another encoding")
        reason = f"{path} is not UTF-8 text: it is {kind}, byte {error.start + 1} cannot be read"
        raise ToolError(f"{reason}. Only UTF-8 files can be edited here; a command can convert it") from None


def replace_text(text: str, old: str, new: str, *, every: bool = False) -> str:
    """The text with `new` in place of `old`, which must stand there once unless `every` is set.

    `ToolError` when it is not there, or is there more often.
    """
    old, new = _normalize_newlines(old), _normalize_newlines(new)
    if old == new:
        raise ToolError("the old and the new text are the same: nothing would change")
    if not old:
        if text.strip("\ufeff"):
            raise ToolError("the old text is empty: say which text is to be replaced, exactly as the file has it")
        return text + new
    found = list(_compile_passage(old).finditer(text))
    if not found:
        raise ToolError(f"the old text is not in the file. {describe_nearest(text, old)}")
    if len(found) > 1 and not every:
        places = _format_line_numbers([text.count("\n", 0, each.start()) + 1 for each in found])
        raise ToolError(
            f"the old text is in the file {len(found)} times, from lines {places} on: "
            "add lines around it until it is there once, or ask for every one to be replaced"
        )
    pieces, at = [], 0
    for each in found:
        pieces += [text[at : each.start()], _match_line_endings(new, each, text)]
        at = each.end()
    return "".join([*pieces, text[at:]])


def _normalize_newlines(text: str) -> str:
    return text.replace("\r\n", "\n")


def _compile_passage(old: str) -> re.Pattern[str]:
    """The passage with any line ends; the last one may be missing where the file ends without."""
    body, end = (old[:-1], r"(?:\r?\n|\Z)") if old.endswith("\n") and old.strip("\n") else (old, "")
    return re.compile(r"\r?\n".join(map(re.escape, body.split("\n"))) + end)


def _match_line_endings(new: str, found: re.Match[str], text: str) -> str:
    """The new passage with the line ends of the one that it replaces, or of the file."""
    if found.end() == len(text) and not found[0].endswith("\n") and found.re.pattern.endswith(r"\Z)"):
        new = new.removesuffix("\n")
    near = found[0] if "\n" in found[0] else text
    return new.replace("\n", "\r\n") if near.find("\r\n") == near.find("\n") - 1 >= 0 else new


def _format_line_numbers(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:_MAX_SHOWN_MATCHES]))
    return shown if len(numbers) <= _MAX_SHOWN_MATCHES else f"{shown} and {len(numbers) - _MAX_SHOWN_MATCHES} more"


def describe_nearest(text: str, old: str) -> str:
    """Sentences for a model: which lines come nearest to a passage that is not there, and how they differ."""
    there, wanted = _normalize_newlines(text).split("\n"), _normalize_newlines(old).strip("\n").split("\n")
    start = _find_nearest(there, wanted)
    if start is None:
        return "Nothing in it comes near; read the file again"
    window = there[start : start + len(wanted)]
    span = f"Line {start + 1} comes" if len(wanted) == 1 else f"Lines {start + 1} to {start + len(window)} come"
    shown = "\n".join(f"{number}: {line}" for number, line in enumerate(window[:_MAX_SHOWN_LINES], start + 1))
    cut = "" if len(window) <= _MAX_SHOWN_LINES else f"\n… and {len(window) - _MAX_SHOWN_LINES} more lines"
    return f"{span} nearest{_describe_difference(window, wanted, start)}:\n{shown}{cut}"


def _find_nearest(there: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Where most lines of a passage stand in their order, leaving white space aside."""
    places: dict[str, list[int]] = {}
    for number, line in enumerate(there):
        places.setdefault("".join(line.split()), []).append(number)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(wanted):
        found = places.get("".join(line.split()), [])
        if line.strip() and len(found) <= _MAX_OCCURRENCES:
            votes.update(max(0, number - offset) for number in found)
    if votes:
        best = max(votes.values())
        return min(start for start, count in votes.items() if count == best)
    clue = max(wanted, key=len)[:_MAX_COMPARED_CHARACTERS]
    near = get_close_matches(clue, [line[:_MAX_COMPARED_CHARACTERS] for line in there[:_MAX_COMPARED_LINES]], 1, 0.6)
    if not clue.strip() or not near:
        return None
    found_at = next(number for number, line in enumerate(there) if line[:_MAX_COMPARED_CHARACTERS] == near[0])
    return max(0, found_at - max(range(len(wanted)), key=lambda offset: len(wanted[offset])))


def _describe_difference(window: Sequence[str], wanted: Sequence[str], start: int) -> str:
    """What sets the two apart, where it can be said in a few words."""
    pairs = [(number, *pair) for number, pair in enumerate(zip(window, wanted, strict=False), start + 1)]
    number, has, asked = next(((at, line, old) for at, line, old in pairs if line != old), (0, "", ""))
    if len(window) < len(wanted) or any("".join(line.split()) != "".join(old.split()) for _, line, old in pairs):
        return f"; line {number} is the first that differs" if number and len(wanted) > 1 else ""
    if not number:
        return "; they are cut elsewhere"
    if has.strip() != asked.strip():
        return f"; only white space differs, in line {number} between the words"
    if has.lstrip() == asked.lstrip():
        indent, old_indent = _describe_whitespace(has), _describe_whitespace(asked)
        return f"; only white space differs: line {number} begins with {indent}, the old text with {old_indent}"
    end, old_end = _describe_whitespace(has[::-1]), _describe_whitespace(asked[::-1])
    return f"; only white space differs: line {number} ends with {end}, the old text with {old_end}"


def _describe_whitespace(line: str) -> str:
    """The white space at the beginning of a line, in words."""
    lead = line[: len(line) - len(line.lstrip())]
    names = {" ": "space", "\t": "tab"}
    runs = [(sign, len(run[0])) for run in re.finditer(r"(.)\1*", lead) for sign in run[0][0]]
    said = [f"{count} {names.get(sign, 'other sign')}{'s' if count > 1 else ''}" for sign, count in runs]
    return " and ".join(said) or "none"
