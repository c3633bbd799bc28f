"""Three versions of a file made into one: what two sides did to it, taken together. Pure.

A version is bytes, or None for a file that is not there. Changes to different lines both count, and so does the same
change made twice. Where the two sides did different things to the same lines, one side is preferred and the result is
not clean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from callwright.agent.changes.diff import Hunk, LineEdit, find_edits, is_opaque, split_lines

__all__ = ["FileContent", "MergeResult", "MergeSide", "apply_hunk", "merge_contents", "revert_hunk"]

FileContent = bytes | None
MergeSide = Literal["ours", "theirs"]


class MergeResult(NamedTuple):
    """The result; clean when nothing of either side was left out."""

    data: FileContent
    is_clean: bool


def merge_contents(
    base: FileContent, ours: FileContent, theirs: FileContent, *, prefer: MergeSide = "ours"
) -> MergeResult:
    """What both sides made of `base`."""
    if theirs in (base, ours):
        return MergeResult(ours, is_clean=True)
    if ours == base:
        return MergeResult(theirs, is_clean=True)
    preferred = ours if prefer == "ours" else theirs
    if base is None or is_opaque(ours, theirs) or is_opaque(base, ours):
        return MergeResult(preferred, is_clean=False)
    old, sides = split_lines(base), (split_lines(ours), split_lines(theirs))
    done: list[bytes] = []
    clean, at = True, 0
    for start, end, changes in _group_regions([find_edits(old, side) for side in sides]):
        done += old[at:start]
        made = [_build_side(old, side, each, start, end) for side, each in zip(sides, changes, strict=True)]
        if not changes[1] or made[0] == made[1]:
            done += made[0]
        elif not changes[0]:
            done += made[1]
        else:
            clean = False
            done += made[0] if prefer == "ours" else made[1]
        at = end
    done += old[at:]
    if not all(line.endswith(b"\n") for line in done[:-1]):
        return MergeResult(
            preferred, is_clean=False
        )  # one side took the last line's end away, the other went on after it
    return MergeResult(b"".join(done), clean)


MergeRegion = tuple[int, int, tuple[list[LineEdit], list[LineEdit]]]


def _group_regions(changes: Sequence[list[LineEdit]]) -> list[MergeRegion]:
    """Lines of the base that one side or both changed, in order; what overlaps is one region."""
    found: list[MergeRegion] = []
    for edit, side in sorted((edit, side) for side, each in enumerate(changes) for edit in each):
        if found and _is_overlapping(found[-1], edit):
            start, end, both = found[-1]
            found[-1] = (start, max(end, edit.end), both)
        else:
            found.append((edit.start, edit.end, ([], [])))
        found[-1][2][side].append(edit)
    return found


def _is_overlapping(region: MergeRegion, edit: LineEdit) -> bool:
    """Neighbours do not overlap: there is only one order in which they fit. Two insertions at one place do."""
    start, end, _ = region
    return edit.start < end or start == end == edit.start == edit.end


def _build_side(old: list[bytes], side: list[bytes], changes: list[LineEdit], start: int, end: int) -> list[bytes]:
    """What one side has in place of these lines."""
    made: list[bytes] = []
    for edit in changes:
        made += old[start : edit.start] + side[edit.new_start : edit.new_end]
        start = edit.end
    return made + old[start:end]


def apply_hunk(before: FileContent, after: FileContent, hunk: Hunk) -> FileContent:
    """The old version with one hunk of the new one."""
    return _replace_lines(before, after, hunk.before, hunk.after)


def revert_hunk(before: FileContent, after: FileContent, hunk: Hunk) -> FileContent:
    """The new version without one hunk."""
    return _replace_lines(after, before, hunk.after, hunk.before)


def _replace_lines(
    into: FileContent, source: FileContent, target_range: tuple[int, int], source_range: tuple[int, int]
) -> FileContent:
    if is_opaque(into, source):
        return source
    kept, other = split_lines(into), split_lines(source)
    return b"".join([*kept[: target_range[0]], *other[source_range[0] : source_range[1]], *kept[target_range[1] :]])
