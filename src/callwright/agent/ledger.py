"""What stands in a session's snapshots at one moment: which changes are open, and what they come to in each file.

Reads the store and nothing else; `checkpoints` compares it with the disk and acts on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from callwright.agent.diff import Hunk, hunks
from callwright.agent.layers import Step, without
from callwright.agent.merge import Content
from callwright.store.snapshots import Snapshot, SnapshotState, SnapshotStore

__all__ = ["Ledger", "Net"]


class Net(NamedTuple):
    """What a file would be without the agent's changes, what we wrote last, and what differs."""

    bare: Content
    tip: Content
    hunks: tuple[Hunk, ...]

    def hunk(self, name: str) -> Hunk | None:
        """One of them."""
        return next((hunk for hunk in self.hunks if hunk.id == name), None)


class Ledger:
    """The rows of one session, in order."""

    def __init__(self, snapshots: SnapshotStore, session: str, rows: Sequence[Snapshot]) -> None:
        self._snapshots = snapshots
        self._session = session
        self.rows = rows

    def planned(self, call: str | None = None) -> list[Snapshot]:
        """What is to be written, or was going to be."""
        return [row for row in self.rows if row.state == "planned" and call in (None, row.call)]

    def plan(self, call: str) -> list[Snapshot]:
        """What a call was to write, whatever has become of it; the last such call, should there be several."""
        last: dict[str, Snapshot] = {}
        for row in reversed(self.rows):
            if (row.kind, row.call) == ("edit", call):
                if row.path in last:
                    break
                last[row.path] = row
        return [*reversed(last.values())]

    def edits(self, task: int | None, path: str | None, *states: SnapshotState) -> list[Snapshot]:
        """The agent's changes of one of these states."""
        chosen = [row for row in self.rows if row.kind == "edit" and row.state in states]
        return [row for row in chosen if task in (None, row.task) and path in (None, row.path)]

    def has_kept(self, task: int | None, path: str) -> bool:
        """Whether the person kept something of a file."""
        kept = any((row.kind, row.path) == ("keep", path) for row in self.rows)
        return kept or bool(self.edits(task, path, "kept"))

    def undone_by(self, undo: Snapshot) -> dict[int, SnapshotState]:
        """What an undo makes of the changes before it. One of a hunk leaves them open, with less in them."""
        edits = [] if undo.hunk else self.edits(undo.task, undo.path, "done")
        return {row.number: "undone" for row in edits if not undo.number or row.number < undo.number}

    def mode(self, path: str) -> int | None:
        """The rights that a file had when it was last there."""
        return next((row.mode for row in reversed(self.rows) if row.path == path and row.mode is not None), None)

    async def contents(self, rows: Iterable[Snapshot]) -> dict[str | None, Content]:
        """What these rows name."""
        names = {name for row in rows for name in (row.before, row.after) if name is not None}
        found = await self._snapshots.load_contents(self._session, names)
        return {name: None if name is None else found[name] for name in (None, *names)}

    async def steps(self, task: int | None, path: str, state: SnapshotState = "done") -> list[Step]:
        """What is to be taken off a file: the changes of that state, and what was kept of open ones."""
        picked = self.edits(task, path, state)
        if picked and state == "done":
            first = picked[0].number
            picked += [row for row in self.rows if (row.kind, row.path) == ("keep", path) and row.number > first]
        picked.sort(key=lambda row: row.number)
        data = await self.contents(picked)
        return [Step("keep" if row.kind == "keep" else "edit", data[row.before], data[row.after]) for row in picked]

    async def net(self, task: int | None, path: str, state: SnapshotState = "done") -> Net:
        """What these changes come to. Lines that somebody else changed since are not the agent's any more."""
        written = [row for row in self.rows if row.kind != "keep" and row.state in ("done", "kept", "undone")]
        last = next(row for row in reversed(written) if row.path == path)
        tip = (await self.contents([last]))[last.after]
        steps = await self.steps(task, path, state)
        bare = (await asyncio.to_thread(without, steps, tip)).data
        return Net(bare, tip, await asyncio.to_thread(hunks, bare, tip))
