"""Checkpoints of everything that the agent writes: changes can be reviewed, kept and undone by task, file or hunk.


    await checkpoints.record_plan(task, call, changes)  # stored when it returns
    written = await checkpoints.write_changes(call)  # raises if a file is no longer as expected
    files = await checkpoints.list_changed_files()
    result = await checkpoints.undo_changes(path="src/app.py", hunk=files[0].hunks[0].id)

Invariants. A file is only written, or restored, after its current content has been stored; so a crash at any moment
leaves each file as it was before or after, and `recover_writes` finds out which. Only files that the agent wrote are
ever touched. Changes of the user are never overwritten: the agent's lines are removed or the file is left alone, unless
the user passes `force`. Between the last check of a file and its replacement are some microseconds in which another
program could save it; the supported systems have no way to prevent that.
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
    """The net effect of the agent on one file."""

    path: str
    kind: Literal["created", "modified", "deleted"]
    state: Literal["open", "kept", "undone"]
    added: int
    removed: int
    hunks: tuple[Hunk, ...]
    """Empty for an undone file; for a kept one, the hunks that were kept last."""
    changed_since: bool
    """Whether the file was changed by others after the agent wrote it."""


class UndoConflict(msgspec.Struct, frozen=True, kw_only=True):
    """A file that an undo did not change, and why."""

    path: str
    reason: str


class UndoResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an undo."""

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
    """The checkpoints of one session in one workspace."""

    def __init__(self, snapshots: SnapshotStore, session: str, workspace: Workspace) -> None:
        self._snapshots = snapshots
        self._session = session
        self._writer = ChangeWriter(workspace)
        self._lock = asyncio.Lock()

    async def record_plan(self, task: int, call: str, changes: Sequence[FileChange]) -> None:
        """Store the current and the planned contents of these files. Changes without effect are dropped."""
        rows = [self._writer.build_snapshot(change, task, call) for change in changes if change.before != change.after]
        counts = Counter(row.path for row in rows)
        if twice := [path for path, count in counts.items() if count > 1]:
            raise ToolError(f"{twice[0]} is changed twice in one call: combine both into one change")
        async with self._lock:
            index = await self._load_index()
            await self._resolve_outcomes(index, index.list_planned(call))  # the call is repeated after a crash
            await self._snapshots.add(self._session, rows, _collect_contents(changes))

    async def write_changes(self, call: str, *, resume: bool = False) -> tuple[FileChange, ...]:
        """Write the planned changes of a call and return what was written. Once started, it is finished even if
        cancelled.

        `resume` continues a call that a crash interrupted; some of its files may be written already. Raises `ToolError`
        without writing anything if a file is no longer as expected, and also when a write failed.
        """
        return await self._run_to_completion(self._write_planned(call, resume=resume))

    async def recover_writes(self, resumed_calls: Collection[str] = ()) -> tuple[RecoveredWrite, ...]:
        """Determine the outcome of the writes that a crash interrupted, and delete their temporary files.

        Calls in `resumed_calls` are skipped: `write_changes` completes them.
        """
        return await self._run_to_completion(self._recover_planned(resumed_calls))

    async def list_changed_files(self, task: int | None = None) -> tuple[ChangedFile, ...]:
        """Return the files that the agent wrote, by path; with `task`, only that task's changes to them."""
        async with self._lock:
            index = await self._load_index()
            paths = sorted({row.path for row in index.list_edits(task, None, "done", "kept", "undone")})
            return tuple([await self._summarize_file(index, task, path) for path in paths])

    async def keep_changes(
        self, *, task: int | None = None, path: str | None = None, hunk: str | None = None
    ) -> tuple[str, ...]:
        """Keep changes: no later undo removes them. Returns the paths."""
        async with self._lock:
            index = await self._load_index()
            chosen = index.list_edits(task, path, "done")
            paths = tuple(sorted({row.path for row in chosen}))
            if hunk is None:
                await self._snapshots.set_states(dict.fromkeys([row.number for row in chosen], "kept"))
                return paths
            single_path = _require_single_path(paths)
            net = await index.compute_net_change(task, single_path)
            if (found := net.find_hunk(hunk)) is None:
                return ()
            keep = FileChange(path=single_path, before=net.base, after=apply_hunk(net.base, net.latest, found))
            await self._snapshots.add(
                self._session, [_build_snapshot(keep, "keep", task, hunk, "done")], _collect_contents([keep])
            )
            return paths

    async def undo_changes(
        self, *, task: int | None = None, path: str | None = None, hunk: str | None = None, force: bool = False
    ) -> UndoResult:
        """Remove the agent's changes from the current files. Once started, it is finished even if cancelled.

        With `force`, the agent's lines are removed even if others have changed the same lines.
        """
        return await self._run_to_completion(self._undo_files(task, path, hunk or "", force=force))

    async def _run_to_completion(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work under the lock and to its end, even if the caller is cancelled."""

        async def run_locked() -> T:
            async with self._lock:
                return await work

        running = asyncio.ensure_future(run_locked())
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            raise

    async def _load_index(self) -> CheckpointIndex:
        return CheckpointIndex(self._snapshots, self._session, await self._snapshots.list_snapshots(self._session))

    async def _write_planned(self, call: str, *, resume: bool) -> tuple[FileChange, ...]:
        index = await self._load_index()
        rows = index.find_plan(call) if resume else index.list_planned(call)
        if not rows:
            raise MisuseError(f"nothing was planned for the call {call!r}")
        if reviewed := [row.path for row in rows if row.state in ("kept", "undone")]:
            raise ToolError(f"The user has kept or undone this change of {reviewed[0]}: read the file again")
        data = await index.load_contents(rows)
        changes = [FileChange(path=row.path, before=data[row.before], after=data[row.after]) for row in rows]
        written_count = 0
        if resume:
            written_count = await asyncio.to_thread(self._writer.count_written, changes)
            await self._snapshots.set_states({row.number: "planned" for row in rows[written_count:]})
        problem = await asyncio.to_thread(self._writer.describe_differences, changes[written_count:])
        if not problem:
            count, problem = await asyncio.to_thread(self._writer.write_changes, changes[written_count:])
            written_count += count
        if problem and resume:
            await self._recover_planned(())  # a file that was changed since may have been written before
            raise ToolError(f"{problem}. The program ended while it was writing: read the file again")
        await self._snapshots.set_states(
            {row.number: "done" if at < written_count else "unmade" for at, row in enumerate(rows)}
        )
        if problem:
            written = ", ".join(change.path for change in changes[:written_count])
            raise ToolError(
                f"{problem}. {f'Written before that: {written}' if written_count else 'Nothing was written'}"
            )
        return tuple(changes)

    async def _recover_planned(self, resumed_calls: Collection[str]) -> tuple[RecoveredWrite, ...]:
        index = await self._load_index()
        return await self._resolve_outcomes(index, index.list_planned(), resumed_calls)

    async def _resolve_outcomes(
        self, index: CheckpointIndex, planned: Sequence[Snapshot], resumed_calls: Collection[str] = ()
    ) -> tuple[RecoveredWrite, ...]:
        """Determine whether these changes were written."""
        if not planned:
            return ()
        data = await index.load_contents(planned)
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
            # An edit that may have been written counts as written: removing a change that is not there does nothing. An
            # undo that may not have been written does not count; it can be requested again.
            is_made = outcome == "written" or (outcome == "changed since" and row.kind == "edit")
            states[row.number] = "done" if is_made else "unmade"
            if row.kind == "undo" and is_made:
                states |= index.find_undone(row)
        await self._snapshots.set_states(states)
        await asyncio.to_thread(self._writer.remove_empty_folders, index.rows, [each.path for each in found])
        return tuple(found)

    async def _undo_files(self, task: int | None, path: str | None, hunk: str, *, force: bool) -> UndoResult:
        index = await self._load_index()
        paths = sorted({row.path for row in index.list_edits(task, path, "done")})
        if hunk:
            _require_single_path(paths)
        outcomes = [await self._plan_undo(index, task, each, hunk, force=force) for each in paths]
        conflicts = [each for each in outcomes if isinstance(each, UndoConflict)]
        changes = [each for each in outcomes if isinstance(each, FileChange)]
        planned = [_build_snapshot(change, "undo", task, hunk, "planned") for change in changes]
        rows = await self._snapshots.add(self._session, planned, _collect_contents(changes))
        states = dict[int, SnapshotState]()
        for row, change in zip(rows, changes, strict=True):
            problem = await asyncio.to_thread(self._writer.write_undo, change, index.find_mode(change.path))
            states[row.number] = "unmade" if problem else "done"
            if problem:
                conflicts.append(UndoConflict(path=change.path, reason=problem))
            else:
                states |= index.find_undone(row)
        await self._snapshots.set_states(states)
        undone = [row.path for row in rows if states[row.number] == "done"]
        await asyncio.to_thread(self._writer.remove_empty_folders, index.rows, undone)
        return UndoResult(paths=tuple(undone), conflicts=tuple(conflicts))

    async def _plan_undo(
        self, index: CheckpointIndex, task: int | None, path: str, hunk: str, *, force: bool
    ) -> FileChange | UndoConflict:
        """Compute what an undo makes of one file."""
        now = await asyncio.to_thread(self._writer.read_current, path)
        if isinstance(now, ToolError):
            return UndoConflict(path=path, reason=str(now))
        prefer: MergeSide = "theirs" if force else "ours"
        if hunk:
            net = await index.compute_net_change(task, path)
            if (found := net.find_hunk(hunk)) is None:
                return UndoConflict(path=path, reason=f"{path} no longer has this hunk: review its changes again")
            less = revert_hunk(net.base, net.latest, found)
            data, clean = await asyncio.to_thread(merge_contents, net.latest, now, less, prefer=prefer)
        else:
            data, clean = await asyncio.to_thread(
                remove_changes, await index.load_layers(task, path), now, prefer=prefer
            )
        if clean or force:
            return FileChange(path=path, before=now, after=data)
        if now is None:
            return UndoConflict(path=path, reason=f"{path} was moved or deleted by someone else")
        return UndoConflict(
            path=path, reason=f"{path} was changed by someone else in the same lines, so it was not undone"
        )

    async def _summarize_file(self, index: CheckpointIndex, task: int | None, path: str) -> ChangedFile:
        now = await asyncio.to_thread(self._writer.read_current, path)
        is_open = bool(index.list_edits(task, path, "done"))
        net = await index.compute_net_change(task, path, "done" if is_open else "kept")
        state: Literal["open", "kept", "undone"] = "open"
        if not is_open or not net.hunks:
            state = "kept" if index.has_kept_changes(task, path) else "undone"
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
        raise MisuseError("a hunk needs the path of one file with open changes")
    return paths[0]


def _build_snapshot(
    change: FileChange, kind: Literal["undo", "keep"], task: int | None, hunk: str, state: SnapshotState
) -> Snapshot:
    before, after = (None if data is None else compute_digest(data) for data in (change.before, change.after))
    return Snapshot(path=change.path, kind=kind, state=state, task=task, before=before, after=after, hunk=hunk)


def _collect_contents(changes: Sequence[FileChange]) -> list[bytes]:
    return [data for change in changes for data in (change.before, change.after) if data is not None]
