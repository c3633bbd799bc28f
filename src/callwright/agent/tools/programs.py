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

from callwright.agent.processes import MARK, end
from callwright.agent.tools.base import Room

__all__ = ["Said", "found", "run"]

_OWN_FOLDERS = (".venv/bin", "venv/bin", "node_modules/.bin")
"""Where a workspace keeps programs of its own."""
_KEPT_BYTES = 512 * 1024
_SECONDS = 60.0


class Said(NamedTuple):
    """What a program wrote, on both outputs, and how it ended; no code where it was ended."""

    text: str
    code: int | None


def found(name: str, room: Room, folder: str = ".") -> str | None:
    """Where the program is: in the workspace, if its code may run, or on the path."""
    root = room.workspace.root
    ours = [root / place / own for place in dict.fromkeys((folder, ".")) for own in _OWN_FOLDERS]
    others = [Path(place) for place in room.environment.get("PATH", os.defpath).split(os.pathsep) if place]
    if not room.project_code:
        ours, others = [], [place for place in others if place.is_absolute() and not place.is_relative_to(root)]
    return shutil.which(name, path=os.pathsep.join(map(str, [*ours, *others])))


async def run(argv: Sequence[str], room: Room, folder: str = ".", seconds: float = _SECONDS) -> Said:
    """Run it in a folder of the workspace. What cannot be started says why, like any other failure."""
    place = Path(room.workspace.root, folder)
    mark = secrets.token_hex(8)
    try:
        process = await asyncio.create_subprocess_exec(
            *room.confined(argv, place),
            cwd=place,
            env={**room.environment, MARK: mark},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return Said(str(error), None)
    try:
        async with asyncio.timeout(seconds):
            text = await _kept(process)
            return Said(text, await process.wait())
    except TimeoutError:
        return Said(f"it took longer than {seconds:g} seconds", None)
    finally:
        await end(process, mark, grace_s=0)


async def _kept(process: asyncio.subprocess.Process) -> str:
    kept = bytearray()
    while process.stdout and (more := await process.stdout.read(65536)):
        kept += more[: max(_KEPT_BYTES - len(kept), 0)]
    return kept.decode("utf-8", "replace")
