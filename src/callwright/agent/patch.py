"""Patches put to files: what a patch makes of them, as changes. Pure: files come from a reader, nothing is written.

The lines that a patch takes for granted must stand in the file, to the letter but for their line ends. Where they
stand may differ: line numbers are only a hint. A file keeps its line ends and its byte order mark, and the line end at
its end unless the patch says otherwise. All of a patch holds, or none of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import takewhile

from callwright.agent.change import Change
from callwright.agent.edits import nearest, text_of
from callwright.agent.patch_text import FilePatch, PatchHunk, parsed
from callwright.errors import ToolError

__all__ = ["Read", "patched"]

Read = Callable[[str], bytes | None]
"""A file by its path from the workspace's root; None when it is not there."""

_MARK = "\ufeff"
_SHOWN_PLACES = 5


def patched(text: str, read: Read) -> tuple[Change, ...]:
    """What the files of a patch become, in its order. A file that is named more than once is one change.

    `ToolError` for a patch that cannot be read, or does not fit: it names the file, the hunk, and what is there.
    """
    before: dict[str, bytes | None] = {}
    after: dict[str, bytes | None] = {}

    def now(path: str) -> bytes | None:
        if path not in before:
            before[path] = after[path] = read(path)
        return after[path]

    for section in parsed(text):
        data = now(section.path)
        target = section.target or section.path
        if section.kind != "add" and data is None:
            raise ToolError(f"{section.path} is not there, so the patch cannot {section.kind} it")
        if (section.kind == "add" or target != section.path) and now(target) is not None:
            raise ToolError(f"{target} is there already: a patch may not write over it; update it instead")
        made = _made(section, data)
        if target != section.path and section.kind != "copy":
            after[section.path] = None
        after[target] = made
    changes = (Change(path=path, before=before[path], after=after[path]) for path in before)
    if not (changed := tuple(change for change in changes if change.before != change.after)):
        raise ToolError("the patch changes nothing")
    return changed


def _made(section: FilePatch, data: bytes | None) -> bytes | None:
    """What becomes of one file."""
    if section.kind == "delete" and not section.hunks:
        return None
    text = _with_hunks(section, text_of(data or b"", section.path))
    if section.kind != "delete":
        return text.encode()
    if text.strip(_MARK):
        raise ToolError(f"the patch deletes {section.path}, which has more lines than the patch takes out")
    return None


def _with_hunks(section: FilePatch, text: str) -> str:
    there = text.split("\n")
    has_end = there[-1] == ""
    if has_end:
        there.pop()
    file = _File([_bare(line) for line in there])
    spelled = _Spelling(section, there)
    made: list[str] = []
    for number, hunk in enumerate(section.hunks, 1):
        at, start = file.at, file.find(hunk, f"{section.path}, hunk {number}")
        made += there[at:start]
        for sign, line in hunk.lines:
            if sign == "+":
                made.append(spelled.line(line, file.at))
            else:
                made += there[file.at : file.at + 1] if sign == " " else []
                file.at += 1
        if file.at == len(there) and hunk.ends is not None:
            has_end = hunk.ends
    made += there[file.at :]
    return spelled.whole("\n".join(made) + ("\n" if has_end and made else ""))


def _bare(line: str) -> str:
    return line.removeprefix(_MARK).removesuffix("\r")


class _Spelling:
    """How a file writes its lines. A patch that says it itself is taken by its word, others are not."""

    def __init__(self, section: FilePatch, there: Sequence[str]) -> None:
        lines = [line for hunk in section.hunks for _, line in hunk.lines]
        says_mark = any(line.startswith(_MARK) for line in lines)
        self._says_end = not there or any(line.endswith("\r") for line in lines)
        self._there = there
        self._mark = _MARK if not says_mark and there and there[0].startswith(_MARK) else ""

    def line(self, line: str, at: int) -> str:
        """A new line, with the end of the one that it stands behind."""
        return line if self._says_end or not self._there[max(0, at - 1)].endswith("\r") else f"{line}\r"

    def whole(self, text: str) -> str:
        """The text of the file."""
        return self._mark + text.removeprefix(self._mark)


class _File:
    """The lines of a file, and how far they were gone through."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._places: dict[str, list[int]] = {}
        for number, line in enumerate(lines):
            self._places.setdefault(line, []).append(number)
        self._shift = 0
        self.at = 0

    def find(self, hunk: PatchHunk, where: str) -> int:
        """Go to the line where a hunk begins, nearest to where it says. Never back."""
        for anchor in hunk.anchors:
            self.at = self._anchor(anchor.strip(), where) + 1
        old = [_bare(line) for sign, line in hunk.lines if sign != "+"]
        expected = None if hunk.start is None else hunk.start + self._shift
        if not old:
            behind = self.at if hunk.anchors else len(self._lines)
            self.at = behind if expected is None else min(max(expected, self.at), len(self._lines))
            return self.at
        first = self._places.get(old[0], [])
        fits = [at for at in first[bisect_left(first, self.at) :] if self._lines[at : at + len(old)] == old]
        if hunk.at_end:
            fits = [at for at in fits if at + len(old) == len(self._lines)]
        if not fits:
            raise ToolError(f"{where}: {self._missed(old, expected)}")
        if hunk.start is not None and expected is not None:
            self.at = min(fits, key=lambda at: abs(at - expected))
            self._shift = self.at - hunk.start
            return self.at
        if len(fits) > 1 and not hunk.anchors and not self.at:
            shown = ", ".join(str(at + 1) for at in fits[:_SHOWN_PLACES])
            raise ToolError(
                f"{where}: its lines are in the file {len(fits)} times, from lines {shown} on: "
                "add lines around them, or a line `@@` with the function that they are in"
            )
        self.at = fits[0]
        return self.at

    def _anchor(self, anchor: str, where: str) -> int:
        for number in range(self.at, len(self._lines)):
            if self._lines[number].strip() == anchor:
                return number
        near = nearest("\n".join(self._lines), anchor)
        raise ToolError(f"{where}: there is no line {anchor!r} after line {self.at}. {near}")

    def _missed(self, old: Sequence[str], expected: int | None) -> str:
        """Expected against what is there: where the hunk says, or where most of it fits."""
        text = "\n".join(old)
        if f"\n{text}\n" in "\n".join(["", *self._lines[: self.at], ""]):
            return f"its lines stand before line {self.at + 1}, where an earlier hunk ended: keep the file's order"
        there = [] if expected is None else self._lines[expected : expected + len(old)]
        if expected is not None and there[:1] == old[:1] and there != old:
            same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(there, old, strict=False)))
            has = repr(there[same]) if same < len(there) else "the end of the file"
            return f"line {expected + same + 1} should be {old[same]!r}, but is {has}"
        near = nearest("\n".join(self._lines), text)
        return f"these lines are not in the file:\n{text}\n{near}"
