"""No tool leads out of the workspace: every one of them over every way out that we know."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from callwright.agent.tools import BUILTIN_TOOLS, find_tool
from callwright.agent.tools.base import CommandTool, EditTool, ReadTool, ToolContext
from callwright.errors import ToolError
from tests.support.escapes import SECRET, Escape, Ground, escapes, ground
from tests.support.tool_cases import make

ESCAPES = escapes()
PATCHES = {
    "add": "*** Begin Patch\n*** Add File: {}\n+changed\n*** End Patch",
    "update": f"*** Begin Patch\n*** Update File: {{}}\n@@\n-{SECRET}\n+changed\n*** End Patch",
    "delete": "*** Begin Patch\n*** Delete File: {}\n*** End Patch",
    "move": "*** Begin Patch\n*** Update File: readme.txt\n*** Move to: {}\n@@\n-inside\n+changed\n*** End Patch",
    "diff": f"--- a/{{0}}\n+++ b/{{0}}\n@@ -1 +1 @@\n-{SECRET}\n\\ No newline at end of file\n+changed\n",
}


def calls(path: str) -> list[tuple[str, dict[str, Any]]]:
    """Every way in which a call can name a path; commands are the terminal's business."""
    return [
        ("read_file", {"path": path}),
        ("list_files", {"path": path}),
        ("list_files", {"path": path, "glob": "*"}),
        ("search_workspace", {"query": "secret", "path": path}),
        ("get_diagnostics", {"path": path}),
        ("write_file", {"path": path, "content": "changed"}),
        ("edit_file", {"path": path, "old": SECRET, "new": "changed"}),
        *(("apply_patch", {"patch": patch.format(path)}) for patch in PATCHES.values()),
    ]


def used(name: str, arguments: dict[str, Any], here: Ground) -> str:
    tool = find_tool(name)
    room = ToolContext(workspace=here.workspace, report_progress=lambda words: None, environment={"PATH": os.defpath})
    match tool:
        case ReadTool():
            return asyncio.run(tool.read(arguments, room))
        case EditTool():
            changes = tool.plan_changes(arguments, here.workspace)
            make(changes, here.workspace)
            return str([(change.path, change.before, change.after) for change in changes])
    raise AssertionError(name)


def test_every_tool_that_takes_a_path_is_tried() -> None:
    named = {name for name, _ in calls("x")}
    assert named == {tool.spec.name for tool in BUILTIN_TOOLS if not isinstance(tool, CommandTool)}


@pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.id)
def test_no_tool_goes_out(escape: Escape, tmp_path: Path) -> None:
    for number, _ in enumerate(calls("")):
        here = ground(tmp_path / str(number), escape)
        name, arguments = calls(here.path)[number]
        try:
            said = used(name, arguments, here)
        except ToolError as error:
            said = str(error).replace(SECRET, "") if name == "apply_patch" else str(error)
        else:
            assert escape.stays_inside, (name, said)
        assert SECRET not in said, name
        assert here.is_untouched(), name
