"""Three versions of a file made into one: what two sides did to it, taken together. Pure.

A version is bytes, or None for a file that is not there. Changes to different lines both count, and so does the same
change made twice. Where the two sides did different things to the same lines, one side is preferred and the result is
not clean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from callwright.agent.diff import Edit, Hunk, edits, is_opaque, lines

__all__ = ["Content", "Merged", "Side", "applied", "merged", "reverted"]

Content = bytes | None
Side = Literal["ours", "theirs"]


class Merged(NamedTuple):
    """The result; clean when nothing of either side was left out."""

    data: Content
    clean: bool


def merged(base: Content, ours: Content, theirs: Content, *, prefer: Side = "ours") -> Merged:
    """What both sides made of `base`."""
    if theirs in (base, ours):
        return Merged(ours, clean=True)
    if ours == base:
        return Merged(theirs, clean=True)
    preferred = ours if prefer == "ours" else theirs
    if base is None or is_opaque(ours, theirs) or is_opaque(base, ours):
        return Merged(preferred, clean=False)
    old, sides = lines(base), (lines(ours), lines(theirs))
    done: list[bytes] = []
    clean, at = True, 0
    for start, end, changes in _regions([edits(old, side) for side in sides]):
        done += old[at:start]
        made = [_made(old, side, each, start, end) for side, each in zip(sides, changes, strict=True)]
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
        return Merged(preferred, clean=False)  # one side took the last line's end away, the other went on after it
    return Merged(b"".join(done), clean)


Region = tuple[int, int, tuple[list[Edit], list[Edit]]]


def _regions(changes: Sequence[list[Edit]]) -> list[Region]:
    """Lines of the base that one side or both changed, in order; what overlaps is one region."""
    found: list[Region] = []
    for edit, side in sorted((edit, side) for side, each in enumerate(changes) for edit in each):
        if found and _overlaps(found[-1], edit):
            start, end, both = found[-1]
            found[-1] = (start, max(end, edit.end), both)
        else:
            found.append((edit.start, edit.end, ([], [])))
        found[-1][2][side].append(edit)
    return found


def _overlaps(region: Region, edit: Edit) -> bool:
    """Neighbours do not overlap: there is only one order in which they fit. Two insertions at one place do."""
    start, end, _ = region
    return edit.start < end or start == end == edit.start == edit.end


def _made(old: list[bytes], side: list[bytes], changes: list[Edit], start: int, end: int) -> list[bytes]:
    """What one side has in place of these lines."""
    made: list[bytes] = []
    for edit in changes:
        made += old[start : edit.start] + side[edit.new_start : edit.new_end]
        start = edit.end
    return made + old[start:end]


def applied(before: Content, after: Content, hunk: Hunk) -> Content:
    """The old version with one hunk of the new one."""
    return _swapped(before, after, hunk.before, hunk.after)


def reverted(before: Content, after: Content, hunk: Hunk) -> Content:
    """The new version without one hunk."""
    return _swapped(after, before, hunk.after, hunk.before)


def _swapped(into: Content, source: Content, place: tuple[int, int], taken: tuple[int, int]) -> Content:
    if is_opaque(into, source):
        return source
    kept, other = lines(into), lines(source)
    return b"".join([*kept[: place[0]], *other[taken[0] : taken[1]], *kept[place[1] :]])
