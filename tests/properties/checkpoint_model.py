"""A plain model of files that an agent and a person change: what each slot is, and how it came to be that.

A file is a few slots, far enough apart for each to be a hunk of its own, or it is not there. No value is ever thought
of twice. The history of a slot says what an undo does to it, without any diffs: if nobody else touched the slot since
the first change that is to be undone, or has put back what they touched, it gets what was there before; otherwise the
file is a conflict.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

SLOTS = 3
BETWEEN = 8
OTHERS = None
"""Whose event it is: a task's number, or nobody's whose changes could be undone."""

Values = tuple[str, ...] | None


def text(path: str, values: Values) -> bytes | None:
    """The file with these slots."""
    if values is None:
        return None
    blocks = (
        "".join(f"{path} {slot}.{line}\n" for line in range(BETWEEN)) + f"{values[slot]}\n" for slot in range(SLOTS)
    )
    return "".join(blocks).encode()


@dataclass
class Event:
    """One change of one slot."""

    actor: int | None
    old: str | None
    new: str | None


@dataclass
class File:
    """One file: how each slot came to be what it is, and how it had when we last wrote the file."""

    values: Values = None
    mode: int = 0o644
    recorded_mode: int | None = None
    history: list[list[Event]] = field(default_factory=lambda: [[] for _ in range(SLOTS)])
    tip: list[list[Event]] = field(default_factory=lambda: [[] for _ in range(SLOTS)])
    tip_values: Values = None
    open: set[int] = field(default_factory=set)
    """Tasks with changes that are neither kept nor undone."""
    written: bool = False
    """By the agent, at some time."""

    def change(self, values: Values, actor: int | None) -> None:
        """Somebody makes this of it."""
        old, new = self.values or (None,) * SLOTS, values or (None,) * SLOTS
        for slot in range(SLOTS):
            if old[slot] != new[slot]:
                self.history[slot].append(Event(actor, old[slot], new[slot]))
        self.values = values

    def wrote(self) -> None:
        """It was written by us: what is there now is what the agent's hunks are told by."""
        self.tip = [list(events) for events in self.history]
        self.tip_values = self.values
        self.written = True

    def agent(self, values: Values, task: int) -> None:
        """The agent makes this of it."""
        if self.values is not None:
            self.recorded_mode = self.mode
        elif values is not None:
            self.mode = 0o644
        self.change(values, task)
        self.open.add(task)
        self.wrote()

    def scope(self, task: int | None) -> set[int]:
        """The tasks that an order is about."""
        return {each for each in self.open if task in (None, each)}

    def has_come_or_gone(self) -> bool:
        """Whether the file as a whole is part of what happened to it."""
        events = [event for history in (*self.history, *self.tip) for event in history]
        return None in (self.values, self.tip_values) or any(None in (event.old, event.new) for event in events)

    def undone(self, task: int | None, *, force: bool = False) -> Undone | None:
        """What an undo makes of it; None for a conflict."""
        scope, values = self.scope(task), list(self.values or (None,) * SLOTS)
        for slot, events in enumerate(self.history):
            run = last_run(events, scope)
            if run is None and not force:
                return None
            first = next((event for event in events if event.actor in scope), None)
            values[slot] = first.old if first else values[slot]
        assert values == [None] * SLOTS or None not in values, "a file is there or not"
        return Undone(None if None in values else tuple(filter(None, values)))

    def undo(self, task: int | None, *, force: bool = False) -> None:
        """Do so, where it is no conflict."""
        found = self.undone(task, force=force)
        assert found is not None
        if self.values is None and found.values is not None and self.recorded_mode is not None:
            self.mode = self.recorded_mode
        self.keep(task)
        self.change(found.values, OTHERS)
        self.wrote()

    def keep(self, task: int | None) -> None:
        """What was done in these tasks is nobody's to undo."""
        scope = self.scope(task)
        for event in [event for history in (*self.history, *self.tip) for event in history]:
            if event.actor in scope:
                event.actor = OTHERS
        self.open -= scope

    def hunks(self, task: int | None) -> dict[int, str] | None:
        """The slots that have a hunk, with what an undo of it puts there; None where nobody can tell."""
        found: dict[int, str] = {}
        for slot, events in enumerate(self.tip):
            run = last_run(events, self.scope(task))
            if run is None:
                return None
            if run.old != run.new and run.old is not None:
                found[slot] = run.old
        return found

    def undo_hunk(self, slot: int, old: str) -> bool:
        """Put it there, unless somebody changed the slot since."""
        assert self.values is not None
        assert self.tip_values is not None
        if self.values[slot] not in (self.tip_values[slot], old):
            return False
        self.change((*self.values[:slot], old, *self.values[slot + 1 :]), OTHERS)
        self.wrote()
        return True

    def keep_hunk(self, slot: int) -> None:
        """What is in the slot counts as having been there always."""
        for event in (*self.history[slot], *self.tip[slot]):
            event.actor = OTHERS


class Undone(NamedTuple):
    """What an undo leaves."""

    values: Values


def last_run(events: list[Event], scope: set[int]) -> Event | None:
    """All that was done in these tasks, as one event; one without a change when it is nothing; None for a conflict."""
    run = Event(OTHERS, "", "")
    now: str | None = ""
    for event in events:
        if event.actor not in scope:
            now = event.new if run.actor is not OTHERS else now
        elif run.actor is OTHERS:
            run, now = Event(event.actor, event.old, event.new), event.new
        elif now not in (run.old, run.new):
            return None
        else:
            run, now = Event(event.actor, run.old, event.new), event.new
    if now == run.old:
        return Event(OTHERS, "", "")
    return run if now == run.new else None
