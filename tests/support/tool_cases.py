"""Calls of the agent's tools as folders: `tests/vectors/tools/TOOL/NNN_case/`.

`input/` is the workspace before, `call.json` the call, `result.json` what comes of it, and `expected/` the workspace
after, where the tool plans changes; `after` in `result.json` has files that git would not keep as they are. A name that
ends in `_like` has a pattern instead of the very words. `call.json` may also say:

- `files`: more files for the workspace, for what git would not keep as it is; `{"base64": …}` for bytes, `{"lines": N}`
  for a long one;
- `git`: the workspace is a repository;
- `protected`: globs of files that nobody was asked about;
- `programs`: the only programs on the path; the case is skipped where one is not installed;
- `project_code`: false where programs may not run code of the workspace;
- `completed`: the answer to a deferred call.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from base64 import b64decode
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from callwright.agent.changes.file_change import FileChange
from callwright.agent.tools import find_tool
from callwright.agent.tools.base import CommandTool, EditTool, ExternalTool, ReadTool, ToolContext
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import ToolError

CASES = Path(__file__).parents[1] / "vectors" / "tools"
FOUND_ON = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def cases() -> list[Path]:
    """Every case, by name."""
    return sorted(path.parent for path in CASES.glob("*/*/call.json"))


def load(case: Path, name: str) -> dict[str, Any]:
    """One of a case's two files."""
    found: dict[str, Any] = json.loads((case / name).read_text(encoding="utf-8"))
    return found


def build(case: Path, root: Path) -> None:
    """The workspace as it is before the call."""
    root.mkdir()
    if (case / "input").is_dir():
        shutil.copytree(case / "input", root, dirs_exist_ok=True)
    call = load(case, "call.json")
    for name, content in call.get("files", {}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_content(content))
    if call.get("git"):
        subprocess.run(["git", "init", "-q", str(root)], check=True)


def _content(content: str | dict[str, Any]) -> bytes:
    if isinstance(content, str):
        return content.encode()
    if "lines" in content:
        return "".join(f"line {number}\n" for number in range(1, content["lines"] + 1)).encode()
    return b64decode(content["base64"]) * content.get("times", 1)


def room_for(case: Path, root: Path, programs: Path) -> ToolContext:
    """What the tool may use."""
    call = load(case, "call.json")
    programs.mkdir()
    for name in call.get("programs", ()):
        real = shutil.which(name, path=FOUND_ON)
        if real is None:
            pytest.skip(f"{name} is not installed")
        (programs / name).symlink_to(real)
    hidden = call.get("protected", ())
    return ToolContext(
        workspace=Workspace(root),
        report_progress=lambda words: None,
        is_protected=lambda path: any(fnmatch(path, glob) for glob in hidden),
        environment={"PATH": str(programs)},
        allows_project_code=call.get("project_code", True),
    )


def outcome(case: Path, room: ToolContext) -> dict[str, Any]:
    """What comes of the call, in the form of `result.json`; changes are made in the workspace."""
    tool = find_tool(case.parent.name)
    assert tool is not None, "a folder of cases without a tool"
    call = load(case, "call.json")
    arguments = call["arguments"]
    result: dict[str, Any] = {"view": tool.describe_call(arguments)}
    try:
        match tool:
            case ReadTool():
                result |= {"paths": list(tool.list_paths(arguments))}
                result |= {"text": asyncio.run(tool.read(arguments, room))}
            case EditTool():
                if words := tool.describe_deferred_content(arguments):
                    result |= {"deferred": words}
                    arguments = tool.fill_content(arguments, call["completed"])
                changes = tool.plan_changes(arguments, room.workspace)
                result |= {"changes": [_summary(change) for change in changes]}
                make(changes, room.workspace)
            case CommandTool():
                command = tool.build_command(arguments)
                result |= {"command": command.text, "folder": command.folder, "seconds": command.seconds}
            case ExternalTool():
                raise AssertionError("a built-in tool is of a known kind")
    except ToolError as error:
        result |= {"error": str(error)}
    return result


def _summary(change: FileChange) -> str:
    if change.after is None:
        return f"deletes {change.path}"
    return f"{'makes' if change.before is None else 'changes'} {change.path}"


def make(changes: tuple[FileChange, ...], workspace: Workspace) -> None:
    """Write what was planned."""
    for change in changes:
        if change.after is None:
            workspace.delete(change.path)
        else:
            workspace.write_file(change.path, change.after)


def tree(root: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }
