"""Diffs between two versions of a file: as line ranges, as hunks, as text. Pure.

Files are bytes, lines end at a line feed, and invalid UTF-8 is replaced only for display. `difflib` is quadratic, so it
only compares the gaps between lines that occur once in both versions, within a budget; the rest counts as one change.
50,000 lines take well under a second, whatever their content.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from typing import NamedTuple

import msgspec

from callwright.agent.changes.file_change import FileChange

__all__ = [
    "Hunk",
    "LineEdit",
    "build_hunks",
    "count_changed_lines",
    "find_edits",
    "format_unified_diff",
    "is_binary",
    "is_opaque",
    "quote_git_path",
    "split_lines",
]

_LINE_PATTERN = re.compile(rb"[^\n]*\n|[^\n]+")
_CONTEXT_LINES = 3
_MAX_COMPARISONS = 20_000_000
"""The work budget of `difflib` for one file: at worst about a second."""
_SNIFFED_BYTES = 8000
"""The number of bytes in which git searches for a NUL."""


class LineEdit(NamedTuple):
    """Lines of one version and the lines that replace them in the other; ranges exclude their end."""

    start: int
    end: int
    new_start: int
    new_end: int


class Hunk(msgspec.Struct, frozen=True, kw_only=True):
    """Neighbouring changes, with the lines around them."""

    id: str
    """Stays the same as long as its removed and added lines do, whatever happens to other hunks."""
    before: tuple[int, int]
    """Its lines in the old version, from 0, end excluded; context included."""
    after: tuple[int, int]
    added: int
    removed: int
    text: str
    """As in a unified diff, from `@@` on."""


def split_lines(data: bytes | None) -> list[bytes]:
    """Split data into lines with their ends; a carriage return is part of its line."""
    return _LINE_PATTERN.findall(data or b"")


def is_binary(data: bytes | None) -> bool:
    """Return whether data is binary."""
    return data is not None and b"\0" in data[:_SNIFFED_BYTES]


def is_opaque(before: bytes | None, after: bytes | None) -> bool:
    """Return whether this is one change as a whole: a file that is created, deleted or binary."""
    return before is None or after is None or is_binary(before) or is_binary(after)


def find_edits(before: Sequence[bytes], after: Sequence[bytes]) -> list[LineEdit]:
    """Return the ranges that differ, in order; no two of them touch."""
    found: list[LineEdit] = []
    left = _MAX_COMPARISONS
    for gap in _iter_gaps(before, after):
        old, new = before[gap.start : gap.end], after[gap.new_start : gap.new_end]
        cost = _estimate_cost(old, new)
        compared = _compare_gap(old, new, gap) if 0 < cost <= left else [gap]
        left -= cost if cost <= left else 0
        for edit in compared:
            if found and (found[-1].end, found[-1].new_end) == (edit.start, edit.new_start):
                found[-1] = LineEdit(found[-1].start, edit.end, found[-1].new_start, edit.new_end)
            elif edit.start < edit.end or edit.new_start < edit.new_end:
                found.append(edit)
    return found


def _estimate_cost(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    """Estimate the work of `difflib`: it compares all pairs of equal lines for each block that it finds."""
    counts = Counter(old)
    pairs = sum(counts[line] for line in new)
    return (len(old) + len(new) + pairs) * min(len(old), len(new)) if pairs else 0


def _compare_gap(old: Sequence[bytes], new: Sequence[bytes], gap: LineEdit) -> list[LineEdit]:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [
        LineEdit(gap.start + start, gap.start + end, gap.new_start + new_start, gap.new_start + new_end)
        for kind, start, end, new_start, new_end in matcher.get_opcodes()
        if kind != "equal"
    ]


def _iter_gaps(before: Sequence[bytes], after: Sequence[bytes]) -> Iterator[LineEdit]:
    """Yield the gaps between the anchors, without equal lines at their two ends."""
    trimmed = _trim_gap(before, after, LineEdit(0, len(before), 0, len(after)))
    start, new_start = trimmed.start, trimmed.new_start
    for old, new in [*_find_anchors(before, after, trimmed), (trimmed.end, trimmed.new_end)]:
        if old > start or new > new_start:
            yield _trim_gap(before, after, LineEdit(start, old, new_start, new))
        start, new_start = old + 1, new + 1


def _trim_gap(before: Sequence[bytes], after: Sequence[bytes], gap: LineEdit) -> LineEdit:
    start, end, new_start, new_end = gap
    head = zip(before[start:end], after[new_start:new_end], strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], head))
    start, new_start = start + same, new_start + same
    tail = zip(reversed(before[start:end]), reversed(after[new_start:new_end]), strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], tail))
    return LineEdit(start, end - same, new_start, new_end - same)


def _find_anchors(before: Sequence[bytes], after: Sequence[bytes], gap: LineEdit) -> list[tuple[int, int]]:
    """Find lines that occur once in both versions: the longest common subsequence of them (patience diff)."""
    old, new = before[gap.start : gap.end], after[gap.new_start : gap.new_end]
    counts, new_counts = Counter(old), Counter(new)
    positions = {line: at for at, line in enumerate(new, gap.new_start) if new_counts[line] == 1}
    pairs = [(at, positions[line]) for at, line in enumerate(old, gap.start) if counts[line] == 1 and line in positions]
    tops: list[int] = []  # the smallest position at which a run of each length ends …
    ends: list[int] = []  # … the pair at that position …
    links: list[int] = []  # … and for each pair the one before it
    for number, (_, position) in enumerate(pairs):
        length = bisect_left(tops, position)
        links.append(ends[length - 1] if length else -1)
        if length == len(tops):
            tops.append(position)
            ends.append(number)
        else:
            tops[length], ends[length] = position, number
    run = []
    number = ends[-1] if ends else -1
    while number >= 0:
        run.append(pairs[number])
        number = links[number]
    return run[::-1]


def count_changed_lines(before: bytes | None, after: bytes | None) -> tuple[int, int]:
    """Return how many lines were added and removed; zero for binary files."""
    if is_binary(before) or is_binary(after):
        return 0, 0
    found = find_edits(split_lines(before), split_lines(after))
    return sum(edit.new_end - edit.new_start for edit in found), sum(edit.end - edit.start for edit in found)


def build_hunks(before: bytes | None, after: bytes | None) -> tuple[Hunk, ...]:
    """Group the changes into hunks. A file that is created, deleted or binary is a single hunk."""
    if before == after:
        return ()
    old, new = split_lines(before), split_lines(after)
    if is_binary(before) or is_binary(after):
        text = "Binary files differ\n"
        digest = hashlib.sha256((before or b"") + b"\0" + (after or b"")).hexdigest()[:12]
        return (Hunk(id=digest, before=(0, len(old)), after=(0, len(new)), added=0, removed=0, text=text),)
    found = find_edits(old, new)
    groups: list[list[LineEdit]] = [found] if is_opaque(before, after) else []
    for edit in () if groups else found:
        if groups and edit.start - groups[-1][-1].end <= 2 * _CONTEXT_LINES:
            groups[-1].append(edit)
        else:
            groups.append([edit])
    id_counts: Counter[str] = Counter()
    return tuple(_build_hunk(old, new, group, id_counts) for group in groups)


def _build_hunk(old: list[bytes], new: list[bytes], group: list[LineEdit], id_counts: Counter[str]) -> Hunk:
    if not group:  # an empty file that is created or deleted
        return Hunk(id="empty", before=(0, 0), after=(0, 0), added=0, removed=0, text="")
    first, last = group[0], group[-1]
    lead, trail = min(_CONTEXT_LINES, first.start), min(_CONTEXT_LINES, len(old) - last.end)
    before = (first.start - lead, last.end + trail)
    after = (first.new_start - lead, last.new_end + trail)
    marked, at = [], before[0]
    for edit in group:
        marked += [(b" ", line) for line in old[at : edit.start]]
        marked += [(b"-", line) for line in old[edit.start : edit.end]]
        marked += [(b"+", line) for line in new[edit.new_start : edit.new_end]]
        at = edit.end
    marked += [(b" ", line) for line in old[at : before[1]]]
    changed = [sign + line for sign, line in marked if sign != b" "]
    digest = hashlib.sha256(b"".join(changed)).hexdigest()[:12]
    id_counts[digest] += 1
    number = f".{id_counts[digest]}" if id_counts[digest] > 1 else ""
    head = f"@@ -{_format_range(before)} +{_format_range(after)} @@\n"
    added = sum(sign == b"+" for sign, _ in marked)
    return Hunk(
        id=digest + number,
        before=before,
        after=after,
        added=added,
        removed=len(changed) - added,
        text=head + "".join(_format_line(sign + line) for sign, line in marked),
    )


def _format_range(span: tuple[int, int]) -> str:
    count = span[1] - span[0]
    return f"{span[0] + (count > 0)}" + ("" if count == 1 else f",{count}")


def _format_line(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    return text if text.endswith("\n") else f"{text}\n\\ No newline at end of file\n"


def format_unified_diff(change: FileChange) -> str:
    """Format the change as git does."""
    old, new = quote_git_path(f"a/{change.path}"), quote_git_path(f"b/{change.path}")
    head = f"diff --git {old} {new}\n"
    if change.before is None:
        head, old = head + "new file mode 100644\n", "/dev/null"
    if change.after is None:
        head, new = head + "deleted file mode 100644\n", "/dev/null"
    if is_binary(change.before) or is_binary(change.after):
        return f"{head}Binary files {old} and {new} differ\n"
    body = "".join(hunk.text for hunk in build_hunks(change.before, change.after))
    return head + (f"--- {old}\n+++ {new}\n{body}" if body else "")


def quote_git_path(path: str) -> str:
    """Format a path as git does: quoted and escaped where it would not fit on a line."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    quoted = "".join(
        escapes.get(sign, sign if sign >= " " and sign != "\x7f" else f"\\{ord(sign):03o}") for sign in path
    )
    return path if quoted == path else f'"{quoted}"'
