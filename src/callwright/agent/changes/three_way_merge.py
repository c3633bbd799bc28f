"""Three-way merge of file contents. Pure.

A version is bytes, or None for a file that does not exist. Changes to different lines are combined, and an equal change
on both sides counts once. Where the sides changed the same lines differently, one side is preferred and the result is
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
    """The merged content; clean if nothing of either side was dropped."""

    data: FileContent
    is_clean: bool


def merge_contents(
    base: FileContent, ours: FileContent, theirs: FileContent, *, prefer: MergeSide = "ours"
) -> MergeResult:
    """Merge two versions that derive from `base`."""
    if theirs in (base, ours):
        return MergeResult(ours, is_clean=True)
    if ours == base:
        return MergeResult(theirs, is_clean=True)
    preferred = ours if prefer == "ours" else theirs
    if base is None or is_opaque(ours, theirs) or is_opaque(base, ours):
        return MergeResult(preferred, is_clean=False)
    old, sides = split_lines(base), (split_lines(ours), split_lines(theirs))
    merged: list[bytes] = []
    clean, at = True, 0
    for start, end, changes in _group_regions([find_edits(old, side) for side in sides]):
        merged += old[at:start]
        variants = [_build_side(old, side, each, start, end) for side, each in zip(sides, changes, strict=True)]
        if not changes[1] or variants[0] == variants[1]:
            merged += variants[0]
        elif not changes[0]:
            merged += variants[1]
        else:
            clean = False
            merged += variants[0] if prefer == "ours" else variants[1]
        at = end
    merged += old[at:]
    if not all(line.endswith(b"\n") for line in merged[:-1]):
        return MergeResult(
            preferred, is_clean=False
        )  # one side removed the final line end, the other appended lines after it
    return MergeResult(b"".join(merged), clean)


MergeRegion = tuple[int, int, tuple[list[LineEdit], list[LineEdit]]]


def _group_regions(changes: Sequence[list[LineEdit]]) -> list[MergeRegion]:
    """Return the regions of the base that one or both sides changed, in order; overlapping edits are one region."""
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
    """Return whether they overlap. Adjacent edits do not, since their order is clear; two insertions at one position
    do.
    """
    start, end, _ = region
    return edit.start < end or start == end == edit.start == edit.end


def _build_side(old: list[bytes], side: list[bytes], changes: list[LineEdit], start: int, end: int) -> list[bytes]:
    """Return one side's replacement for these lines."""
    lines: list[bytes] = []
    for edit in changes:
        lines += old[start : edit.start] + side[edit.new_start : edit.new_end]
        start = edit.end
    return lines + old[start:end]


def apply_hunk(before: FileContent, after: FileContent, hunk: Hunk) -> FileContent:
    """Return the old version with one hunk of the new one applied."""
    return _replace_lines(before, after, hunk.before, hunk.after)


def revert_hunk(before: FileContent, after: FileContent, hunk: Hunk) -> FileContent:
    """Return the new version with one hunk reverted."""
    return _replace_lines(after, before, hunk.after, hunk.before)


def _replace_lines(
    into: FileContent, source: FileContent, target_range: tuple[int, int], source_range: tuple[int, int]
) -> FileContent:
    if is_opaque(into, source):
        return source
    target, other = split_lines(into), split_lines(source)
    return b"".join([*target[: target_range[0]], *other[source_range[0] : source_range[1]], *target[target_range[1] :]])
