"""Ways out of the workspace, tried by a model in a real session: every one is refused, and nothing outside is touched.

`test_agent_paths` has every tool over every way out; here are the ways that are no path of a tool: folders of commands,
names in patches, globs, the arguments of checkers, and folders that turn into symlinks while tools work.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from callwright.agent.session_api import ApprovalReply
from callwright.agent.session_events import ApprovalRequested, ToolFinished
from callwright.agent.tools import find_tool
from callwright.agent.tools.base import EditTool, ReadTool, ToolContext
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import ToolError
from tests.support.desks import DONE, Place, tool
from tests.support.escapes import SECRET, Escape, Ground, escapes, ground
from tests.support.sampling import FULL, sample
from tests.support.tool_cases import make

OUT = [escape for escape in escapes() if not escape.stays_inside]


def worked(base: Path, here: Ground, calls: Sequence[dict[str, Any]], **agent: Any) -> list[ToolFinished]:
    """A model makes these calls, and everything that is asked is allowed."""
    place = Place(base, {}, [*([call] for call in calls), [DONE]], **agent)
    place.root = here.workspace.root

    async def run() -> list[ToolFinished]:
        async with asyncio.timeout(120), place.desk("--max-iterations", "1000") as desk:
            session = await desk.open()

            def person(stamped: Any) -> None:
                if isinstance(stamped.event, ApprovalRequested):
                    session.answer_approval(stamped.event.approval, ApprovalReply(verdict="once"))

            session.subscribe(person)
            await session.run("what is it?")
            ended = [stamped.event for stamped in session.events if isinstance(stamped.event, ToolFinished)]
            await session.close()
            return ended

    return asyncio.run(run())


def base_of(tmp_path: Path) -> Path:
    base = tmp_path / "person"
    base.mkdir()
    return base


# ── every way out, by every tool, in a session ───────────────────────────────────────────────────


@pytest.mark.parametrize("escape", sample(OUT[::6], 5), ids=lambda escape: escape.id)
def test_a_session_lets_no_tool_out_even_if_the_person_allows_everything(tmp_path: Path, escape: Escape) -> None:
    here = ground(tmp_path / "ground", escape)
    path = here.path if here.path.isprintable() else here.path.encode("utf-8", "replace").decode()
    patch = f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch"
    calls = [
        tool("read_file", path=path),
        tool("list_files", path=path),
        tool("search_workspace", query="secret", path=path),
        tool("get_diagnostics", path=path),
        tool("write_file", path=path, content="x"),
        tool("edit_file", path=path, old=SECRET, new="x"),
        tool("apply_patch", patch=patch),
        tool("run_terminal_command", command="pwd", folder=path),
    ]
    ended = worked(base_of(tmp_path), here, calls)
    assert [each.status for each in ended] == ["error"] * len(calls), [each.content for each in ended]
    assert all(SECRET not in each.content for each in ended)
    assert here.is_untouched()


# ── names in patches ─────────────────────────────────────────────────────────────────────────────

HUNK = "@@\n-{secret}\n+x\n"
BODIES = {  # of `*** Begin Patch`
    "update": f"*** Update File: ../outside/secret.txt\n{HUNK}",
    "delete": "*** Delete File: src/../../outside/secret.txt\n",
    "move out": "*** Update File: readme.txt\n*** Move to: ../outside/x\n@@\n-inside\n+x\n",
    "move in": f"*** Update File: ../outside/secret.txt\n*** Move to: x\n{HUNK}",
    "one good, one bad": "*** Add File: good.txt\n+x\n*** Add File: {outside}/bad.txt\n+x\n",
}
LINES = "@@ -1 +1 @@\n-{secret}\n+x\n"
PATCHES = {
    **{how: f"*** Begin Patch\n{body}*** End Patch" for how, body in BODIES.items()},
    "dots after a/": f"--- a/../../outside/secret.txt\n+++ b/../../outside/secret.txt\n{LINES}",
    "only the new name": "--- a/readme.txt\n+++ b/../outside/x\n@@ -1 +1 @@\n-inside\n+x\n",
    "a new file": "--- /dev/null\n+++ b/../outside/x\n@@ -0,0 +1 @@\n+x\n",
    "a deleted file": "--- a/../outside/secret.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-{secret}\n",
    "git's rename": "diff --git a/readme.txt b/../outside/x\nrename from readme.txt\nrename to ../outside/x\n",
    "git's copy": "diff --git a/../outside/secret.txt b/x\ncopy from ../outside/secret.txt\ncopy to x\n",
    "a quoted name": f'--- "a/..\\057outside/secret.txt"\n+++ "b/..\\057outside/secret.txt"\n{LINES}',
    "absolute": f"--- {{outside}}/secret.txt\n+++ {{outside}}/secret.txt\n{LINES}",
    "a link that it makes": (
        "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+../outside/secret.txt\n"
        "\\ No newline at end of file\n"
    ),
}


@pytest.mark.parametrize("how", PATCHES)
def test_a_patch_names_nothing_outside(tmp_path: Path, how: str) -> None:
    here = ground(tmp_path, OUT[0])
    patch = PATCHES[how].replace("{secret}", SECRET).replace("{outside}", str(here.outside))
    editor = find_tool("apply_patch")
    assert isinstance(editor, EditTool)
    with suppress(ToolError):  # or nothing of it is outside
        make(editor.plan_changes({"patch": patch}, here.workspace), here.workspace)
    assert here.is_untouched()
    inside = [path for path in here.workspace.root.rglob("*") if path.is_file()]
    assert not any(path.is_symlink() for path in inside)
    assert not any(SECRET in path.read_text() for path in inside)
    assert not (here.workspace.root / "good.txt").exists(), "all of a patch or nothing"
    assert (here.workspace.root / "readme.txt").exists()


# ── globs, and names that look like options ──────────────────────────────────────────────────────


def read(name: str, workspace: Workspace, **arguments: Any) -> str:
    reader = find_tool(name)
    assert isinstance(reader, ReadTool)
    room = ToolContext(
        workspace=workspace, report_progress=lambda words: None, environment={"PATH": os.environ["PATH"]}
    )
    try:
        return asyncio.run(reader.read(arguments, room))
    except ToolError as error:
        return str(error)


@pytest.mark.parametrize(
    "glob",
    [
        "../*",
        "../**",
        "../outside/*",
        "**/../../*",
        "/etc/*",
        "{outside}/*",
        "link/*",
        "link/**",
        "**/*",
        "*/../*",
        "~/*",
    ],
)
def test_a_glob_finds_nothing_outside(tmp_path: Path, glob: str) -> None:
    here = ground(tmp_path, OUT[0])
    (here.workspace.root / "link").symlink_to(here.outside)
    glob = glob.replace("{outside}", str(here.outside))
    listed = read("list_files", here.workspace, glob=glob)
    searched = read("search_workspace", here.workspace, query="secret", glob=glob)
    assert "secret.txt" not in listed
    assert SECRET not in searched
    assert "passwd" not in listed


@pytest.mark.parametrize("name", ["-rf", "--config=x.py", "--fix.py", "-c.py", "--help", "-.json", "@args.py", "-o.ts"])
def test_a_file_that_is_named_like_an_option_is_a_file(tmp_path: Path, name: str) -> None:
    here = ground(tmp_path, OUT[0])
    (here.workspace.root / name).write_text("x = (\n")
    before = {path: path.read_bytes() for path in here.workspace.root.rglob("*") if path.is_file()}
    said = read("get_diagnostics", here.workspace, path=name)
    assert "usage:" not in said.lower()
    after = {path: path.read_bytes() for path in here.workspace.root.rglob("*") if path.is_file()}
    assert after == before
    assert here.is_untouched()


# ── commands ─────────────────────────────────────────────────────────────────────────────────────


def test_a_command_that_leaves_is_brought_back(tmp_path: Path) -> None:
    here = ground(tmp_path / "ground", OUT[0])
    (here.workspace.root / "link").symlink_to(here.outside)
    commands = ["cd ..", "cd /", "cd link", "cd link/..", "pushd /tmp", "cd src && cd ../.."]
    calls = [call for text in commands for call in (run(text), run("pwd"))]
    ended = worked(base_of(tmp_path), here, calls)
    assert {each.content.splitlines()[-1] for each in ended[1::2]} == {str(here.workspace.root)}
    assert here.is_untouched()


def run(text: str) -> dict[str, Any]:
    return tool("run_terminal_command", command=text)


def test_a_call_that_names_no_command_is_told_so_and_the_task_goes_on(tmp_path: Path) -> None:
    here = ground(tmp_path / "ground", OUT[0])
    wrong: list[dict[str, Any]] = [{}, {"command": ""}, {"command": 7}, {"command": "ls", "folder": 7}, {"cmd": None}]
    right = tool("read_file", path="readme.txt")
    calls = [call for arguments in wrong for call in (tool("run_terminal_command", **arguments), right)]
    ended = worked(base_of(tmp_path), here, calls)
    assert [each.status for each in ended] == ["error", "ok"] * len(wrong), [each.content for each in ended]


# ── folders that turn into symlinks ──────────────────────────────────────────────────────────────


@contextmanager
def swapping(name: Path, outside: Path) -> Iterator[None]:
    """While the block runs, `name` is now a folder and now a symlink to `outside`."""
    aside = name.with_name("aside")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for step in (
                lambda: name.rename(aside),
                lambda: name.symlink_to(outside),
                lambda: name.unlink(),
                lambda: shutil.rmtree(name),
                lambda: aside.rename(name),
            ):
                with suppress(OSError):
                    step()

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        yield
    finally:
        stop.set()
        swapper.join()


RACES: dict[str, dict[str, Any]] = {
    "read_file": {"path": "folder/secret.txt"},
    "list_files": {"path": "folder"},
    "search_workspace": {"query": "the secret", "path": "folder"},
    "write_file": {"path": "folder/secret.txt", "content": "changed"},
    "edit_file": {"path": "folder/secret.txt", "old": "inside", "new": "changed"},
    "apply_patch": {"patch": "*** Begin Patch\n*** Delete File: folder/secret.txt\n*** End Patch"},
}


@pytest.mark.parametrize("name", RACES)
def test_no_tool_follows_a_folder_that_turns_into_a_symlink(tmp_path: Path, name: str) -> None:
    here = ground(tmp_path, OUT[0])
    folder = here.workspace.root / "folder"
    folder.mkdir()
    (folder / "secret.txt").write_text("inside")
    used = find_tool(name)
    doing: Callable[[], object]
    if isinstance(used, EditTool):
        doing = lambda: make(used.plan_changes(RACES[name], here.workspace), here.workspace)  # noqa: E731
    else:
        doing = lambda: read(name, here.workspace, **RACES[name])  # noqa: E731
    said = set()
    with swapping(folder, here.outside):
        for _ in range(300 if FULL else 100):
            with suppress(ToolError, OSError):
                said.add(str(doing()))
    assert not any(SECRET in each for each in said)
    assert not any("sub/" in each for each in said)
    assert here.is_untouched()
