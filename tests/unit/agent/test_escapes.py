"""No path leads out of the workspace, for reading, writing, deleting or listing, also while folders become symlinks."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from callwright.agent.workspace.workspace import Workspace
from callwright.errors import ToolError
from tests.support.escapes import SECRET, Escape, escapes, ground

ESCAPES = escapes()
OPERATIONS: dict[str, Callable[[Workspace, str], object]] = {
    "relative": lambda workspace, path: workspace.resolve_path(path),
    "kind": lambda workspace, path: workspace.get_kind(path),
    "read": lambda workspace, path: workspace.read_file(path),
    "write": lambda workspace, path: workspace.write_file(path, b"written"),
    "delete": lambda workspace, path: workspace.delete(path),
    "entries": lambda workspace, path: workspace.list_entries(path),
    "files": lambda workspace, path: list(workspace.iter_files(path)),
}


def test_there_are_enough_ways_out() -> None:
    assert len([escape for escape in ESCAPES if not escape.stays_inside]) >= 40
    assert len({escape.id for escape in ESCAPES}) == len(ESCAPES)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.id)
def test_a_way_out_is_refused(tmp_path: Path, escape: Escape, operation: str) -> None:
    there = ground(tmp_path, escape)
    if escape.stays_inside:
        with suppress(ToolError):
            OPERATIONS[operation](there.workspace, there.path)
        if operation == "write":
            assert (there.workspace.root / there.path).read_bytes() == b"written"
    else:
        with pytest.raises(ToolError) as refused:
            OPERATIONS[operation](there.workspace, there.path)
        assert SECRET not in str(refused.value)
        assert len(str(refused.value)) < 600
    assert there.is_untouched()


def test_a_root_that_became_a_symlink_is_refused(tmp_path: Path) -> None:
    there = ground(tmp_path, ESCAPES[0])
    there.workspace.root.rename(tmp_path / "moved")
    there.workspace.root.symlink_to(there.outside)
    for operation in OPERATIONS.values():
        with pytest.raises(ToolError):
            operation(there.workspace, "secret.txt")
    assert there.is_untouched()


def test_a_root_that_became_another_folder_is_refused(tmp_path: Path) -> None:
    there = ground(tmp_path, ESCAPES[0])
    there.workspace.root.rename(tmp_path / "moved")
    shutil.copytree(there.outside, there.workspace.root)
    for operation in OPERATIONS.values():
        with pytest.raises(ToolError, match="replaced"):
            operation(there.workspace, "secret.txt")


@contextmanager
def swapping(name: Path, outside: Path) -> Iterator[None]:
    """While the block runs, `name` is now itself and now a symlink to `outside`, and in between nothing."""
    aside = name.with_name("aside")
    stop = threading.Event()

    def swap() -> None:
        # Whatever was made at the name meanwhile is in the way, and goes.
        while not stop.is_set():
            with suppress(OSError):
                name.rename(aside)
            with suppress(OSError):
                name.symlink_to(outside)
            with suppress(OSError):
                name.unlink()
            shutil.rmtree(name, ignore_errors=True)
            with suppress(OSError):
                aside.rename(name)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        yield
    finally:
        stop.set()
        swapper.join()


@pytest.mark.parametrize("path", ["folder", "folder/deep"])
def test_a_folder_that_turns_into_a_symlink_under_way_leads_nowhere(tmp_path: Path, path: str) -> None:
    there = ground(tmp_path, ESCAPES[0])
    swapped = there.workspace.root / path
    swapped.mkdir(parents=True)
    (swapped / "secret.txt").write_text("inside")
    seen: set[bytes] = set()
    refused = 0
    with swapping(swapped, there.outside):
        for turn in range(4000):
            try:
                seen.add(there.workspace.read_file(f"{path}/secret.txt"))
                there.workspace.write_file(f"{path}/new-{turn % 7}.txt", b"written")
                names = {entry.name for entry in there.workspace.list_entries(path)}
                assert "sub" not in names
                there.workspace.delete(f"{path}/new-{turn % 7}.txt")
            except ToolError:
                refused += 1
    assert seen <= {b"inside"}
    assert refused, "the folder was never swapped at the wrong moment: the test shows nothing"
    assert there.is_untouched()


def test_a_file_that_turns_into_a_symlink_under_way_leads_nowhere(tmp_path: Path) -> None:
    there = ground(tmp_path, ESCAPES[0])
    name = there.workspace.root / "file.txt"
    name.write_text("inside")
    with swapping(name, there.outside / "secret.txt"):
        for _ in range(4000):
            with suppress(ToolError):
                assert there.workspace.read_file("file.txt") in {b"inside", b"written"}
                there.workspace.write_file("file.txt", b"written")
                there.workspace.delete("file.txt")
                there.workspace.write_file("file.txt", b"inside")
    assert there.is_untouched()


def test_a_walk_whose_folder_is_moved_out_goes_back_to_where_it_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`a/../secret.txt`, with `a` moved outside between the two steps: `..` of the moved folder would be outside."""
    there = ground(tmp_path, ESCAPES[0])
    (there.workspace.root / "a").mkdir()
    step = os.open

    def moving(path: object, *arguments: object, **named: object) -> int:
        opened = step(path, *arguments, **named)  # type: ignore[arg-type]
        if path == "a":
            (there.workspace.root / "a").rename(there.outside / "a")
        return opened

    monkeypatch.setattr(os, "open", moving)
    assert there.workspace.resolve_path("a/../secret.txt") == "secret.txt"
    assert there.workspace.get_kind("secret.txt") == "missing"
