"""What an agent did to one file, as layers that can be taken off again. Pure.

A person may have changed the file before, between and after; so may another task. A change of the agent is therefore
not taken off by putting an old version back, but by merging: from what it wrote, the present file went one way, and
the undoing goes another. What others did to other lines stays; where they did something to the same lines, the result
is not clean and shows theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from callwright.agent.merge import Content, Side, merged

__all__ = ["Step", "without"]


class Step(NamedTuple):
    """A change that the agent made, or one that the person decided to keep."""

    kind: Literal["edit", "keep"]
    before: Content
    after: Content


class Bare(NamedTuple):
    """A file without the agent's changes; clean when all of them could be taken off."""

    data: Content
    clean: bool


def without(steps: Sequence[Step], data: Content, *, prefer: Side = "ours") -> Bare:
    """The present file without these changes. `theirs` is the undoing's side."""
    clean = True
    for layer in reversed(_layers(steps)):
        result = merged(layer.after, data, layer.before, prefer=prefer)
        data, clean = result.data, clean and result.clean
    return Bare(data, clean)


def _layers(steps: Sequence[Step]) -> list[Step]:
    """Changes that follow each other are one, so that what the agent wrote and changed again is nobody's any more."""
    found: list[Step] = []
    for step in steps:
        if step.kind == "keep":
            # As if what is kept had been there from the beginning.
            found = [Step("edit", _kept(step, layer.before), _kept(step, layer.after)) for layer in found]
            continue
        joined = merged(found[-1].after, found[-1].before, step.before) if found else None
        if joined and joined.clean:
            found[-1] = Step("edit", joined.data, step.after)
        else:
            found.append(step)
    return found


def _kept(step: Step, data: Content) -> Content:
    return merged(step.before, step.after, data).data
