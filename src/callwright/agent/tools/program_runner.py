"""Programs that look at the workspace: found, run without a shell, and ended with all their children when time is up.

Invariant: when `run` returns or is cancelled, nothing of what it started is left, and no more than a limit was kept of
what it said.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from callwright.agent.shell.process_cleanup import MARK_VARIABLE, end_process_group
from callwright.agent.tools.base import ToolContext

__all__ = ["ProgramOutput", "find_program", "run_program"]

_WORKSPACE_PROGRAM_FOLDERS = (".venv/bin", "venv/bin", "node_modules/.bin")
"""Where a workspace keeps programs of its own."""
_MAX_OUTPUT_BYTES = 512 * 1024
_TIMEOUT_S = 60.0


class ProgramOutput(NamedTuple):
    """What a program wrote, on both outputs, and how it ended; no code where it was ended."""

    text: str
    exit_code: int | None


def find_program(name: str, context: ToolContext, folder: str = ".") -> str | None:
    """Where the program is: in the workspace, if its code may run, or on the path."""
    root = context.workspace.root
    ours = [root / place / own for place in dict.fromkeys((folder, ".")) for own in _WORKSPACE_PROGRAM_FOLDERS]
    others = [Path(place) for place in context.environment.get("PATH", os.defpath).split(os.pathsep) if place]
    if not context.allows_project_code:
        ours, others = [], [place for place in others if place.is_absolute() and not place.is_relative_to(root)]
    return shutil.which(name, path=os.pathsep.join(map(str, [*ours, *others])))


async def run_program(
    argv: Sequence[str], context: ToolContext, folder: str = ".", timeout_s: float = _TIMEOUT_S
) -> ProgramOutput:
    """Run it in a folder of the workspace. What cannot be started says why, like any other failure."""
    place = Path(context.workspace.root, folder)
    mark = secrets.token_hex(8)
    try:
        process = await asyncio.create_subprocess_exec(
            *context.wrap_command(argv, place),
            cwd=place,
            env={**context.environment, MARK_VARIABLE: mark},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
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
    kept = bytearray()
    while process.stdout and (more := await process.stdout.read(65536)):
        kept += more[: max(_MAX_OUTPUT_BYTES - len(kept), 0)]
    return kept.decode("utf-8", "replace")
