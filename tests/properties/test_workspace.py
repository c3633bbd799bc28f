"""Laws of the workspace over random trees of folders, files and symlinks, compared with what the system itself says."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from callwright.agent.workspace.workspace import Workspace
from callwright.errors import ToolError

NAMES = st.sampled_from(["a", "b", "c"])
STEPS = st.sampled_from(["a", "b", "c", "..", ".", ""])
PATHS = st.lists(STEPS, min_size=1, max_size=7).map("/".join)
# Where something is, and what: None for a folder, text for a symlink's target, bytes for a file.
# `R` in a target stands for the root.
TARGETS = PATHS | PATHS.map("R/{}".format)
THINGS = st.lists(
    st.tuples(st.lists(NAMES, min_size=1, max_size=3).map("/".join), st.none() | TARGETS | st.just(b"file")),
    max_size=12,
)


def is_there(path: str) -> bool:
    """By the system's own walk: `Path` would tidy `file/.` into `file`."""
    try:
        os.stat(path)  # noqa: PTH116
    except OSError:
        return False
    return True


def stays(path: str) -> bool:
    return ".." not in path and not path.startswith("/")


def plant(root: Path, things: list[tuple[str, str | bytes | None]]) -> None:
    for name, what in things:
        try:
            match what:
                case None:
                    (root / name).mkdir(parents=True)
                case bytes():
                    (root / name).write_bytes(what)
                case str():
                    (root / name).symlink_to(what.replace("R", str(root)) or ".")
        except (OSError, RuntimeError):
            continue  # the way there is a file, a loop, or leads out


@given(THINGS, st.lists(PATHS, min_size=1, max_size=8), st.booleans())
def test_a_path_leads_where_the_system_says_or_is_refused(
    things: list[tuple[str, str | bytes | None]], paths: list[str], absolute: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "root"
        root.mkdir()
        plant(root, things)
        workspace = Workspace(root)
        for path in paths:
            said = f"{root}/{path}" if absolute else path.lstrip("/")
            full = said if absolute else f"{root}/{said}"
            real = Path(os.path.realpath(full))
            inside = real == root or root in real.parents
            try:
                name = workspace.resolve_path(said)
            except ToolError:
                continue
            assert inside
            assert workspace.resolve_path(name) == name
            if is_there(full):
                assert root / name == real
            elif workspace.get_kind(said) != "missing":
                # `missing/..` is nothing for the system; here it is the folder that it would be in.
                assert ".." in said


@given(THINGS, PATHS)
def test_what_is_inside_and_stays_inside_is_found(things: list[tuple[str, str | bytes | None]], path: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "root"
        root.mkdir()
        plant(root, [thing for thing in things if not isinstance(thing[1], str) or stays(thing[1])])
        said = path.lstrip("/")
        if stays(said) and is_there(f"{root}/{said}"):
            assert root / Workspace(root).resolve_path(said) == Path(os.path.realpath(f"{root}/{said}"))


@given(st.text(max_size=60), st.binary(max_size=40))
def test_any_text_as_a_path_is_a_file_inside_or_refused(path: str, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        root.mkdir()
        workspace = Workspace(root)
        try:
            workspace.write_file(path, data)
        except ToolError:
            assert [path.name for path in Path(folder).iterdir()] == ["root"]
            return
        assert [path.name for path in Path(folder).iterdir()] == ["root"]
        assert workspace.read_file(path) == data
        assert list(workspace.iter_files()) == [workspace.resolve_path(path)]
