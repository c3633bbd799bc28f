"""The agent's changes to one file, as layers that can be removed again. Pure.

The user or another task may change the file before, between and after the agent's changes. An undo therefore never
restores an old version; it merges: from the version that the agent wrote, one side leads to the current file and the
other to the version before the change. Changes of others to other lines stay; if others changed the same lines, the
result is not clean and has their lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from callwright.agent.changes.three_way_merge import FileContent, MergeSide, merge_contents

__all__ = ["ChangeLayer", "remove_changes"]


class ChangeLayer(NamedTuple):
    """A change that the agent made, or one that the user decided to keep."""

    kind: Literal["edit", "keep"]
    before: FileContent
    after: FileContent


class ReducedContent(NamedTuple):
    """A file without the agent's changes; clean if all of them could be removed."""

    data: FileContent
    is_clean: bool


def remove_changes(steps: Sequence[ChangeLayer], data: FileContent, *, prefer: MergeSide = "ours") -> ReducedContent:
    """Return the current file without these changes. In `prefer`, "theirs" is the undo."""
    clean = True
    for layer in reversed(_join_layers(steps)):
        result = merge_contents(layer.after, data, layer.before, prefer=prefer)
        data, clean = result.data, clean and result.is_clean
    return ReducedContent(data, clean)


def _join_layers(steps: Sequence[ChangeLayer]) -> list[ChangeLayer]:
    """Join consecutive changes, so that text which the agent wrote and then changed belongs to one layer."""
    found: list[ChangeLayer] = []
    for step in steps:
        if step.kind == "keep":
            # As if the kept change had been there from the beginning.
            found = [
                ChangeLayer("edit", _apply_kept(step, layer.before), _apply_kept(step, layer.after)) for layer in found
            ]
            continue
        joined = merge_contents(found[-1].after, found[-1].before, step.before) if found else None
        if joined and joined.is_clean:
            found[-1] = ChangeLayer("edit", joined.data, step.after)
        else:
            found.append(step)
    return found


def _apply_kept(step: ChangeLayer, data: FileContent) -> FileContent:
    return merge_contents(step.before, step.after, data).data
