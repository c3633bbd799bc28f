"""What stands in a session's snapshots at one moment: which changes are open, and what they come to in each file.

Reads the store and nothing else; `checkpoints` compares it with the disk and acts on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from callwright.agent.changes.change_stack import ChangeLayer, remove_changes
from callwright.agent.changes.diff import Hunk, build_hunks
from callwright.agent.changes.three_way_merge import FileContent
from callwright.store.snapshots import Snapshot, SnapshotState, SnapshotStore

__all__ = ["CheckpointIndex", "NetChange"]


class NetChange(NamedTuple):
    """What a file would be without the agent's changes, what we wrote last, and what differs."""

    base: FileContent
    latest: FileContent
    hunks: tuple[Hunk, ...]

    def find_hunk(self, name: str) -> Hunk | None:
        """One of them."""
        return next((hunk for hunk in self.hunks if hunk.id == name), None)


class CheckpointIndex:
    """The rows of one session, in order."""

    def __init__(self, snapshots: SnapshotStore, session: str, rows: Sequence[Snapshot]) -> None:
        self._snapshots = snapshots
        self._session = session
        self.rows = rows

    def list_planned(self, call: str | None = None) -> list[Snapshot]:
        """What is to be written, or was going to be."""
        return [row for row in self.rows if row.state == "planned" and call in (None, row.call)]

    def find_plan(self, call: str) -> list[Snapshot]:
        """What a call was to write, whatever has become of it; the last such call, should there be several."""
        last: dict[str, Snapshot] = {}
        for row in reversed(self.rows):
            if (row.kind, row.call) == ("edit", call):
                if row.path in last:
                    break
                last[row.path] = row
        return [*reversed(last.values())]

    def list_edits(self, task: int | None, path: str | None, *states: SnapshotState) -> list[Snapshot]:
        """The agent's changes of one of these states."""
        chosen = [row for row in self.rows if row.kind == "edit" and row.state in states]
        return [row for row in chosen if task in (None, row.task) and path in (None, row.path)]

    def has_kept_changes(self, task: int | None, path: str) -> bool:
        """Whether the person kept something of a file."""
        kept = any((row.kind, row.path) == ("keep", path) for row in self.rows)
        return kept or bool(self.list_edits(task, path, "kept"))

    def find_undone(self, undo: Snapshot) -> dict[int, SnapshotState]:
        """What an undo makes of the changes before it. One of a hunk leaves them open, with less in them."""
        edits = [] if undo.hunk else self.list_edits(undo.task, undo.path, "done")
        return {row.number: "undone" for row in edits if not undo.number or row.number < undo.number}

    def find_mode(self, path: str) -> int | None:
        """The rights that a file had when it was last there."""
        return next((row.mode for row in reversed(self.rows) if row.path == path and row.mode is not None), None)

    async def load_contents(self, rows: Iterable[Snapshot]) -> dict[str | None, FileContent]:
        """What these rows name."""
        names = {name for row in rows for name in (row.before, row.after) if name is not None}
        found = await self._snapshots.load_contents(self._session, names)
        return {name: None if name is None else found[name] for name in (None, *names)}

    async def load_layers(self, task: int | None, path: str, state: SnapshotState = "done") -> list[ChangeLayer]:
        """What is to be taken off a file: the changes of that state, and what was kept of open ones."""
        picked = self.list_edits(task, path, state)
        if picked and state == "done":
            first = picked[0].number
            picked += [row for row in self.rows if (row.kind, row.path) == ("keep", path) and row.number > first]
        picked.sort(key=lambda row: row.number)
        data = await self.load_contents(picked)
        return [
            ChangeLayer("keep" if row.kind == "keep" else "edit", data[row.before], data[row.after]) for row in picked
        ]

    async def compute_net_change(self, task: int | None, path: str, state: SnapshotState = "done") -> NetChange:
        """What these changes come to. Lines that somebody else changed since are not the agent's any more."""
        written = [row for row in self.rows if row.kind != "keep" and row.state in ("done", "kept", "undone")]
        last = next(row for row in reversed(written) if row.path == path)
        tip = (await self.load_contents([last]))[last.after]
        steps = await self.load_layers(task, path, state)
        bare = (await asyncio.to_thread(remove_changes, steps, tip)).data
        return NetChange(bare, tip, await asyncio.to_thread(build_hunks, bare, tip))
