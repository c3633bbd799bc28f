"""Checkpoints against a plain model: an agent and a person change files, keep and undo, and everything may crash.

A crash is an error at one of the boundaries between steps: around each write of a file, in the middle of one, and
around each commit of the store. After it the session is opened again and recovers, which may crash as well. The tree
must then be what the model says, whole files only, with nothing left over, and the person's other files untouched.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from callwright.agent.changes.checkpoints import Checkpoints, UndoResult
from callwright.agent.changes.file_change import FileChange
from callwright.agent.workspace.workspace import Workspace
from tests.properties.checkpoint_model import SLOTS, Event, File, Values, text
from tests.support.opened_store import opened
from tests.support.sampling import FULL

NAMES = ("a.txt", "b.txt", "made/here/c.txt")
UNTOUCHED = {".gitignore": b"*.log\n", "run.log": b"ignored\n", "notes.txt": b"untracked\n", "made/mine.txt": b"mine\n"}
PATHS = st.sampled_from(NAMES)
SOME = st.sampled_from([None, *NAMES])
PICKS = st.integers(0, SLOTS - 1)
TASKS = st.sampled_from([None, 0, 1])
"""All of them, this one, the one before."""
FAULTS = st.sampled_from([*[None] * 10, *range(10)])
RARELY = st.sampled_from([False, False, False, True])
"""A file that came or went has no hunks to decide on; most should have some."""


class CrashError(Exception):
    """The process is gone."""


class Faults:
    """Counts the steps, and crashes at one of them."""

    def __init__(self) -> None:
        self.left: int | None = None

    def step(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise CrashError


class FaultyWorkspace(Workspace):
    """Crashes before, within and after a write."""

    faults: Faults

    def write_file(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        self.faults.step()
        folder = (self.root / path).parent
        try:
            self.faults.step()
        except CrashError:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f".callwright-{'0' * 16}.tmp").write_bytes(data[: len(data) // 2])
            raise
        super().write_file(path, data, mode=mode)
        self.faults.step()

    def delete(self, path: str) -> None:
        self.faults.step()
        super().delete(path)
        self.faults.step()


class FaultySnapshots:
    """Crashes before and after a commit."""

    def __init__(self, real: Any, faults: Faults) -> None:
        self._real, self._faults = real, faults
        self.list_snapshots, self.load_contents = real.list_snapshots, real.load_contents

    async def add(self, *given: Any) -> Any:
        self._faults.step()
        added = await self._real.add(*given)
        self._faults.step()
        return added

    async def set_states(self, states: Mapping[int, str]) -> None:
        self._faults.step()
        await self._real.set_states(states)
        self._faults.step()


class Machine(RuleBasedStateMachine):
    """The workspace, the store, and the model of both."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.folder = tempfile.TemporaryDirectory(prefix="callwright-checkpoints-")
        self.root = Path(self.folder.name) / "work"
        self.root.mkdir()
        self.store = self.run(self.stack.enter_async_context(opened(f"sqlite:///{self.folder.name}/store.db")))
        self.faults = Faults()
        self.values = (f"value {number}" for number in itertools.count())
        self.files = {name: File() for name in NAMES}
        self.moved: dict[str, bytes] = {}
        self.task, self.calls = 1, 0
        for path, data in UNTOUCHED.items():
            (self.root / path).parent.mkdir(exist_ok=True)
            (self.root / path).write_bytes(data)
        self.stamps = self.stamped()
        for name in NAMES[:2]:
            self.person_writes(name, range(SLOTS))
            self.files[name].history = [[] for _ in range(SLOTS)]
        self.reopen()

    def run(self, work: Awaitable[Any]) -> Any:
        async def main() -> Any:
            return await work

        return self.runner.run(main())

    def teardown(self) -> None:
        self.run(self.stack.aclose())
        self.runner.close()
        self.folder.cleanup()

    def reopen(self) -> None:
        workspace = FaultyWorkspace(self.root)
        workspace.faults = self.faults
        self.snapshots: Any = FaultySnapshots(self.store.snapshots, self.faults)
        self.checkpoints = Checkpoints(self.snapshots, "session", workspace)

    def crashing(self, work: Callable[[], Awaitable[Any]], fault: int | None) -> Any:
        """Its result, or `CrashError` itself after the session was opened again and recovered."""
        self.faults.left = fault
        try:
            result = self.run(work())
        except CrashError:
            result = CrashError
        self.faults.left = None
        if result is CrashError:
            self.reopen()
            again = (fault or 0) // 2
            self.faults.left = again
            try:
                self.run(self.checkpoints.recover_writes())
            except CrashError:
                self.reopen()
            self.faults.left = None
            self.run(self.checkpoints.recover_writes())
            assert self.run(self.checkpoints.recover_writes()) == ()
        return result

    def new_values(self, file: File, slots: Sequence[int]) -> Values:
        old = file.values or (None,) * SLOTS
        return tuple(next(self.values) if value is None or slot in slots else value for slot, value in enumerate(old))

    def on_disk(self, name: str) -> bytes | None:
        path = self.root / name
        return path.read_bytes() if path.exists() else None

    def chosen_task(self, which: int | None) -> int | None:
        return None if which is None else self.task - which

    # what the person does

    def person_writes(self, name: str, slots: Sequence[int]) -> None:
        file, path = self.files[name], self.root / name
        if file.values is None:
            file.mode = 0o644
        file.change(self.new_values(file, slots), None)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text(name, file.values) or b"")
        path.chmod(file.mode)

    @rule(name=PATHS, slots=st.sets(PICKS, min_size=1))
    def person_edits(self, name: str, slots: set[int]) -> None:
        self.person_writes(name, sorted(slots))

    @rule(name=PATHS, really=RARELY)
    def person_deletes_or_renames(self, name: str, really: bool) -> None:
        if really and self.files[name].values is not None:
            target = f"moved {len(self.moved)}.txt"
            self.moved[target] = text(name, self.files[name].values) or b""
            (self.root / name).rename(self.root / target)
            self.files[name].change(None, None)

    @rule(name=PATHS, slot=PICKS)
    def person_takes_the_agents_change_back_by_hand(self, name: str, slot: int) -> None:
        file = self.files[name]
        last = file.history[slot][-1] if file.history[slot] else Event(None, None, None)
        if file.values is not None and last.actor is not None and (old := last.old) is not None:
            file.change((*file.values[:slot], old, *file.values[slot + 1 :]), None)
            (self.root / name).write_bytes(text(name, file.values) or b"")

    @rule(name=PATHS, mode=st.sampled_from([0o600, 0o644, 0o755]))
    def person_changes_the_mode(self, name: str, mode: int) -> None:
        if self.files[name].values is not None:
            self.files[name].mode = mode
            (self.root / name).chmod(mode)

    # what the agent does

    @rule(really=RARELY)
    def next_task(self, really: bool) -> None:
        self.task += really

    @rule(plan=st.dictionaries(PATHS, st.sets(PICKS, min_size=1), min_size=1), fault=FAULTS)
    def agent_edits(self, plan: dict[str, set[int]], fault: int | None) -> None:
        self.agent_makes(plan, fault)

    @rule(name=PATHS, other=PATHS, really=RARELY, fault=FAULTS)
    def agent_deletes_one_and_edits_another(self, name: str, other: str, really: bool, fault: int | None) -> None:
        if really:
            self.agent_makes({other: {0}, name: set()}, fault)

    def agent_makes(self, plan: dict[str, set[int]], fault: int | None) -> None:
        """New values for these slots; no slots, and it deletes the file."""
        planned = {
            name: self.new_values(self.files[name], sorted(slots)) if slots else None
            for name, slots in plan.items()
            if slots or self.files[name].values is not None
        }
        if not planned:
            return
        self.calls += 1
        call = f"call {self.calls}"
        changes = [
            FileChange(path=name, before=self.on_disk(name), after=text(name, values))
            for name, values in planned.items()
        ]

        async def work() -> None:
            await self.checkpoints.record_plan(self.task, call, changes)
            await self.checkpoints.write_changes(call)

        result = self.crashing(work, fault)
        for change in changes:
            now = self.on_disk(change.path)
            assert now in (change.before, change.after), "a file is what it was or what it was to become"
            if now == change.after:
                self.files[change.path].agent(planned[change.path], self.task)
            else:
                assert result is CrashError

    # what the person decides

    @rule(which=TASKS, name=SOME, fault=FAULTS, force=st.sampled_from([False, False, True]))
    def undo(self, which: int | None, name: str | None, fault: int | None, force: bool) -> None:
        task = self.chosen_task(which)
        concerned = [each for each in NAMES if name in (None, each) and self.files[each].scope(task)]
        force = force and task is None and not any(self.files[each].has_come_or_gone() for each in concerned)
        expected = {each: self.files[each].undone(task, force=force) for each in concerned}
        before = {each: self.on_disk(each) for each in concerned}
        result = self.crashing(lambda: self.checkpoints.undo_changes(task=task, path=name, force=force), fault)
        conflicts = sorted(each for each, found in expected.items() if found is None)
        if isinstance(result, UndoResult):
            assert sorted(result.paths) == sorted(set(concerned) - set(conflicts))
            assert sorted(conflict.path for conflict in result.conflicts) == conflicts
        for each, found in expected.items():
            now = self.on_disk(each)
            if found is None:
                assert now == before[each]
                continue
            after = text(each, found.values)
            assert now in (before[each], after)
            if self.is_settled(each, task):
                assert now == after
                self.files[each].undo(task, force=force)
            else:
                assert result is CrashError
                assert now == before[each]

    def is_settled(self, name: str, task: int | None) -> bool:
        """Whether nothing of these tasks is open in the store."""
        rows = self.run(self.snapshots.list_snapshots("session"))
        return not any(
            (row.kind, row.path, row.state) == ("edit", name, "done") and task in (None, row.task) for row in rows
        )

    @rule(which=TASKS, name=SOME, fault=FAULTS)
    def keep(self, which: int | None, name: str | None, fault: int | None) -> None:
        task = self.chosen_task(which)
        concerned = [each for each in NAMES if name in (None, each) and self.files[each].scope(task)]
        self.crashing(lambda: self.checkpoints.keep_changes(task=task, path=name), fault)
        for each in concerned:
            if self.is_settled(each, task):
                self.files[each].keep(task)
            else:
                assert fault is not None

    @rule(which=TASKS, name=PATHS, fault=FAULTS, pick=PICKS)
    def keep_a_hunk(self, which: int | None, name: str, fault: int | None, pick: int) -> None:
        self.decide(which, name, fault, pick, is_kept=True)

    @rule(which=TASKS, name=PATHS, fault=FAULTS, pick=PICKS)
    def undo_a_hunk(self, which: int | None, name: str, fault: int | None, pick: int) -> None:
        self.decide(which, name, fault, pick, is_kept=False)

    def decide(self, which: int | None, name: str, fault: int | None, pick: int, *, is_kept: bool) -> None:
        task, file = self.chosen_task(which), self.files[name]
        if not file.scope(task) or file.has_come_or_gone():
            return
        (shown,) = [each for each in self.run(self.checkpoints.list_changed_files(task)) if each.path == name]
        slots = file.hunks(task)
        assert slots is None or len(shown.hunks) == len(slots)
        if not slots:
            return
        slot = sorted(slots)[pick % len(slots)]
        hunk = shown.hunks[sorted(slots).index(slot)]
        assert file.tip_values is not None
        assert f"\n-{slots[slot]}\n+{file.tip_values[slot]}\n" in hunk.text
        count = self.count(name)
        if is_kept:
            self.crashing(lambda: self.checkpoints.keep_changes(task=task, path=name, hunk=hunk.id), fault)
            if self.count(name) > count:
                file.keep_hunk(slot)
            else:
                assert fault is not None
            return
        result = self.crashing(lambda: self.checkpoints.undo_changes(task=task, path=name, hunk=hunk.id), fault)
        if result is not CrashError or self.count(name) > count:
            is_done = file.undo_hunk(slot, slots[slot])
            if isinstance(result, UndoResult):
                assert bool(result.paths) == is_done != bool(result.conflicts)

    def count(self, name: str) -> int:
        """How many decisions about a file are in the store and done."""
        rows = self.run(self.snapshots.list_snapshots("session"))
        return sum(row.path == name and row.kind != "edit" and row.state == "done" for row in rows)

    # what must hold

    @invariant()
    def the_tree_is_what_the_model_says(self) -> None:
        expected = {name: text(name, file.values) for name, file in self.files.items() if file.values is not None}
        expected |= UNTOUCHED | self.moved
        found = {path.relative_to(self.root).as_posix(): path for path in self.root.rglob("*") if path.is_file()}
        assert {name: path.read_bytes() for name, path in found.items()} == expected
        modes = {name: found[name].stat().st_mode & 0o777 for name in NAMES if name in found}
        assert modes == {name: self.files[name].mode for name in modes}

    @invariant()
    def files_that_the_agent_never_wrote_are_never_touched(self) -> None:
        assert self.stamped() == self.stamps

    def stamped(self) -> list[tuple[int, int]]:
        """Which files they are, and when anything about them last changed."""
        return [(status.st_ino, status.st_ctime_ns) for path in UNTOUCHED for status in [(self.root / path).stat()]]

    @invariant()
    def every_file_that_the_agent_wrote_is_told(self) -> None:
        shown = {each.path: each for each in self.run(self.checkpoints.list_changed_files())}
        assert set(shown) == {name for name, file in self.files.items() if file.written}
        for name, each in shown.items():
            file = self.files[name]
            assert each.changed_since == (file.values != file.tip_values)
            assert (each.state == "open") == bool(each.hunks and file.open)


Machine.TestCase.settings = settings(stateful_step_count=40 if FULL else 20)
TestCheckpoints = Machine.TestCase
