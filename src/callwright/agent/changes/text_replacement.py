"""Replaces an exact passage of a text. Pure.

The passage must be in the file exactly, apart from line ends. A file keeps its line ends, its byte order mark, and the
presence or absence of a final line end, whatever the call contains. If a passage is not found, the error has the most
similar lines, so that the model can correct its call.
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
"""A line that occurs more often is ignored when searching for a passage."""
_MAX_COMPARED_LINES = 5000
"""How many lines are compared character by character with one that does not occur."""
_MAX_COMPARED_CHARACTERS = 200
_BYTE_ORDER_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def decode_utf8(data: bytes, path: str) -> str:
    """Decode a file, including its byte order mark. Raises `ToolError` if it is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        kind = _BYTE_ORDER_MARKS.get(data[:2], "binary" if b"\0" in data else "in another encoding")
        reason = f"{path} is not UTF-8 text: it is {kind}, byte {error.start + 1} cannot be read"
        raise ToolError(f"{reason}. Only UTF-8 files can be edited; convert it with a command first") from None


def replace_text(text: str, old: str, new: str, *, every: bool = False) -> str:
    """Return the text with `new` in place of `old`, which must occur once unless `every` is set.

    Raises `ToolError` if it does not occur, or occurs more often.
    """
    old, new = _normalize_newlines(old), _normalize_newlines(new)
    if old == new:
        raise ToolError("the old and the new text are the same: nothing would change")
    if not old:
        if text.strip("\ufeff"):
            raise ToolError("the old text is empty: pass the text to replace exactly as it is in the file")
        return text + new
    found = list(_compile_passage(old).finditer(text))
    if not found:
        raise ToolError(f"the old text is not in the file. {describe_nearest(text, old)}")
    if len(found) > 1 and not every:
        places = _format_line_numbers([text.count("\n", 0, each.start()) + 1 for each in found])
        raise ToolError(
            f"the old text is in the file {len(found)} times, from lines {places} on: "
            "add lines around it until it is unique, or set every to true"
        )
    pieces, at = [], 0
    for each in found:
        pieces += [text[at : each.start()], _match_line_endings(new, each, text)]
        at = each.end()
    return "".join([*pieces, text[at:]])


def _normalize_newlines(text: str) -> str:
    return text.replace("\r\n", "\n")


def _compile_passage(old: str) -> re.Pattern[str]:
    """Compile the passage for any line ends; the last one may be missing at the end of the file."""
    body, end = (old[:-1], r"(?:\r?\n|\Z)") if old.endswith("\n") and old.strip("\n") else (old, "")
    return re.compile(r"\r?\n".join(map(re.escape, body.split("\n"))) + end)


def _match_line_endings(new: str, found: re.Match[str], text: str) -> str:
    """Return the new passage with the line ends of the one that it replaces, or of the file."""
    if found.end() == len(text) and not found[0].endswith("\n") and found.re.pattern.endswith(r"\Z)"):
        new = new.removesuffix("\n")
    near = found[0] if "\n" in found[0] else text
    return new.replace("\n", "\r\n") if near.find("\r\n") == near.find("\n") - 1 >= 0 else new


def _format_line_numbers(numbers: Sequence[int]) -> str:
    listed = ", ".join(map(str, numbers[:_MAX_SHOWN_MATCHES]))
    return listed if len(numbers) <= _MAX_SHOWN_MATCHES else f"{listed} and {len(numbers) - _MAX_SHOWN_MATCHES} more"


def describe_nearest(text: str, old: str) -> str:
    """Describe to the model which lines are most similar to a missing passage, and how they differ."""
    lines, passage = _normalize_newlines(text).split("\n"), _normalize_newlines(old).strip("\n").split("\n")
    start = _find_nearest(lines, passage)
    if start is None:
        return "No similar lines were found; read the file again"
    window = lines[start : start + len(passage)]
    span = f"Line {start + 1} is" if len(passage) == 1 else f"Lines {start + 1} to {start + len(window)} are"
    listed = "\n".join(f"{number}: {line}" for number, line in enumerate(window[:_MAX_SHOWN_LINES], start + 1))
    cut = "" if len(window) <= _MAX_SHOWN_LINES else f"\n… and {len(window) - _MAX_SHOWN_LINES} more lines"
    return f"{span} most similar{_describe_difference(window, passage, start)}:\n{listed}{cut}"


def _find_nearest(lines: Sequence[str], passage: Sequence[str]) -> int | None:
    """Return the line where most lines of a passage occur in order, ignoring white space."""
    places: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        places.setdefault("".join(line.split()), []).append(number)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(passage):
        found = places.get("".join(line.split()), [])
        if line.strip() and len(found) <= _MAX_OCCURRENCES:
            votes.update(max(0, number - offset) for number in found)
    if votes:
        best = max(votes.values())
        return min(start for start, count in votes.items() if count == best)
    clue = max(passage, key=len)[:_MAX_COMPARED_CHARACTERS]
    near = get_close_matches(clue, [line[:_MAX_COMPARED_CHARACTERS] for line in lines[:_MAX_COMPARED_LINES]], 1, 0.6)
    if not clue.strip() or not near:
        return None
    found_at = next(number for number, line in enumerate(lines) if line[:_MAX_COMPARED_CHARACTERS] == near[0])
    return max(0, found_at - max(range(len(passage)), key=lambda offset: len(passage[offset])))


def _describe_difference(window: Sequence[str], passage: Sequence[str], start: int) -> str:
    """Describe the difference between the two, if a few words suffice."""
    pairs = [(number, *pair) for number, pair in enumerate(zip(window, passage, strict=False), start + 1)]
    number, line, old_line = next(((at, actual, old) for at, actual, old in pairs if actual != old), (0, "", ""))
    if len(window) < len(passage) or any("".join(actual.split()) != "".join(old.split()) for _, actual, old in pairs):
        return f"; line {number} is the first that differs" if number and len(passage) > 1 else ""
    if not number:
        return "; the lines are split differently"
    if line.strip() != old_line.strip():
        return f"; only white space differs, in line {number} between the words"
    if line.lstrip() == old_line.lstrip():
        indent, old_indent = _describe_whitespace(line), _describe_whitespace(old_line)
        return f"; only white space differs: line {number} begins with {indent}, the old text with {old_indent}"
    end, old_end = _describe_whitespace(line[::-1]), _describe_whitespace(old_line[::-1])
    return f"; only white space differs: line {number} ends with {end}, the old text with {old_end}"


def _describe_whitespace(line: str) -> str:
    """Describe the white space at the beginning of a line."""
    lead = line[: len(line) - len(line.lstrip())]
    names = {" ": "space", "\t": "tab"}
    runs = [(sign, len(run[0])) for run in re.finditer(r"(.)\1*", lead) for sign in run[0][0]]
    parts = [f"{count} {names.get(sign, 'other character')}{'s' if count > 1 else ''}" for sign, count in runs]
    return " and ".join(parts) or "none"
