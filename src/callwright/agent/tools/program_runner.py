"""Finds and runs programs without a shell, and ends them with all their children on a timeout.

Invariant: when `run_program` returns or is cancelled, none of its processes is left, and it has stored at most a fixed
amount of their output.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from callwright.agent.shell.process_cleanup import end_process_group, start_process_group
from callwright.agent.tools.base import ToolContext

__all__ = ["ProgramOutput", "find_program", "run_program"]

_WORKSPACE_PROGRAM_FOLDERS = (".venv/bin", "venv/bin", "node_modules/.bin")
"""The folders in which a workspace has programs of its own."""
_MAX_OUTPUT_BYTES = 512 * 1024
_TIMEOUT_S = 60.0


class ProgramOutput(NamedTuple):
    """What a program wrote to both outputs, and its exit code; None if it was killed."""

    text: str
    exit_code: int | None


def find_program(name: str, context: ToolContext, folder: str = ".") -> str | None:
    """Return the path of a program: in the workspace, if its code may run, or on the PATH."""
    root = context.workspace.root
    workspace_paths = [
        root / start / subfolder for start in dict.fromkeys((folder, ".")) for subfolder in _WORKSPACE_PROGRAM_FOLDERS
    ]
    system_paths = [Path(path) for path in context.environment.get("PATH", os.defpath).split(os.pathsep) if path]
    if not context.allows_project_code:
        workspace_paths, system_paths = (
            [],
            [path for path in system_paths if path.is_absolute() and not path.is_relative_to(root)],
        )
    return shutil.which(name, path=os.pathsep.join(map(str, [*workspace_paths, *system_paths])))


async def run_program(
    argv: Sequence[str], context: ToolContext, folder: str = ".", timeout_s: float = _TIMEOUT_S
) -> ProgramOutput:
    """Run a program in a folder of the workspace. A program that cannot be started returns the reason as its output."""
    location = Path(context.workspace.root, folder)
    mark = secrets.token_hex(8)
    try:
        process = await start_process_group(
            context.wrap_command(argv, location),
            mark,
            env=context.environment,
            cwd=location,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
    except OSError as error:
        return ProgramOutput(str(error), None)
    try:
        async with asyncio.timeout(timeout_s):
            text = await _read_output(process)
            return ProgramOutput(text, await process.wait())
    except TimeoutError:
        return ProgramOutput(f"it took longer than {timeout_s:g} seconds", None)
    finally:
        await end_process_group(process, mark, grace_s=0)


async def _read_output(process: asyncio.subprocess.Process) -> str:
    output = bytearray()
    while process.stdout and (more := await process.stdout.read(65536)):
        output += more[: max(_MAX_OUTPUT_BYTES - len(output), 0)]
    return output.decode("utf-8", "replace")
