"""What a workspace does with the files that are in it."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from callwright.agent.workspace import confined_path
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import ConfigError, ToolError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "app.py").write_text("print()\n")
    return folder


@pytest.fixture
def workspace(root: Path) -> Workspace:
    return Workspace(root)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def git(root: Path, *words: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True)


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("src/app.py", "src/app.py"),
        ("./src//./app.py", "src/app.py"),
        ("src/../src/app.py", "src/app.py"),
        (".", "."),
        ("", "."),
        ("src/", "src"),
        ("src/..", "."),
        ("new/folder/file.py", "new/folder/file.py"),
        ("new/../src/app.py", "src/app.py"),
        ("{root}", "."),
        ("{root}/src/app.py", "src/app.py"),
        ("/{root}//src/./app.py", "src/app.py"),
        ("link", "src/app.py"),
        ("folder/app.py", "src/app.py"),
        ("folder/new.py", "src/new.py"),
        ("folder/..", "."),
        ("absolute", "src/app.py"),
        ("src/up/src/app.py", "src/app.py"),
        ("src/deep/absolute", "src/app.py"),
        ("src/deep/root/src/app.py", "src/app.py"),
        ("src/deep/root/new.py", "new.py"),
    ],
)
def test_every_path_to_a_file_has_one_name(workspace: Workspace, root: Path, path: str, canonical: str) -> None:
    (root / "link").symlink_to("src/app.py")
    (root / "folder").symlink_to("src/")
    (root / "absolute").symlink_to(root / "src" / "app.py")
    (root / "src" / "up").symlink_to("..")
    (root / "src" / "deep").mkdir()
    (root / "src" / "deep" / "absolute").symlink_to(root / "src" / "app.py")
    (root / "src" / "deep" / "root").symlink_to(root)
    assert workspace.resolve_path(path.replace("{root}", str(root))) == canonical


@pytest.mark.parametrize("name", ["~", "~user", "$HOME", "a\\b", "line\nbreak", "file:", "%TEMP%"])
def test_a_strange_name_is_meant_where_there_is_such_a_file(workspace: Workspace, root: Path, name: str) -> None:
    (root / name).write_text("strange")
    assert workspace.read_file(name) == b"strange"
    assert workspace.resolve_path(name) == name


def test_the_root_must_be_a_folder_of_a_project(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for wrong in (tmp_path / "missing", tmp_path / "file", Path("/")):
        with pytest.raises(ConfigError):
            Workspace(wrong)


def test_a_root_that_is_a_symlink_is_taken_for_what_it_leads_to(root: Path, tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to(root)
    assert Workspace(tmp_path / "current").root == root


def test_kinds(workspace: Workspace, root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "link").symlink_to("src")
    kinds = [workspace.get_kind(path) for path in ("src/app.py", "src", "link", "none", "none/none", "pipe", ".")]
    assert kinds == ["file", "folder", "folder", "missing", "missing", "other", "folder"]


@pytest.mark.timeout(300)
def test_reading_says_what_is_wrong_and_never_waits(workspace: Workspace, root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "large").write_bytes(b"x" * 1001)
    for path, sentence in {
        "none.txt": "'none.txt' does not exist",
        "src": "is a folder, not a file",
        "pipe": "is a device, a pipe or a socket",
        "large": "is too large: 1,001 bytes, 1,000 at most",
    }.items():
        with pytest.raises(ToolError, match=sentence):
            workspace.read_file(path, limit_bytes=1000)
    assert len(workspace.read_file("large", limit_bytes=1001)) == 1001


def test_writing_makes_the_folders_on_the_way_and_leaves_nothing_behind(workspace: Workspace, root: Path) -> None:
    workspace.write_file("docs/guide/intro.md", b"# Intro\n")
    assert (root / "docs/guide/intro.md").read_bytes() == b"# Intro\n"
    assert names(root / "docs/guide") == ["intro.md"]


def test_a_new_file_gets_the_mode_that_any_program_would_give_it(workspace: Workspace, root: Path) -> None:
    workspace.write_file("new.txt", b"")
    (root / "other.txt").touch()
    assert (root / "new.txt").stat().st_mode == (root / "other.txt").stat().st_mode


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o640])
def test_a_file_keeps_its_mode(workspace: Workspace, root: Path, mode: int) -> None:
    (root / "run.sh").touch()
    (root / "run.sh").chmod(mode)
    workspace.write_file("run.sh", b"#!/bin/sh\n")
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == mode


def test_a_symlink_stays_one_and_what_it_leads_to_is_written(workspace: Workspace, root: Path) -> None:
    (root / "link").symlink_to("src/app.py")
    (root / "dangling").symlink_to("src/new/mod.py")
    workspace.write_file("link", b"1")
    workspace.write_file("dangling", b"2")
    assert (root / "link").is_symlink()
    assert (root / "src/app.py").read_bytes() == b"1"
    assert (root / "src/new/mod.py").read_bytes() == b"2"


def test_a_hard_link_to_a_file_outside_is_cut_and_not_written_through(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside.txt").write_text("theirs")
    (root / "inside.txt").hardlink_to(tmp_path / "outside.txt")
    workspace.write_file("inside.txt", b"ours")
    assert (tmp_path / "outside.txt").read_text() == "theirs"
    assert workspace.read_file("inside.txt") == b"ours"


def test_writing_refuses_what_is_no_file(workspace: Workspace, root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "locked").touch()
    (root / "locked").chmod(0o444)
    for path in ("src", ".", "pipe", "new/", "src/app.py/x", "locked"):
        with pytest.raises(ToolError):
            workspace.write_file(path, b"x")
    assert names(root) == ["locked", "pipe", "src"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolError, match="no space left"):
        workspace.write_file("src/app.py", b"new")
    assert names(root / "src") == ["app.py"]
    assert (root / "src/app.py").read_text() == "print()\n"


def test_deleting(workspace: Workspace, root: Path) -> None:
    (root / "link").symlink_to("src/app.py")
    with pytest.raises(ToolError, match="not empty"):
        workspace.delete("src")
    workspace.delete("link")
    workspace.delete("src")
    assert names(root) == ["link"]
    for path in ("src", ".", "link", ""):
        with pytest.raises(ToolError):
            workspace.delete(path)


def test_entries_have_names_kinds_and_sizes(workspace: Workspace, root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "in").symlink_to("src/app.py")
    (root / "out").symlink_to("/etc")
    (root / "void").symlink_to("nothing")
    os.close(os.open(bytes(root) + b"/na\xefve", os.O_CREAT))
    assert workspace.list_entries() == [
        ("in", "file", 10),
        ("na\\xefve", "file", 0),
        ("out", "other", 0),
        ("pipe", "other", 0),
        ("src", "folder", 0),
        ("void", "missing", 0),
    ]
    for path in ("src/app.py", "none"):
        with pytest.raises(ToolError):
            workspace.list_entries(path)


def test_files_are_what_git_would_take(workspace: Workspace, root: Path) -> None:
    git(root, "init", "-q")
    (root / ".gitignore").write_text("*.log\nbuilt/\n")
    (root / "built").mkdir()
    for name in ("built/x.js", "trace.log", "src/deleted.py", "ünï.txt", "a\nb"):
        (root / name).touch()
    git(root, "add", "src")
    (root / "src/deleted.py").unlink()
    (root / "link").symlink_to("src/app.py")
    (root / "out").symlink_to("/etc")
    assert list(workspace.iter_files()) == [".gitignore", "a\nb", "src/app.py", "ünï.txt"]
    assert list(workspace.iter_files("src")) == ["src/app.py"]


def test_files_of_a_repository_inside_are_files_too(workspace: Workspace, root: Path) -> None:
    git(root, "init", "-q")
    (root / "library").mkdir()
    git(root / "library", "init", "-q")
    (root / "library" / "code.c").touch()
    assert list(workspace.iter_files()) == ["library/code.c", "src/app.py"]


def test_files_without_git_leave_out_what_nobody_wrote(workspace: Workspace, root: Path) -> None:
    for name in ("node_modules/x/index.js", ".venv/bin/python", "target/CACHEDIR.TAG", "target/out", "CACHEDIR.TAG"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / "loop").symlink_to(".")
    os.mkfifo(root / "pipe")
    assert list(workspace.iter_files()) == ["CACHEDIR.TAG", "src/app.py"]
    assert list(workspace.iter_files("src")) == ["src/app.py"]


def test_listing_files_runs_nothing_that_the_project_names(workspace: Workspace, root: Path, tmp_path: Path) -> None:
    git(root, "init", "-q")
    git(root, "config", "core.fsmonitor", f"touch {tmp_path}/ran; false")
    assert list(workspace.iter_files()) == ["src/app.py"]
    assert not (tmp_path / "ran").exists()


def test_a_repository_of_somebody_else_is_not_asked(
    workspace: Workspace, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q", "elsewhere")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere" / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    (root / "node_modules").mkdir()
    (root / "node_modules" / "x.js").touch()
    assert list(workspace.iter_files()) == ["src/app.py"]


def test_where_case_does_not_count_a_file_has_the_name_that_its_folder_says(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system of this machine may well be one where it counts, so one where it does not is played."""
    (root / ".env").write_text("KEY=1")
    (root / "decoy").hardlink_to(root / ".env")
    look, open_ = os.stat, os.open

    def there(name: object, folder: int | None) -> object:
        if not isinstance(name, str) or folder is None:
            return name
        with os.scandir(folder) as scan:
            return next((each.name for each in scan if each.name.lower() == name.lower()), name)

    def folded_stat(name: str, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        return look(there(name, dir_fd), dir_fd=dir_fd, follow_symlinks=follow_symlinks)  # type: ignore[call-overload]

    def folded_open(name: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        return open_(there(name, dir_fd), flags, mode, dir_fd=dir_fd)  # type: ignore[call-overload]

    monkeypatch.setattr(confined_path.os, "stat", folded_stat)
    monkeypatch.setattr(confined_path.os, "open", folded_open)
    assert workspace.resolve_path(".ENV") == ".env"
    assert workspace.resolve_path("SRC/App.PY") == "src/app.py"
    assert workspace.read_file(".Env") == b"KEY=1"


def test_descriptors_are_given_back(workspace: Workspace, root: Path) -> None:
    def descriptors() -> int:
        return len(names(Path("/dev/fd")))

    (root / "link").symlink_to("src/../src/../..")
    before = descriptors()
    for path in ("src/app.py", "link", "src/x/y", "src/app.py/x", "none", "src", "."):
        for operation in (workspace.read_file, workspace.get_kind, workspace.list_entries, workspace.delete):
            try:
                operation(path)
            except ToolError:
                continue
        list(workspace.iter_files())
    assert descriptors() == before
