"""Checkpoints in the situations that people lose work in: their own changes in between, moved files, modes, links."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from callwright.agent.changes.checkpoints import Checkpoints, RecoveredWrite
from callwright.agent.changes.file_change import FileChange
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import MisuseError, ToolError
from callwright.store.open import Store
from tests.support.opened_store import opened

BASE = "".join(f"line {number}\n" for number in range(40)).encode()


class Desk:
    """A workspace with an agent and a person at it."""

    def __init__(self, root: Path, store: Store, session: str = "one") -> None:
        root.mkdir(exist_ok=True)
        self.root = root
        self.store = store
        self.workspace = Workspace(root)
        self.checkpoints = Checkpoints(store.snapshots, session, self.workspace)
        self.calls = 0

    def __getitem__(self, path: str) -> bytes | None:
        where = self.root / path
        return where.read_bytes() if where.is_file() else None

    def __setitem__(self, path: str, data: bytes) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(data)

    async def agent(self, files: dict[str, bytes | None], task: int = 1) -> tuple[FileChange, ...]:
        """The agent makes these of the files, in one call."""
        self.calls += 1
        call = f"call {self.calls}"
        changes = [FileChange(path=path, before=self[path], after=after) for path, after in files.items()]
        await self.checkpoints.record_plan(task, call, changes)
        return await self.checkpoints.write_changes(call)

    async def summary(self, task: int | None = None) -> dict[str, str]:
        return {
            each.path: f"{each.kind} {each.state} +{each.added} -{each.removed}{' changed' * each.changed_since}"
            for each in await self.checkpoints.list_changed_files(task)
        }


@pytest.fixture
def at_desk(tmp_path: Path) -> Callable[[Callable[[Desk], Awaitable[None]]], None]:
    """Runs a scene at a new desk."""

    def run(scene: Callable[[Desk], Awaitable[None]]) -> None:
        async def main() -> None:
            async with opened(f"sqlite:///{tmp_path / 'store.db'}") as store:
                await scene(Desk(tmp_path / "work", store))

        asyncio.run(main())

    return run


Scene = Callable[[Callable[[Desk], Awaitable[None]]], None]


def swap(data: bytes | None, **lines: str) -> bytes:
    """With other lines: `l3="three"` replaces line 3, an empty text takes it out."""
    made = (data or b"").decode().splitlines(keepends=True)
    for name, text in lines.items():
        made[int(name[1:])] = f"{text}\n" if text else ""
    return "".join(made).encode()


def test_created_changed_and_deleted_files_come_back(at_desk: Scene) -> None:
    async def scene(desk: Desk) -> None:
        desk["changed.txt"], desk["gone.txt"] = BASE, b"gone\n"
        (desk.root / "gone.txt").chmod(0o750)
        (desk.root / "changed.txt").chmod(0o600)
        await desk.agent({"changed.txt": swap(BASE, l3="x"), "gone.txt": None, "new/deep/er.txt": b"hi\n"})
        assert await desk.summary() == {
            "changed.txt": "modified open +1 -1",
            "gone.txt": "deleted open +0 -1",
            "new/deep/er.txt": "created open +1 -0",
        }
        undone = await desk.checkpoints.undo_changes()
        assert (len(undone.paths), undone.conflicts) == (3, ())
        assert (desk["changed.txt"], desk["gone.txt"]) == (BASE, b"gone\n")
        assert sorted(path.name for path in desk.root.rglob("*")) == ["changed.txt", "gone.txt"]
        modes = [(desk.root / name).stat().st_mode & 0o777 for name in ("gone.txt", "changed.txt")]
        assert modes == [0o750, 0o600]
        assert set((await desk.summary()).values()) == {
            "modified undone +0 -0",
            "created undone +0 -0",
        }

    at_desk(scene)


def test_a_file_that_changed_after_it_was_read_is_not_written(at_desk: Scene) -> None:
    async def scene(desk: Desk) -> None:
        desk["a.txt"], desk["b.txt"] = b"a\n", b"b\n"
        changes = [
            FileChange(path="a.txt", before=b"a\n", after=b"A\n"),
            FileChange(path="b.txt", before=b"b\n", after=None),
        ]
        await desk.checkpoints.record_plan(1, "call", changes)
        desk["b.txt"] = b"mine\n"
        with pytest.raises(ToolError, match=r"b\.txt was changed since it was read.*Nothing was written"):
            await desk.checkpoints.write_changes("call")
        assert (desk["a.txt"], desk["b.txt"]) == (b"a\n", b"mine\n")
        assert await desk.checkpoints.list_changed_files() == ()
        with pytest.raises(MisuseError):
            await desk.checkpoints.write_changes("call")

    at_desk(scene)


def test_an_edit_that_a_crash_interrupted_is_made_to_its_end(at_desk: Scene) -> None:
    changes = [FileChange(path=name, before=b"1\n", after=b"2\n") for name in ("a.txt", "b.txt")]

    async def scene(desk: Desk, written: int, *, marked: bool) -> None:
        desk["a.txt"], desk["b.txt"] = b"1\n", b"1\n"
        await desk.checkpoints.record_plan(1, "call", changes)
        if marked:
            await desk.checkpoints.write_changes("call")
        for change in changes[:written]:
            desk[change.path] = b"2\n"
        assert await desk.checkpoints.recover_writes(["call"]) == ()
        assert await desk.checkpoints.write_changes("call", resume=True) == tuple(changes)
        assert (desk["a.txt"], desk["b.txt"]) == (b"2\n", b"2\n")
        assert await desk.summary() == dict.fromkeys(("a.txt", "b.txt"), "modified open +1 -1")

    for written, marked in ((0, False), (1, False), (2, False), (2, True)):
        at_desk(lambda desk, written=written, marked=marked: scene(desk, written, marked=marked))


def test_an_interrupted_edit_does_not_write_over_what_the_person_did_since(at_desk: Scene) -> None:
    async def scene(desk: Desk) -> None:
        desk["a.txt"] = b"1\n"
        await desk.checkpoints.record_plan(1, "call", [FileChange(path="a.txt", before=b"1\n", after=b"2\n")])
        desk["a.txt"] = b"mine\n"
        with pytest.raises(ToolError, match=r"a\.txt was changed since .*ended while it was writing"):
            await desk.checkpoints.write_changes("call", resume=True)
        assert desk["a.txt"] == b"mine\n"

    at_desk(scene)


def test_an_interrupted_edit_that_the_person_took_back_stays_so(at_desk: Scene) -> None:
    async def scene(desk: Desk) -> None:
        desk["a.txt"] = b"1\n"
        await desk.checkpoints.record_plan(1, "call", [FileChange(path="a.txt", before=b"1\n", after=b"2\n")])
        await desk.checkpoints.write_changes("call")
        await desk.checkpoints.undo_changes()
        with pytest.raises(ToolError, match=r"kept or undone this change of a\.txt"):
            await desk.checkpoints.write_changes("call", resume=True)
        assert desk["a.txt"] == b"1\n"

    at_desk(scene)


def test_a_failed_write_says_what_was_written_before_it(at_desk: Scene) -> None:
    async def scene(desk: Desk) -> None:
        desk["a.txt"], desk["b.txt"], desk["c.txt"] = b"a\n", b"b\n", b"c\n"
        (desk.root / "b.txt").chmod(0o444)
        with pytest.raises(ToolError, match=r"read-only\. Written before that: a\.txt"):
            await desk.agent({"a.txt": b"A\n", "b.txt": b"B\n", "c.txt": b"C\n"})
        assert await desk.summary() == {"a.txt": "modified open +1 -1"}
        assert (await desk.checkpoints.undo_changes()).paths == ("a.txt",)
        assert desk["a.txt"] == b"a\n"

    at_desk(scene)


def test_the_persons_lines_stay_when_the_agents_are_taken_out(at_desk: Scene) -> None:
    async def scene(desk: Desk) -> None:
        desk["a.txt"] = BASE
        await desk.agent({"a.txt": swap(BASE, l3="agent")})
        desk["a.txt"] = swap(desk["a.txt"], l20="person")
        await desk.agent({"a.txt": swap(desk["a.txt"], l30="agent again")})
        desk["a.txt"] = swap(desk["a.txt"], l10="person again")
        assert await desk.summary() == {"a.txt": "modified open +2 -2 changed"}
        assert (await desk.checkpoints.undo_changes()).paths == ("a.txt",)
        assert desk["a.txt"] == swap(BASE, l20="person", l10="person again")

    at_desk(scene)


def test_lines_that_the_person_changed_after_the_agent_are_a_conflict_unless_forced(at_desk: Scene) -> None:
    async def scene(desk: Desk) -> None:
        desk["a.txt"], desk["b.txt"] = BASE, BASE
        await desk.agent({"a.txt": swap(BASE, l3="agent"), "b.txt": swap(BASE, l3="agent")})
        desk["a.txt"] = mine = swap(desk["a.txt"], l3="person", l9="person")
        undone = await desk.checkpoints.undo_changes()
        assert undone.paths == ("b.txt",)
        assert [each.path for each in undone.conflicts] == ["a.txt"]
        assert "changed by someone else in the same lines" in undone.conflicts[0].reason
        assert desk["a.txt"] == mine
        assert (await desk.summary())["a.txt"] == "modified open +1 -1 changed"
        assert (await desk.checkpoints.undo_changes(force=True)).paths == ("a.txt",)
        assert desk["a.txt"] == swap(BASE, l9="person")

    at_desk(scene)


@pytest.mark.parametrize("act", ["rename", "folder", "link", "parent link"])
def test_a_file_that_is_none_any_more_is_left_alone(at_desk: Scene, act: str) -> None:
    async def scene(desk: Desk) -> None:
        desk["src/a.txt"], desk["other/a.txt"] = BASE, b"other\n"
        await desk.agent({"src/a.txt": swap(BASE, l3="agent")})
        where = desk.root / "src" / "a.txt"
        where.rename(desk.root / "moved.txt")
        match act:
            case "folder":
                where.mkdir()
            case "link":
                where.symlink_to(desk.root / "other" / "a.txt")
            case "parent link":
                where.parent.rmdir()
                where.parent.symlink_to("other")
        before = {path: path.lstat().st_mtime_ns for path in desk.root.rglob("*")}
        undone = await desk.checkpoints.undo_changes(force=act != "rename")
        assert (undone.paths, len(undone.conflicts)) == ((), 1)
        assert {path: path.lstat().st_mtime_ns for path in desk.root.rglob("*")} == before

    at_desk(scene)


def test_a_new_file_that_the_person_went_on_with_stays(at_desk: Scene) -> None:
    async def scene(desk: Desk) -> None:
        await desk.agent({"made/a.txt": b"agent\n"})
        desk["made/a.txt"] = b"agent\nperson\n"
        assert len((await desk.checkpoints.undo_changes()).conflicts) == 1
        assert desk["made/a.txt"] == b"agent\nperson\n"
        assert (await desk.checkpoints.undo_changes(force=True)).paths == ("made/a.txt",)
        assert not (desk.root / "made").exists()

    at_desk(scene)


def test_folders_go_only_when_the_agent_made_them_and_nobody_uses_them(at_desk: Scene) -> None:
    async def scene(desk: Desk) -> None:
        desk["theirs/.keep"] = b""
        (desk.root / "theirs" / ".keep").unlink()
        await desk.agent({"theirs/a.txt": b"a\n", "one/two/a.txt": b"a\n"})
        await desk.agent({"one/two/b.txt": b"b\n", "one/c/c.txt": b"c\n"})
        desk["one/mine.txt"] = b"mine\n"
        await desk.checkpoints.undo_changes(path="one/two/a.txt")
        await desk.checkpoints.undo_changes(path="one/two/b.txt")
        assert not (desk.root / "one" / "two").exists()
        await desk.checkpoints.undo_changes()
        assert sorted(path.relative_to(desk.root).as_posix() for path in desk.root.rglob("*")) == [
            "one",
            "one/mine.txt",
            "theirs",
        ]

    at_desk(scene)


def test_one_hunk_among_several_is_undone_or_kept(at_desk: Scene) -> None:
    async def scene(desk: Desk) -> None:
        desk["a.txt"] = BASE
        await desk.agent({"a.txt": swap(BASE, l3="one", l15="two", l30="three")})
        (file,) = await desk.checkpoints.list_changed_files()
        assert [hunk.added for hunk in file.hunks] == [1, 1, 1]
        desk["a.txt"] = swap(desk["a.txt"], l22="person")
        assert (await desk.checkpoints.undo_changes(path="a.txt", hunk=file.hunks[1].id)).paths == ("a.txt",)
        assert desk["a.txt"] == swap(BASE, l3="one", l22="person", l30="three")
        assert await desk.checkpoints.keep_changes(path="a.txt", hunk=file.hunks[0].id) == ("a.txt",)
        (file,) = await desk.checkpoints.list_changed_files()
        assert ["three" in hunk.text for hunk in file.hunks] == [True]
        stale = await desk.checkpoints.undo_changes(path="a.txt", hunk="nonsense")
        assert "no longer has this hunk" in stale.conflicts[0].reason
        await desk.agent({"a.txt": swap(desk["a.txt"], l3="one more", l30="three more")})
        assert await desk.summary() == {"a.txt": "modified open +2 -2"}
        await desk.checkpoints.undo_changes()
        assert desk["a.txt"] == swap(BASE, l3="one", l22="person")
        assert await desk.summary() == {"a.txt": "modified kept +0 -0"}

    at_desk(scene)


def test_the_last_hunk_decided_settles_the_file(at_desk: Scene) -> None:
    async def scene(desk: Desk) -> None:
        desk["a.txt"], desk["b.txt"] = BASE, BASE
        await desk.agent({"a.txt": swap(BASE, l3="x"), "b.txt": swap(BASE, l3="x"), "c.txt": b"c\n", "d.bin": b"\0d"})
        files = {file.path: file for file in await desk.checkpoints.list_changed_files()}
        for path in ("a.txt", "c.txt"):
            await desk.checkpoints.undo_changes(path=path, hunk=files[path].hunks[0].id)
        for path in ("b.txt", "d.bin"):
            await desk.checkpoints.keep_changes(path=path, hunk=files[path].hunks[0].id)
        assert {path: words.split()[1] for path, words in (await desk.summary()).items()} == {
            "a.txt": "undone",
            "b.txt": "kept",
            "c.txt": "undone",
            "d.bin": "kept",
        }
        assert (desk["a.txt"], desk["c.txt"], desk["d.bin"]) == (BASE, None, b"\0d")
        await desk.checkpoints.undo_changes()
        assert (desk["b.txt"], desk["d.bin"]) == (swap(BASE, l3="x"), b"\0d")

    at_desk(scene)


def test_tasks_are_undone_apart_where_their_lines_are(at_desk: Scene) -> None:
    async def scene(desk: Desk) -> None:
        desk["a.txt"] = BASE
        await desk.agent({"a.txt": swap(BASE, l3="first", l10="first")}, task=1)
        await desk.agent({"a.txt": swap(desk["a.txt"], l20="second"), "b.txt": b"b\n"}, task=2)
        assert await desk.summary(1) == {"a.txt": "modified open +2 -2"}
        assert await desk.summary(2) == {"a.txt": "modified open +1 -1", "b.txt": "created open +1 -0"}
        assert (await desk.checkpoints.undo_changes(task=1)).paths == ("a.txt",)
        assert desk["a.txt"] == swap(BASE, l20="second")
        await desk.agent({"a.txt": swap(desk["a.txt"], l20="third")}, task=3)
        undone = await desk.checkpoints.undo_changes(task=2)
        assert (undone.paths, [each.path for each in undone.conflicts]) == (("b.txt",), ["a.txt"])
        assert (await desk.checkpoints.undo_changes()).paths == ("a.txt",)
        assert desk["a.txt"] == BASE

    at_desk(scene)


def test_what_is_kept_is_not_undone_any_more(at_desk: Scene) -> None:
    async def scene(desk: Desk) -> None:
        desk["a.txt"] = BASE
        await desk.agent({"a.txt": swap(BASE, l3="kept"), "b.txt": b"b\n"})
        assert await desk.checkpoints.keep_changes(path="a.txt") == ("a.txt",)
        await desk.agent({"a.txt": swap(desk["a.txt"], l3="open")})
        assert await desk.summary() == {"a.txt": "modified open +1 -1", "b.txt": "created open +1 -0"}
        await desk.checkpoints.undo_changes()
        assert (desk["a.txt"], desk["b.txt"]) == (swap(BASE, l3="kept"), None)

    at_desk(scene)


def test_binary_files_are_undone_whole_or_not_at_all(at_desk: Scene) -> None:
    async def scene(desk: Desk) -> None:
        desk["a.bin"], desk["b.bin"] = b"\0one", b"\0two"
        await desk.agent({"a.bin": b"\0ONE", "b.bin": b"\0TWO"})
        (hunk,) = (await desk.checkpoints.list_changed_files())[0].hunks
        assert hunk.text == "Binary files differ\n"
        desk["b.bin"] = b"\0mine"
        undone = await desk.checkpoints.undo_changes()
        assert (undone.paths, undone.conflicts[0].path) == (("a.bin",), "b.bin")
        assert (desk["a.bin"], desk["b.bin"]) == (b"\0one", b"\0mine")

    at_desk(scene)


def test_a_file_written_through_a_link_is_the_file_itself(at_desk: Scene) -> None:
    async def scene(desk: Desk) -> None:
        desk["real.txt"] = b"old\n"
        (desk.root / "link.txt").symlink_to("real.txt")
        await desk.agent({"link.txt": b"new\n"})
        assert list(await desk.summary()) == ["real.txt"]
        await desk.checkpoints.undo_changes()
        assert (desk.root / "link.txt").is_symlink()
        assert desk["real.txt"] == b"old\n"
        with pytest.raises(ToolError, match="twice in one call"):
            await desk.agent({"link.txt": b"1\n", "real.txt": b"2\n"})

    at_desk(scene)


def test_a_stopped_task_leaves_no_write_half_recorded(at_desk: Scene) -> None:
    async def scene(desk: Desk) -> None:
        for moment in range(12):
            path = f"{moment}.txt"
            await desk.checkpoints.record_plan(1, path, [FileChange(path=path, before=None, after=b"x\n")])
            making = asyncio.ensure_future(desk.checkpoints.write_changes(path))
            for _ in range(moment):
                await asyncio.sleep(0)
            making.cancel()
            await asyncio.wait([making])
            known = {file.path for file in await desk.checkpoints.list_changed_files()}
            assert (desk[path] is not None) == (path in known)
        await desk.checkpoints.recover_writes()
        await desk.checkpoints.undo_changes()
        assert list(desk.root.iterdir()) == []

    at_desk(scene)


def test_sessions_do_not_see_each_other(at_desk: Scene) -> None:
    async def scene(desk: Desk) -> None:
        other = Desk(desk.root, desk.store, "two")
        desk["a.txt"] = BASE
        await desk.agent({"a.txt": swap(BASE, l3="one")})
        await other.agent({"a.txt": swap(desk["a.txt"], l20="two")})
        await desk.checkpoints.undo_changes()
        assert desk["a.txt"] == swap(BASE, l20="two")
        assert await other.summary() == {"a.txt": "modified open +1 -1 changed"}

    at_desk(scene)


@pytest.mark.parametrize(
    ("on_disk", "outcome", "after_undo"),
    [
        (swap(BASE, l3="agent"), "written", BASE),
        (BASE, "not written", BASE),
        (swap(BASE, l3="agent", l20="person"), "changed since", swap(BASE, l20="person")),
        (swap(BASE, l20="person"), "changed since", swap(BASE, l20="person")),
    ],
)
def test_an_interrupted_write_is_told_by_what_is_in_the_file(
    at_desk: Scene, on_disk: bytes, outcome: str, after_undo: bytes
) -> None:
    async def scene(desk: Desk) -> None:
        desk["a.txt"] = BASE
        change = FileChange(path="a.txt", before=BASE, after=swap(BASE, l3="agent"))
        await desk.checkpoints.record_plan(4, "call", [change])
        desk["a.txt"] = on_disk
        later = Desk(desk.root, desk.store).checkpoints
        assert await later.recover_writes() == (
            RecoveredWrite(path="a.txt", task=4, call="call", kind="edit", outcome=outcome),  # type: ignore[arg-type]
        )
        assert await later.recover_writes() == ()
        await later.undo_changes()
        assert desk["a.txt"] == after_undo

    at_desk(scene)


def test_a_call_that_is_made_again_after_a_crash_does_not_lose_what_it_wrote_before(at_desk: Scene) -> None:
    async def scene(desk: Desk) -> None:
        desk["a.txt"] = b"one\n"
        await desk.checkpoints.record_plan(1, "call", [FileChange(path="a.txt", before=b"one\n", after=b"two\n")])
        desk["a.txt"] = b"two\n"  # written, and then the crash
        await desk.checkpoints.record_plan(1, "call", [FileChange(path="a.txt", before=b"two\n", after=b"three\n")])
        await desk.checkpoints.write_changes("call")
        await desk.checkpoints.undo_changes()
        assert desk["a.txt"] == b"one\n"

    at_desk(scene)


def test_only_our_own_leftovers_are_cleared_away(at_desk: Scene) -> None:
    async def scene(desk: Desk) -> None:
        ours, theirs = f"src/.callwright-{'a' * 16}.tmp", f"src/.callwright-{'b' * 16}.tmp"
        desk["src/a.txt"] = b"old\n"
        await desk.checkpoints.record_plan(
            1, "call", [FileChange(path="src/a.txt", before=b"old\n", after=b"new text\n")]
        )
        desk[ours], desk[theirs], desk["src/notes.tmp"] = b"new te", b"another session's", b"new"
        await desk.checkpoints.recover_writes()
        assert (desk[ours], desk[theirs], desk["src/notes.tmp"]) == (None, b"another session's", b"new")

    at_desk(scene)
