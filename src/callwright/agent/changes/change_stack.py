"""What an agent did to one file, as layers that can be taken off again. Pure.

A person may have changed the file before, between and after; so may another task. A change of the agent is therefore
not taken off by putting an old version back, but by merging: from what it wrote, the present file went one way, and
the undoing goes another. What others did to other lines stays; where they did something to the same lines, the result
is not clean and shows theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from callwright.agent.changes.three_way_merge import FileContent, MergeSide, merge_contents

__all__ = ["ChangeLayer", "remove_changes"]


class ChangeLayer(NamedTuple):
    """A change that the agent made, or one that the person decided to keep."""

    kind: Literal["edit", "keep"]
    before: FileContent
    after: FileContent


class ReducedContent(NamedTuple):
    """A file without the agent's changes; clean when all of them could be taken off."""

    data: FileContent
    is_clean: bool


def remove_changes(steps: Sequence[ChangeLayer], data: FileContent, *, prefer: MergeSide = "ours") -> ReducedContent:
    """The present file without these changes. `theirs` is the undoing's side."""
    clean = True
    for layer in reversed(_join_layers(steps)):
        result = merge_contents(layer.after, data, layer.before, prefer=prefer)
        data, clean = result.data, clean and result.is_clean
    return ReducedContent(data, clean)


def _join_layers(steps: Sequence[ChangeLayer]) -> list[ChangeLayer]:
    """Changes that follow each other are one, so that what the agent wrote and changed again is nobody's any more."""
    found: list[ChangeLayer] = []
    for step in steps:
        if step.kind == "keep":
            # As if what is kept had been there from the beginning.
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
