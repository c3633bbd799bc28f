"""Patches put to files: what a patch makes of them, as changes. Pure: files come from a reader, nothing is written.

The lines that a patch takes for granted must stand in the file, to the letter but for their line ends. Where they
stand may differ: line numbers are only a hint. A file keeps its line ends and its byte order mark, and the line end at
its end unless the patch says otherwise. All of a patch holds, or none of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

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
    mark = _MARK if text.startswith(_MARK) else ""
    there = text.removeprefix(_MARK).split("\n")
    has_end = there[-1] == ""
    if has_end:
        there.pop()
    end = "\r" if there and there[0].endswith("\r") else ""
    bare = [line.removesuffix("\r") for line in there]
    places: dict[str, list[int]] = {}
    for number, line in enumerate(bare):
        places.setdefault(line, []).append(number)
    made: list[str] = []
    at = shift = 0
    has_end = has_end or not there
    for number, hunk in enumerate(section.hunks, 1):
        where = f"{section.path}, hunk {number}"
        start = _start(hunk, bare, places, at, shift, where)
        made += there[at:start]
        at = start
        for sign, line in hunk.lines:
            if sign != "+":
                made += there[at : at + 1] if sign == " " else []
                at += 1
            else:
                made.append(line + end)
        shift = start - hunk.start if hunk.start is not None else shift
        if at == len(there) and hunk.ends is not None:
            has_end = hunk.ends
    made += there[at:]
    return mark + "\n".join(made) + ("\n" if has_end and made else "")


def _start(
    hunk: PatchHunk, bare: list[str], places: dict[str, list[int]], at: int, shift: int, where: str
) -> int:
    """The line, from 0, where a hunk begins: at or after `at`, nearest to where it says."""
    for anchor in hunk.anchors:
        found = next((number for number in range(at, len(bare)) if bare[number].strip() == anchor.strip()), None)
        if found is None:
            raise ToolError(f"{where}: there is no line {anchor.strip()!r} after line {at}. {nearest(_joined(bare), anchor)}")
        at = found + 1
    old = [line for sign, line in hunk.lines if sign != "+"]
    if not old:
        if hunk.start is None:
            return at if hunk.anchors else len(bare)
        return min(max(hunk.start + shift, at), len(bare))
    first = places.get(old[0], [])
    fits = [number for number in first[bisect_left(first, at) :] if bare[number : number + len(old)] == old]
    if hunk.at_end:
        fits = [number for number in fits if number + len(old) == len(bare)]
    if not fits:
        raise ToolError(f"{where}: {_missed(hunk, old, bare, at, shift)}")
    if hunk.start is not None:
        expected = hunk.start + shift
        return min(fits, key=lambda number: abs(number - expected))
    if len(fits) > 1 and not hunk.anchors and not at:
        shown = ", ".join(str(number + 1) for number in fits[:_SHOWN_PLACES])
        raise ToolError(
            f"{where}: its lines are in the file {len(fits)} times, from lines {shown} on: "
            "add lines around them, or a line `@@` with the function that they are in"
        )
    return fits[0]


def _missed(hunk: PatchHunk, old: Sequence[str], bare: Sequence[str], at: int, shift: int) -> str:
    """Expected against what is there, from the place where most of it fits or where the hunk says."""
    text = "\n".join(old)
    if text in _joined(bare[:at]):
        return f"its lines stand before line {at + 1}, where an earlier hunk ended: put the hunks in the file's order"
    start = None if hunk.start is None else hunk.start + shift
    if start is not None and bare[start : start + 1] == old[:1]:
        wrong = next(number for number, line in enumerate(old) if bare[start + number : start + number + 1] != [line])
        has = repr(bare[start + wrong]) if start + wrong < len(bare) else "the end of the file"
        return f"line {start + wrong + 1} should be {old[wrong]!r}, but is {has}"
    return f"these lines are not in the file:\n{text}\n{nearest(_joined(bare), text)}"


def _joined(bare: Sequence[str]) -> str:
    return "\n".join(bare)
