"""Everything that the agent writes, so that it can be seen, kept and taken back: by task, by file, by hunk.

    await checkpoints.before(task, call, changes)    # on the disk when it returns
    made = await checkpoints.make(call)             # refuses when a file is no longer what it was
    files = await checkpoints.changed()
    undone = await checkpoints.undo(path="src/app.py", hunk=files[0].hunks[0].id)

Invariants. A file is only written, also back, after what it is now has been stored; so a crash at any moment leaves
each file as it was before or after, and `recover` finds out which. Only files that the agent wrote are ever touched.
What a person changed meanwhile is never written over: the agent's lines are taken out of it or the file is left alone,
unless the person says `force`. Between the last look at a file and its replacement are some microseconds in which
somebody else could still save it; nothing prevents that on the systems that we run on.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Coroutine, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from callwright.agent.change import Change
from callwright.agent.diff import Hunk
from callwright.agent.disk import Disk
from callwright.agent.layers import without
from callwright.agent.ledger import Ledger
from callwright.agent.merge import Side, applied, merged, reverted
from callwright.agent.workspace import Workspace
from callwright.errors import MisuseError, ToolError
from callwright.store.snapshots import Snapshot, SnapshotState, SnapshotStore, compute_digest

__all__ = ["Checkpoints", "Conflict", "FileChange", "Recovered", "Undone"]

T = TypeVar("T")
Outcome = Literal["written", "not written", "changed since"]


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent has done to one file, all in all."""

    path: str
    kind: Literal["created", "modified", "deleted"]
    state: Literal["open", "kept", "undone"]
    added: int
    removed: int
    hunks: tuple[Hunk, ...]
    """None of an undone file; of a kept one those that were kept last."""
    changed_since: bool
    """Somebody else has changed the file after the agent."""


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was left alone."""

    path: str
    why: str


class Undone(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an undo."""

    done: tuple[str, ...]
    conflicts: tuple[Conflict, ...]


class Recovered(msgspec.Struct, frozen=True, kw_only=True):
    """A write that a crash interrupted."""

    path: str
    task: int | None
    call: str
    kind: Literal["edit", "undo", "keep"]
    outcome: Outcome


