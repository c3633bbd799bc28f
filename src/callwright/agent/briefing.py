"""What the model is told before its first task: what it is, where it is, and how to end.

Written once when a session begins and kept with it, so that every request of the session begins with the same bytes.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence

from callwright.agent.stream import SIGNAL
from callwright.agent.workspace import Workspace
from callwright.errors import ToolError

__all__ = ["briefing"]

_ENTRIES = 60
_INSTRUCTIONS_LIMIT = 16_000

_RULES = f"""\
You are a coding agent. You work in a folder of the person's computer with the tools that you are given.

How to work:
- Look before you change: read the files that matter, search where you do not know.
- Make changes with edit_file, apply_patch or write_file, never by writing code into your answer.
- Use run_terminal_command to run tests and programs. Commands run in the workspace, without anybody to type input.
- Check your work: run the tests, or get_diagnostics on what you changed.
- All paths are relative to the workspace. What lies outside cannot be reached.
- Some calls need the person's permission. When one is denied, respect it: find another way or say what is missing.
- Keep to the task. Do not commit, push or reset anything unless the task says so.
- Say briefly what you are doing. When everything is done, tell what you changed and end with {SIGNAL}."""


def briefing(workspace: Workspace, instructions: Sequence[str], sandbox: str) -> str:
    """The first message of a session."""
    parts = [_RULES, _place(workspace, sandbox)]
    for name in instructions:
        if told := _instructions(workspace, name):
            parts.append(told)
            break
    return "\n\n".join(parts)


def _place(workspace: Workspace, sandbox: str) -> str:
    entries = workspace.entries(".")
    names = [f"{name}/" if kind == "folder" else name for name, kind, _ in entries[:_ENTRIES]]
    more = f"\n… and {len(entries) - _ENTRIES} more" if len(entries) > _ENTRIES else ""
    listing = "\n".join(names) or "(nothing yet)"
    system = platform.system()
    return f"The workspace, on {system}, has these files and folders:\n{listing}{more}\n\n{sandbox}".rstrip()


def _instructions(workspace: Workspace, name: str) -> str:
    try:
        text = workspace.read(name).decode("utf-8", "replace").strip()
    except ToolError:
        return ""
    cut = "\n[The rest was left out.]" if len(text) > _INSTRUCTIONS_LIMIT else ""
    return f"What the people of this project ask of you ({name}):\n\n{text[:_INSTRUCTIONS_LIMIT]}{cut}" if text else ""
