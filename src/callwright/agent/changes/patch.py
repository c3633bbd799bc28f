"""Patches put to files: what a patch makes of them, as changes. Pure: files come from a reader, nothing is written.

The lines that a patch takes for granted must stand in the file, to the letter but for their line ends. Where they
stand may differ: line numbers are only a hint. A file keeps its line ends and its byte order mark, and the line end at
its end unless the patch says otherwise. All of a patch holds, or none of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import takewhile

from callwright.agent.changes.file_change import FileChange
from callwright.agent.changes.patch_parser import FilePatch, PatchHunk, parse_patch
from callwright.agent.changes.text_replacement import decode_utf8, describe_nearest
from callwright.errors import ToolError

__all__ = ["FileReader", "apply_patch"]

FileReader = Callable[[str], bytes | None]
"""A file by its path from the workspace's root; None when it is not there."""

_BYTE_ORDER_MARK = "\ufeff"
_MAX_SHOWN_MATCHES = 5


def apply_patch(text: str, read: FileReader) -> tuple[FileChange, ...]:
    """What the files of a patch become, in its order. A file that is named more than once is one change.

    `ToolError` for a patch that cannot be read, or does not fit: it names the file, the hunk, and what is there.
    """
    before: dict[str, bytes | None] = {}
    after: dict[str, bytes | None] = {}

    def now(path: str) -> bytes | None:
        if path not in before:
            before[path] = after[path] = read(path)
        return after[path]

    for section in parse_patch(text):
        data = now(section.path)
        target = section.target or section.path
        if section.kind != "add" and data is None:
            raise ToolError(f"{section.path} is not there, so the patch cannot {section.kind} it")
        if (section.kind == "add" or target != section.path) and now(target) is not None:
            raise ToolError(f"{target} is there already: a patch may not write over it; update it instead")
        made = _patch_file(section, data)
        if target != section.path and section.kind != "copy":
            after[section.path] = None
        after[target] = made
    changes = (FileChange(path=path, before=before[path], after=after[path]) for path in before)
    if not (changed := tuple(change for change in changes if change.before != change.after)):
        raise ToolError("the patch changes nothing")
    return changed


def _patch_file(section: FilePatch, data: bytes | None) -> bytes | None:
    """What becomes of one file."""
    if section.kind == "delete" and not section.hunks:
        return None
    text = _apply_hunks(section, decode_utf8(data or b"", section.path))
    if section.kind != "delete":
        return text.encode()
    if text.strip(_BYTE_ORDER_MARK):
        raise ToolError(f"the patch deletes {section.path}, which has more lines than the patch takes out")
    return None


def _apply_hunks(section: FilePatch, text: str) -> str:
    there = text.split("\n")
    has_end = there[-1] == ""
    if has_end:
        there.pop()
    file = _FileCursor([_strip_line(line) for line in there])
    spelled = _LineStyle(section, there)
    made: list[str] = []
    for number, hunk in enumerate(section.hunks, 1):
        at, start = file.position, file.find_hunk(hunk, f"{section.path}, hunk {number}")
        made += there[at:start]
        for sign, line in hunk.lines:
            if sign == "+":
                made.append(spelled.format_line(line, file.position))
            else:
                made += there[file.position : file.position + 1] if sign == " " else []
                file.position += 1
        if file.position == len(there) and hunk.has_final_newline is not None:
            has_end = hunk.has_final_newline
    made += there[file.position :]
    return spelled.restore_mark("\n".join(made) + ("\n" if has_end and made else ""))


def _strip_line(line: str) -> str:
    return line.removeprefix(_BYTE_ORDER_MARK).removesuffix("\r")


class _LineStyle:
    """How a file writes its lines. A patch that says it itself is taken by its word, others are not."""

    def __init__(self, section: FilePatch, there: Sequence[str]) -> None:
        lines = [line for hunk in section.hunks for _, line in hunk.lines]
        says_mark = any(line.startswith(_BYTE_ORDER_MARK) for line in lines)
        self._has_line_endings = not there or any(line.endswith("\r") for line in lines)
        self._file_lines = there
        self._mark = _BYTE_ORDER_MARK if not says_mark and there and there[0].startswith(_BYTE_ORDER_MARK) else ""

    def format_line(self, line: str, at: int) -> str:
        """A new line, with the end of the one that it stands behind."""
        return line if self._has_line_endings or not self._file_lines[max(0, at - 1)].endswith("\r") else f"{line}\r"

    def restore_mark(self, text: str) -> str:
        """The text of the file."""
        return self._mark + text.removeprefix(self._mark)


class _FileCursor:
    """The lines of a file, and how far they were gone through."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._line_numbers: dict[str, list[int]] = {}
        for number, line in enumerate(lines):
            self._line_numbers.setdefault(line, []).append(number)
        self._offset = 0
        self.position = 0

    def find_hunk(self, hunk: PatchHunk, where: str) -> int:
        """Go to the line where a hunk begins, nearest to where it says. Never back."""
        for anchor in hunk.anchors:
            self.position = self._find_anchor(anchor.strip(), where) + 1
        old = [_strip_line(line) for sign, line in hunk.lines if sign != "+"]
        expected = None if hunk.start is None else hunk.start + self._offset
        if not old:
            behind = self.position if hunk.anchors else len(self._lines)
            self.position = behind if expected is None else min(max(expected, self.position), len(self._lines))
            return self.position
        first = self._line_numbers.get(old[0], [])
        fits = [at for at in first[bisect_left(first, self.position) :] if self._lines[at : at + len(old)] == old]
        if hunk.is_at_end:
            fits = [at for at in fits if at + len(old) == len(self._lines)]
        if not fits:
            raise ToolError(f"{where}: {self._describe_mismatch(old, expected)}")
        if hunk.start is not None and expected is not None:
            self.position = min(fits, key=lambda at: abs(at - expected))
            self._offset = self.position - hunk.start
            return self.position
        if len(fits) > 1 and not hunk.anchors and not self.position:
            shown = ", ".join(str(at + 1) for at in fits[:_MAX_SHOWN_MATCHES])
            raise ToolError(
                f"{where}: its lines are in the file {len(fits)} times, from lines {shown} on: "
                "add lines around them, or a line `@@` with the function that they are in"
            )
        self.position = fits[0]
        return self.position

    def _find_anchor(self, anchor: str, where: str) -> int:
        for number in range(self.position, len(self._lines)):
            if self._lines[number].strip() == anchor:
                return number
        near = describe_nearest("\n".join(self._lines), anchor)
        raise ToolError(f"{where}: there is no line {anchor!r} after line {self.position}. {near}")

    def _describe_mismatch(self, old: Sequence[str], expected: int | None) -> str:
        """Expected against what is there: where the hunk says, or where most of it fits."""
        text = "\n".join(old)
        if f"\n{text}\n" in "\n".join(["", *self._lines[: self.position], ""]):
            return (
                f"its lines stand before line {self.position + 1}, where an earlier hunk ended: keep the file's order"
            )
        there = [] if expected is None else self._lines[expected : expected + len(old)]
        if expected is not None and there[:1] == old[:1] and there != old:
            same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(there, old, strict=False)))
            has = repr(there[same]) if same < len(there) else "the end of the file"
            return f"line {expected + same + 1} should be {old[same]!r}, but is {has}"
        near = describe_nearest("\n".join(self._lines), text)
        return f"these lines are not in the file:\n{text}\n{near}"
