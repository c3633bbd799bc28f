"""Applies patches to file contents and returns the changes. Pure: a function reads the files, nothing is written.

The context and removed lines of a patch must be in the file exactly, apart from their line ends. Their position may
differ: line numbers are only a hint. A file keeps its line ends and its byte order mark, and its final line end unless
the patch changes it. A patch is applied completely or not at all.
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
"""Reads a file by its path from the workspace's root; None if it does not exist."""

_BYTE_ORDER_MARK = "\ufeff"
_MAX_SHOWN_MATCHES = 5


def apply_patch(text: str, read: FileReader) -> tuple[FileChange, ...]:
    """Return the changes of a patch, in its order. A file that is named more than once is one change.

    Raises `ToolError` for a patch that is invalid or does not match: it names the file, the hunk, and the actual lines.
    """
    before: dict[str, bytes | None] = {}
    after: dict[str, bytes | None] = {}

    def get_current(path: str) -> bytes | None:
        if path not in before:
            before[path] = after[path] = read(path)
        return after[path]

    for section in parse_patch(text):
        data = get_current(section.path)
        target = section.target or section.path
        if section.kind != "add" and data is None:
            raise ToolError(f"{section.path} does not exist, so the patch cannot {section.kind} it")
        if (section.kind == "add" or target != section.path) and get_current(target) is not None:
            raise ToolError(f"{target} already exists: a patch cannot overwrite it; update it instead")
        patched = _patch_file(section, data)
        if target != section.path and section.kind != "copy":
            after[section.path] = None
        after[target] = patched
    changes = (FileChange(path=path, before=before[path], after=after[path]) for path in before)
    if not (changed := tuple(change for change in changes if change.before != change.after)):
        raise ToolError("the patch changes nothing")
    return changed


def _patch_file(section: FilePatch, data: bytes | None) -> bytes | None:
    """Return the new content of one file."""
    if section.kind == "delete" and not section.hunks:
        return None
    text = _apply_hunks(section, decode_utf8(data or b"", section.path))
    if section.kind != "delete":
        return text.encode()
    if text.strip(_BYTE_ORDER_MARK):
        raise ToolError(f"the patch deletes {section.path}, which has more lines than the patch removes")
    return None


def _apply_hunks(section: FilePatch, text: str) -> str:
    file_lines = text.split("\n")
    has_end = file_lines[-1] == ""
    if has_end:
        file_lines.pop()
    file = _FileCursor([_strip_line(line) for line in file_lines])
    spelled = _LineStyle(section, file_lines)
    result: list[str] = []
    for number, hunk in enumerate(section.hunks, 1):
        at, start = file.position, file.find_hunk(hunk, f"{section.path}, hunk {number}")
        result += file_lines[at:start]
        for sign, line in hunk.lines:
            if sign == "+":
                result.append(spelled.format_line(line, file.position))
            else:
                result += file_lines[file.position : file.position + 1] if sign == " " else []
                file.position += 1
        if file.position == len(file_lines) and hunk.has_final_newline is not None:
            has_end = hunk.has_final_newline
    result += file_lines[file.position :]
    return spelled.restore_mark("\n".join(result) + ("\n" if has_end and result else ""))


def _strip_line(line: str) -> str:
    return line.removeprefix(_BYTE_ORDER_MARK).removesuffix("\r")


class _LineStyle:
    """The line ends and byte order mark of a file. Those of a patch are used only if the patch contains them."""

    def __init__(self, section: FilePatch, file_lines: Sequence[str]) -> None:
        lines = [line for hunk in section.hunks for _, line in hunk.lines]
        says_mark = any(line.startswith(_BYTE_ORDER_MARK) for line in lines)
        self._has_line_endings = not file_lines or any(line.endswith("\r") for line in lines)
        self._file_lines = file_lines
        self._mark = (
            _BYTE_ORDER_MARK if not says_mark and file_lines and file_lines[0].startswith(_BYTE_ORDER_MARK) else ""
        )

    def format_line(self, line: str, at: int) -> str:
        """Return a new line with the line end of the line before it."""
        return line if self._has_line_endings or not self._file_lines[max(0, at - 1)].endswith("\r") else f"{line}\r"

    def restore_mark(self, text: str) -> str:
        """Return the text with the byte order mark of the file."""
        return self._mark + text.removeprefix(self._mark)


class _FileCursor:
    """The lines of a file, and the position up to which hunks are applied."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._line_numbers: dict[str, list[int]] = {}
        for number, line in enumerate(lines):
            self._line_numbers.setdefault(line, []).append(number)
        self._offset = 0
        self.position = 0

    def find_hunk(self, hunk: PatchHunk, label: str) -> int:
        """Move to the line where a hunk begins, nearest to its line number. Never moves back."""
        for anchor in hunk.anchors:
            self.position = self._find_anchor(anchor.strip(), label) + 1
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
            raise ToolError(f"{label}: {self._describe_mismatch(old, expected)}")
        if hunk.start is not None and expected is not None:
            self.position = min(fits, key=lambda at: abs(at - expected))
            self._offset = self.position - hunk.start
            return self.position
        if len(fits) > 1 and not hunk.anchors and not self.position:
            line_numbers = ", ".join(str(at + 1) for at in fits[:_MAX_SHOWN_MATCHES])
            raise ToolError(
                f"{label}: its lines are in the file {len(fits)} times, from lines {line_numbers} on: "
                "add lines around them, or a line `@@` with the function that they are in"
            )
        self.position = fits[0]
        return self.position

    def _find_anchor(self, anchor: str, label: str) -> int:
        for number in range(self.position, len(self._lines)):
            if self._lines[number].strip() == anchor:
                return number
        near = describe_nearest("\n".join(self._lines), anchor)
        raise ToolError(f"{label}: there is no line {anchor!r} after line {self.position}. {near}")

    def _describe_mismatch(self, old: Sequence[str], expected: int | None) -> str:
        """Describe the difference between the hunk and the file, at the hunk's line number or where most lines
        match.
        """
        text = "\n".join(old)
        if f"\n{text}\n" in "\n".join(["", *self._lines[: self.position], ""]):
            return f"its lines are before line {self.position + 1}, where an earlier hunk ended: keep the file's order"
        actual = [] if expected is None else self._lines[expected : expected + len(old)]
        if expected is not None and actual[:1] == old[:1] and actual != old:
            same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(actual, old, strict=False)))
            has = repr(actual[same]) if same < len(actual) else "the end of the file"
            return f"line {expected + same + 1} should be {old[same]!r}, but is {has}"
        near = describe_nearest("\n".join(self._lines), text)
        return f"these lines are not in the file:\n{text}\n{near}"
