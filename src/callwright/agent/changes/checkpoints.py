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

from callwright.agent.changes.change_stack import remove_changes
from callwright.agent.changes.change_writer import ChangeWriter
from callwright.agent.changes.checkpoint_index import CheckpointIndex
from callwright.agent.changes.diff import Hunk
from callwright.agent.changes.file_change import FileChange
from callwright.agent.changes.three_way_merge import MergeSide, apply_hunk, merge_contents, revert_hunk
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import MisuseError, ToolError
from callwright.store.snapshots import Snapshot, SnapshotState, SnapshotStore, compute_digest

__all__ = ["ChangedFile", "Checkpoints", "RecoveredWrite", "UndoConflict", "UndoResult"]

T = TypeVar("T")
RecoveryOutcome = Literal["written", "not written", "changed since"]


class ChangedFile(msgspec.Struct, frozen=True, kw_only=True):
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


class UndoConflict(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was left alone."""

    path: str
    reason: str


class UndoResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an undo."""

    paths: tuple[str, ...]
    conflicts: tuple[UndoConflict, ...]


class RecoveredWrite(msgspec.Struct, frozen=True, kw_only=True):
    """A write that a crash interrupted."""

    path: str
    task: int | None
    call: str
    kind: Literal["edit", "undo", "keep"]
    outcome: RecoveryOutcome


class Checkpoints:
    """Of one session, in one workspace."""

    def __init__(self, snapshots: SnapshotStore, session: str, workspace: Workspace) -> None:
        self._snapshots = snapshots
        self._session = session
        self._writer = ChangeWriter(workspace)
        self._lock = asyncio.Lock()

    async def record_plan(self, task: int, call: str, changes: Sequence[FileChange]) -> None:
        """Store what these files are, and what they are to become. Changes that change nothing are left out."""
        rows = [self._writer.build_snapshot(change, task, call) for change in changes if change.before != change.after]
        counts = Counter(row.path for row in rows)
        if twice := [path for path, count in counts.items() if count > 1]:
            raise ToolError(f"{twice[0]} is changed twice in one call: make it one change")
        async with self._lock:
            ledger = await self._load_index()
            await self._resolve_outcomes(ledger, ledger.list_planned(call))  # a call that is made again after a crash
            await self._snapshots.add(self._session, rows, _collect_contents(changes))

    async def write_changes(self, call: str, *, resume: bool = False) -> tuple[FileChange, ...]:
        """Write what `before` stored for this call; returns what was written. Once begun it is finished, stop or not.
        `again`: a crash interrupted it, and some files may be written already.

        `ToolError` when a file is no longer what it was, and nothing is written; or when a write failed.
        """
        return await self._run_to_completion(self._write_planned(call, resume=resume))

    async def recover_writes(self, resumed_calls: Collection[str] = ()) -> tuple[RecoveredWrite, ...]:
        """After a crash: what became of the writes that were under way. Clears away what they left behind.

        Calls that are `going_on` are left as they are: `make` does what is left of them.
        """
        return await self._run_to_completion(self._recover_planned(resumed_calls))

    async def list_changed_files(self, task: int | None = None) -> tuple[ChangedFile, ...]:
        """The files that the agent wrote, by path; only one task's share of them, where one is named."""
        async with self._lock:
            ledger = await self._load_index()
            paths = sorted({row.path for row in ledger.list_edits(task, None, "done", "kept", "undone")})
            return tuple([await self._summarize_file(ledger, task, path) for path in paths])

    async def keep_changes(
        self, *, task: int | None = None, path: str | None = None, hunk: str | None = None
    ) -> tuple[str, ...]:
        """The person agrees: these changes are theirs from now on, and no undo takes them back. Returns the paths."""
        async with self._lock:
            ledger = await self._load_index()
            chosen = ledger.list_edits(task, path, "done")
            paths = tuple(sorted({row.path for row in chosen}))
            if hunk is None:
                await self._snapshots.set_states(dict.fromkeys([row.number for row in chosen], "kept"))
                return paths
            where = _require_single_path(paths)
            net = await ledger.compute_net_change(task, where)
            if (found := net.find_hunk(hunk)) is None:
                return ()
            kept = FileChange(path=where, before=net.base, after=apply_hunk(net.base, net.latest, found))
            await self._snapshots.add(
                self._session, [_build_snapshot(kept, "keep", task, hunk, "done")], _collect_contents([kept])
            )
            return paths

    async def undo_changes(
        self, *, task: int | None = None, path: str | None = None, hunk: str | None = None, force: bool = False
    ) -> UndoResult:
        """Take the agent's changes back, out of whatever the files are now. Once begun it is finished.

        `force` takes them back also where somebody else has changed the same lines.
        """
        return await self._run_to_completion(self._undo_files(task, path, hunk or "", force=force))

    async def _run_to_completion(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it alone and to its end, also when whoever waits for it is cancelled."""

        async def alone() -> T:
            async with self._lock:
                return await work

        running = asyncio.ensure_future(alone())
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            raise

    async def _load_index(self) -> CheckpointIndex:
        return CheckpointIndex(self._snapshots, self._session, await self._snapshots.list_snapshots(self._session))

    async def _write_planned(self, call: str, *, resume: bool) -> tuple[FileChange, ...]:
        ledger = await self._load_index()
        rows = ledger.find_plan(call) if resume else ledger.list_planned(call)
        if not rows:
            raise MisuseError(f"nothing was planned for the call {call!r}")
        if reviewed := [row.path for row in rows if row.state in ("kept", "undone")]:
            raise ToolError(f"The person has kept this change of {reviewed[0]} or taken it back: read the file again")
        data = await ledger.load_contents(rows)
        changes = [FileChange(path=row.path, before=data[row.before], after=data[row.after]) for row in rows]
        made = 0
        if resume:
            made = await asyncio.to_thread(self._writer.count_written, changes)
            await self._snapshots.set_states({row.number: "planned" for row in rows[made:]})
        problem = await asyncio.to_thread(self._writer.describe_differences, changes[made:])
        if not problem:
            count, problem = await asyncio.to_thread(self._writer.write_changes, changes[made:])
            made += count
        if problem and resume:
            await self._recover_planned(())  # a file that somebody changed since may have been written before
            raise ToolError(f"{problem}. The program was ended while this was written, so look at what is there")
        await self._snapshots.set_states({row.number: "done" if at < made else "unmade" for at, row in enumerate(rows)})
        if problem:
            written = ", ".join(change.path for change in changes[:made])
            raise ToolError(f"{problem}. {f'Written before that: {written}' if made else 'Nothing was written'}")
        return tuple(changes)

    async def _recover_planned(self, resumed_calls: Collection[str]) -> tuple[RecoveredWrite, ...]:
        ledger = await self._load_index()
        return await self._resolve_outcomes(ledger, ledger.list_planned(), resumed_calls)

    async def _resolve_outcomes(
        self, ledger: CheckpointIndex, planned: Sequence[Snapshot], resumed_calls: Collection[str] = ()
    ) -> tuple[RecoveredWrite, ...]:
        """Find out whether these were written."""
        if not planned:
            return ()
        data = await ledger.load_contents(planned)
        found, states = [], dict[int, SnapshotState]()
        for row in planned:
            now = await asyncio.to_thread(self._writer.read_current, row.path)
            await asyncio.to_thread(self._writer.remove_leftovers, row.path, data[row.after])
            if row.kind == "edit" and row.call in resumed_calls:
                continue
            outcome: RecoveryOutcome = "changed since"
            if not isinstance(now, ToolError) and now in (data[row.before], data[row.after]):
                outcome = "written" if now == data[row.after] else "not written"
            found.append(RecoveredWrite(path=row.path, task=row.task, call=row.call, kind=row.kind, outcome=outcome))
            # An edit that may have been written counts as written: taking off what is not there changes nothing.
            # An undo that may not have been does not, and can be asked for again.
            is_made = outcome == "written" or (outcome == "changed since" and row.kind == "edit")
            states[row.number] = "done" if is_made else "unmade"
            if row.kind == "undo" and is_made:
                states |= ledger.find_undone(row)
        await self._snapshots.set_states(states)
        await asyncio.to_thread(self._writer.remove_empty_folders, ledger.rows, [each.path for each in found])
        return tuple(found)

    async def _undo_files(self, task: int | None, path: str | None, hunk: str, *, force: bool) -> UndoResult:
        ledger = await self._load_index()
        paths = sorted({row.path for row in ledger.list_edits(task, path, "done")})
        if hunk:
            _require_single_path(paths)
        outcomes = [await self._plan_undo(ledger, task, each, hunk, force=force) for each in paths]
        conflicts = [each for each in outcomes if isinstance(each, UndoConflict)]
        changes = [each for each in outcomes if isinstance(each, FileChange)]
        planned = [_build_snapshot(change, "undo", task, hunk, "planned") for change in changes]
        rows = await self._snapshots.add(self._session, planned, _collect_contents(changes))
        states = dict[int, SnapshotState]()
        for row, change in zip(rows, changes, strict=True):
            problem = await asyncio.to_thread(self._writer.write_undo, change, ledger.find_mode(change.path))
            states[row.number] = "unmade" if problem else "done"
            if problem:
                conflicts.append(UndoConflict(path=change.path, reason=problem))
            else:
                states |= ledger.find_undone(row)
        await self._snapshots.set_states(states)
        done = [row.path for row in rows if states[row.number] == "done"]
        await asyncio.to_thread(self._writer.remove_empty_folders, ledger.rows, done)
        return UndoResult(paths=tuple(done), conflicts=tuple(conflicts))

    async def _plan_undo(
        self, ledger: CheckpointIndex, task: int | None, path: str, hunk: str, *, force: bool
    ) -> FileChange | UndoConflict:
        """What an undo makes of one file."""
        now = await asyncio.to_thread(self._writer.read_current, path)
        if isinstance(now, ToolError):
            return UndoConflict(path=path, reason=str(now))
        prefer: MergeSide = "theirs" if force else "ours"
        if hunk:
            net = await ledger.compute_net_change(task, path)
            if (found := net.find_hunk(hunk)) is None:
                return UndoConflict(path=path, reason=f"{path} has no such hunk any more: look at its changes again")
            less = revert_hunk(net.base, net.latest, found)
            data, clean = await asyncio.to_thread(merge_contents, net.latest, now, less, prefer=prefer)
        else:
            data, clean = await asyncio.to_thread(
                remove_changes, await ledger.load_layers(task, path), now, prefer=prefer
            )
        if clean or force:
            return FileChange(path=path, before=now, after=data)
        if now is None:
            return UndoConflict(path=path, reason=f"{path} is not there any more: somebody moved or deleted it")
        return UndoConflict(
            path=path, reason=f"{path} was changed by somebody else in the same lines, so it was left alone"
        )

    async def _summarize_file(self, ledger: CheckpointIndex, task: int | None, path: str) -> ChangedFile:
        now = await asyncio.to_thread(self._writer.read_current, path)
        is_open = bool(ledger.list_edits(task, path, "done"))
        net = await ledger.compute_net_change(task, path, "done" if is_open else "kept")
        state: Literal["open", "kept", "undone"] = "open"
        if not is_open or not net.hunks:
            state = "kept" if ledger.has_kept_changes(task, path) else "undone"
        return ChangedFile(
            path=path,
            kind="created" if net.base is None else "deleted" if net.latest is None else "modified",
            state=state,
            added=sum(hunk.added for hunk in net.hunks),
            removed=sum(hunk.removed for hunk in net.hunks),
            hunks=net.hunks,
            changed_since=isinstance(now, ToolError) or now != net.latest,
        )


def _require_single_path(paths: Sequence[str]) -> str:
    if len(paths) != 1:
        raise MisuseError("a hunk is one of a single file with open changes: name its path")
    return paths[0]


def _build_snapshot(
    change: FileChange, kind: Literal["undo", "keep"], task: int | None, hunk: str, state: SnapshotState
) -> Snapshot:
    before, after = (None if data is None else compute_digest(data) for data in (change.before, change.after))
    return Snapshot(path=change.path, kind=kind, state=state, task=task, before=before, after=after, hunk=hunk)


def _collect_contents(changes: Sequence[FileChange]) -> list[bytes]:
    return [data for change in changes for data in (change.before, change.after) if data is not None]
