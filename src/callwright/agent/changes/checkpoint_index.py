"""The snapshots of a session at one moment: which changes are open, and their net effect on each file.

This module only reads the store; `checkpoints` compares the result with the disk and acts on it.
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
    """A file without the agent's changes, the version that the agent wrote last, and the hunks between the two."""

    base: FileContent
    latest: FileContent
    hunks: tuple[Hunk, ...]

    def find_hunk(self, name: str) -> Hunk | None:
        """Return the hunk with this id, if there is one."""
        return next((hunk for hunk in self.hunks if hunk.id == name), None)


class CheckpointIndex:
    """The snapshot rows of one session, in order."""

    def __init__(self, snapshots: SnapshotStore, session: str, rows: Sequence[Snapshot]) -> None:
        self._snapshots = snapshots
        self._session = session
        self.rows = rows

    def list_planned(self, call: str | None = None) -> list[Snapshot]:
        """Return the rows of writes that are planned or were interrupted."""
        return [row for row in self.rows if row.state == "planned" and call in (None, row.call)]

    def find_plan(self, call: str) -> list[Snapshot]:
        """Return what a call planned to write, in any state; for repeated calls, the last one."""
        last: dict[str, Snapshot] = {}
        for row in reversed(self.rows):
            if (row.kind, row.call) == ("edit", call):
                if row.path in last:
                    break
                last[row.path] = row
        return [*reversed(last.values())]

    def list_edits(self, task: int | None, path: str | None, *states: SnapshotState) -> list[Snapshot]:
        """Return the agent's changes in one of these states."""
        chosen = [row for row in self.rows if row.kind == "edit" and row.state in states]
        return [row for row in chosen if task in (None, row.task) and path in (None, row.path)]

    def has_kept_changes(self, task: int | None, path: str) -> bool:
        """Return whether the user kept changes of a file."""
        keeps = any((row.kind, row.path) == ("keep", path) for row in self.rows)
        return keeps or bool(self.list_edits(task, path, "kept"))

    def find_undone(self, undo: Snapshot) -> dict[int, SnapshotState]:
        """Return the states that an undo sets for earlier changes. After the undo of a hunk they stay open."""
        edits = [] if undo.hunk else self.list_edits(undo.task, undo.path, "done")
        return {row.number: "undone" for row in edits if not undo.number or row.number < undo.number}

    def find_mode(self, path: str) -> int | None:
        """Return the mode that a file had when it last existed."""
        return next((row.mode for row in reversed(self.rows) if row.path == path and row.mode is not None), None)

    async def load_contents(self, rows: Iterable[Snapshot]) -> dict[str | None, FileContent]:
        """Load the contents that these rows refer to."""
        names = {name for row in rows for name in (row.before, row.after) if name is not None}
        found = await self._snapshots.load_contents(self._session, names)
        return {name: None if name is None else found[name] for name in (None, *names)}

    async def load_layers(self, task: int | None, path: str, state: SnapshotState = "done") -> list[ChangeLayer]:
        """Load the layers to remove from a file: the changes in this state, and the kept parts of open ones."""
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
        """Compute the net effect of these changes. Lines that others changed since then do not count as the agent's."""
        written = [row for row in self.rows if row.kind != "keep" and row.state in ("done", "kept", "undone")]
        last = next(row for row in reversed(written) if row.path == path)
        tip = (await self.load_contents([last]))[last.after]
        steps = await self.load_layers(task, path, state)
        bare = (await asyncio.to_thread(remove_changes, steps, tip)).data
        return NetChange(bare, tip, await asyncio.to_thread(build_hunks, bare, tip))
