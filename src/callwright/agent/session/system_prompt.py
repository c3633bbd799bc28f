"""Builds the system prompt: what the agent is, where it works, and how to end a task.

It is built once when a session is created and stored with it, so that every request of the session starts with the same
bytes.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence

from callwright.agent.loop.answer_stream import COMPLETION_SIGNAL
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import ToolError

__all__ = ["build_system_prompt"]

_MAX_ENTRIES = 60
_MAX_INSTRUCTIONS_CHARS = 16_000

_RULES = f"""\
You are a coding agent. You work in a folder of the user's computer with the tools listed.

How to work:
- Look before you change: read the files that matter, search where you do not know.
- Make changes with edit_file, apply_patch or write_file, never by writing code into your answer.
- Use run_terminal_command to run tests and programs. Commands run in the workspace, without any user input.
- Check your work: run the tests, or get_diagnostics on what you changed.
- All paths are relative to the workspace. Nothing outside can be accessed.
- Some calls need the user's approval. When one is denied, respect it: use another approach or say what is missing.
- Keep to the task. Do not commit, push or reset anything unless the task says so.
- Say briefly what you are doing. When everything is done, say what you changed and end with {COMPLETION_SIGNAL}."""


def build_system_prompt(workspace: Workspace, instructions: Sequence[str], sandbox: str) -> str:
    """Build the first message of a session."""
    parts = [_RULES, _describe_workspace(workspace, sandbox)]
    for name in instructions:
        if instructions_text := _read_instructions(workspace, name):
            parts.append(instructions_text)
            break
    return "\n\n".join(parts)


def _describe_workspace(workspace: Workspace, sandbox: str) -> str:
    entries = workspace.list_entries(".")
    names = [f"{name}/" if kind == "folder" else name for name, kind, _ in entries[:_MAX_ENTRIES]]
    more = f"\n… and {len(entries) - _MAX_ENTRIES} more" if len(entries) > _MAX_ENTRIES else ""
    listing = "\n".join(names) or "(nothing yet)"
    system = platform.system()
    return f"The workspace, on {system}, has these files and folders:\n{listing}{more}\n\n{sandbox}".rstrip()


def _read_instructions(workspace: Workspace, name: str) -> str:
    try:
        text = workspace.read_file(name).decode("utf-8", "replace").strip()
    except ToolError:
        return ""
    cut = "\n[The rest was omitted.]" if len(text) > _MAX_INSTRUCTIONS_CHARS else ""
    return f"Instructions of this project ({name}):\n\n{text[:_MAX_INSTRUCTIONS_CHARS]}{cut}" if text else ""