class Checkpoints:
    """Of one session, in one workspace."""

    def __init__(self, snapshots: SnapshotStore, session: str, workspace: Workspace) -> None:
        self._snapshots = snapshots
        self._session = session
        self._disk = Disk(workspace)
        self._busy = asyncio.Lock()

    async def before(self, task: int, call: str, changes: Sequence[Change]) -> None:
        """Store what these files are, and what they are to become. Changes that change nothing are left out."""
        rows = [self._disk.planned(change, task, call) for change in changes if change.before != change.after]
        counts = Counter(row.path for row in rows)
        if twice := [path for path, count in counts.items() if count > 1]:
            raise ToolError(f"{twice[0]} is changed twice in one call: make it one change")
        async with self._busy:
            ledger = await self._ledger()
            await self._settle(ledger, ledger.planned(call))  # a call that is made again after a crash
            await self._snapshots.add(self._session, rows, _data(changes))

    async def make(self, call: str, *, again: bool = False) -> tuple[Change, ...]:
        """Write what `before` stored for this call; returns what was written. Once begun it is finished, stop or not.
        `again`: a crash interrupted it, and some files may be written already.

        `ToolError` when a file is no longer what it was, and nothing is written; or when a write failed.
        """
        return await self._finished(self._make(call, again=again))

    async def recover(self, going_on: Collection[str] = ()) -> tuple[Recovered, ...]:
        """After a crash: what became of the writes that were under way. Clears away what they left behind.

        Calls that are `going_on` are left as they are: `make` does what is left of them.
        """
        return await self._finished(self._recover(going_on))

    async def changed(self, task: int | None = None) -> tuple[FileChange, ...]:
        """The files that the agent wrote, by path; only one task's share of them, where one is named."""
        async with self._busy:
            ledger = await self._ledger()
            paths = sorted({row.path for row in ledger.edits(task, None, "done", "kept", "undone")})
            return tuple([await self._file_change(ledger, task, path) for path in paths])

    async def keep(
        self, *, task: int | None = None, path: str | None = None, hunk: str | None = None
    ) -> tuple[str, ...]:
        """The person agrees: these changes are theirs from now on, and no undo takes them back. Returns the paths."""
        async with self._busy:
            ledger = await self._ledger()
            chosen = ledger.edits(task, path, "done")
            paths = tuple(sorted({row.path for row in chosen}))
            if hunk is None:
                await self._snapshots.set_states(dict.fromkeys([row.number for row in chosen], "kept"))
                return paths
            where = _only(paths)
            net = await ledger.net(task, where)
            if (found := net.hunk(hunk)) is None:
                return ()
            kept = Change(path=where, before=net.bare, after=applied(net.bare, net.tip, found))
            await self._snapshots.add(self._session, [_row(kept, "keep", task, hunk, "done")], _data([kept]))
            return paths

    async def undo(
        self, *, task: int | None = None, path: str | None = None, hunk: str | None = None, force: bool = False
    ) -> Undone:
        """Take the agent's changes back, out of whatever the files are now. Once begun it is finished.

        `force` takes them back also where somebody else has changed the same lines.
        """
        return await self._finished(self._undo(task, path, hunk or "", force=force))

    async def _finished(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it alone and to its end, also when whoever waits for it is cancelled."""

        async def alone() -> T:
            async with self._busy:
                return await work

        running = asyncio.ensure_future(alone())
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            raise

    async def _ledger(self) -> Ledger:
        return Ledger(self._snapshots, self._session, await self._snapshots.list_snapshots(self._session))

    async def _make(self, call: str, *, again: bool) -> tuple[Change, ...]:
        ledger = await self._ledger()
        rows = ledger.plan(call) if again else ledger.planned(call)
        if not rows:
            raise MisuseError(f"nothing was planned for the call {call!r}")
        if reviewed := [row.path for row in rows if row.state in ("kept", "undone")]:
            raise ToolError(f"The person has kept this change of {reviewed[0]} or taken it back: read the file again")
        data = await ledger.contents(rows)
        changes = [Change(path=row.path, before=data[row.before], after=data[row.after]) for row in rows]
        made = 0
        if again:
            made = await asyncio.to_thread(self._disk.written, changes)
            await self._snapshots.set_states({row.number: "planned" for row in rows[made:]})
        problem = await asyncio.to_thread(self._disk.differing, changes[made:])
        if not problem:
            count, problem = await asyncio.to_thread(self._disk.write_all, changes[made:])
            made += count
        if problem and again:
            await self._recover(())  # a file that somebody changed since may have been written before
            raise ToolError(f"{problem}. The program was ended while this was written, so look at what is there")
        await self._snapshots.set_states({row.number: "done" if at < made else "unmade" for at, row in enumerate(rows)})
        if problem:
            written = ", ".join(change.path for change in changes[:made])
            raise ToolError(f"{problem}. {f'Written before that: {written}' if made else 'Nothing was written'}")
        return tuple(changes)

    async def _recover(self, going_on: Collection[str]) -> tuple[Recovered, ...]:
        ledger = await self._ledger()
        return await self._settle(ledger, ledger.planned(), going_on)

    async def _settle(
        self, ledger: Ledger, planned: Sequence[Snapshot], going_on: Collection[str] = ()
    ) -> tuple[Recovered, ...]:
        """Find out whether these were written."""
        if not planned:
            return ()
        data = await ledger.contents(planned)
        found, states = [], dict[int, SnapshotState]()
        for row in planned:
            now = await asyncio.to_thread(self._disk.look, row.path)
            await asyncio.to_thread(self._disk.clear, row.path, data[row.after])
            if row.kind == "edit" and row.call in going_on:
                continue
            outcome: Outcome = "changed since"
            if not isinstance(now, ToolError) and now in (data[row.before], data[row.after]):
                outcome = "written" if now == data[row.after] else "not written"
            found.append(Recovered(path=row.path, task=row.task, call=row.call, kind=row.kind, outcome=outcome))
            # An edit that may have been written counts as written: taking off what is not there changes nothing.
            # An undo that may not have been does not, and can be asked for again.
            is_made = outcome == "written" or (outcome == "changed since" and row.kind == "edit")
            states[row.number] = "done" if is_made else "unmade"
            if row.kind == "undo" and is_made:
                states |= ledger.undone_by(row)
        await self._snapshots.set_states(states)
        await asyncio.to_thread(self._disk.tidy, ledger.rows, [each.path for each in found])
        return tuple(found)

    async def _undo(self, task: int | None, path: str | None, hunk: str, *, force: bool) -> Undone:
        ledger = await self._ledger()
        paths = sorted({row.path for row in ledger.edits(task, path, "done")})
        if hunk:
            _only(paths)
        outcomes = [await self._taken_back(ledger, task, each, hunk, force=force) for each in paths]
        conflicts = [each for each in outcomes if isinstance(each, Conflict)]
        changes = [each for each in outcomes if isinstance(each, Change)]
        planned = [_row(change, "undo", task, hunk, "planned") for change in changes]
        rows = await self._snapshots.add(self._session, planned, _data(changes))
        states = dict[int, SnapshotState]()
        for row, change in zip(rows, changes, strict=True):
            problem = await asyncio.to_thread(self._disk.put_back, change, ledger.mode(change.path))
            states[row.number] = "unmade" if problem else "done"
            if problem:
                conflicts.append(Conflict(path=change.path, why=problem))
            else:
                states |= ledger.undone_by(row)
        await self._snapshots.set_states(states)
        done = [row.path for row in rows if states[row.number] == "done"]
        await asyncio.to_thread(self._disk.tidy, ledger.rows, done)
        return Undone(done=tuple(done), conflicts=tuple(conflicts))

    async def _taken_back(
        self, ledger: Ledger, task: int | None, path: str, hunk: str, *, force: bool
    ) -> Change | Conflict:
        """What an undo makes of one file."""
        now = await asyncio.to_thread(self._disk.look, path)
        if isinstance(now, ToolError):
            return Conflict(path=path, why=str(now))
        prefer: Side = "theirs" if force else "ours"
        if hunk:
            net = await ledger.net(task, path)
            if (found := net.hunk(hunk)) is None:
                return Conflict(path=path, why=f"{path} has no such hunk any more: look at its changes again")
            less = reverted(net.bare, net.tip, found)
            data, clean = await asyncio.to_thread(merged, net.tip, now, less, prefer=prefer)
        else:
            data, clean = await asyncio.to_thread(without, await ledger.steps(task, path), now, prefer=prefer)
        if clean or force:
            return Change(path=path, before=now, after=data)
        if now is None:
            return Conflict(path=path, why=f"{path} is not there any more: somebody moved or deleted it")
        return Conflict(path=path, why=f"{path} was changed by somebody else in the same lines, so it was left alone")

    async def _file_change(self, ledger: Ledger, task: int | None, path: str) -> FileChange:
        now = await asyncio.to_thread(self._disk.look, path)
        is_open = bool(ledger.edits(task, path, "done"))
        net = await ledger.net(task, path, "done" if is_open else "kept")
        state: Literal["open", "kept", "undone"] = "open"
        if not is_open or not net.hunks:
            state = "kept" if ledger.has_kept(task, path) else "undone"
        return FileChange(
            path=path,
            kind="created" if net.bare is None else "deleted" if net.tip is None else "modified",
            state=state,
            added=sum(hunk.added for hunk in net.hunks),
            removed=sum(hunk.removed for hunk in net.hunks),
            hunks=net.hunks,
            changed_since=isinstance(now, ToolError) or now != net.tip,
        )


def _only(paths: Sequence[str]) -> str:
    if len(paths) != 1:
        raise MisuseError("a hunk is one of a single file with open changes: name its path")
    return paths[0]


def _row(change: Change, kind: Literal["undo", "keep"], task: int | None, hunk: str, state: SnapshotState) -> Snapshot:
    before, after = (None if data is None else compute_digest(data) for data in (change.before, change.after))
    return Snapshot(path=change.path, kind=kind, state=state, task=task, before=before, after=after, hunk=hunk)


def _data(changes: Sequence[Change]) -> list[bytes]:
    return [data for change in changes for data in (change.before, change.after) if data is not None]
