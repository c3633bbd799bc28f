"""Measure a long session of the agent: its memory, and the time to open it again.

    python scripts/agent_long.py                       # 10,000 events, as a table
    python scripts/agent_long.py --events 500 --json   # fewer events, as JSON

The agent works through task after task in a temporary project: it reads and writes files and runs commands. The model
is scripted and the clock is simulated, so an hour takes minutes. Then the session is loaded from the store and rendered
as in a terminal. The script fails if the stored events differ from the ones that were shown.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import io
import json
import resource
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Any

from rich.console import Console

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from callwright.agent.loop.answer_stream import COMPLETION_SIGNAL
from callwright.agent.session.session_manager import SessionManager
from callwright.agent.session_events import HistoryCondensed, StampedEvent
from callwright.agent.ui.console.session_transcript import render_stored_session
from tests.support.agents import Project, call, told, turn

HOUR = 3600.0
SOURCE = "".join(f"def function_{number}(a, b):\n    return a + b * {number}\n" for number in range(200))


def megabytes() -> float:
    """Return the peak memory of this process. `ru_maxrss` includes that of the parent, so it is only the fallback."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024 * 1024)


def project_at(folder: Path) -> Project:
    """Create a project with a file to read and a model whose script repeats."""
    project = Project(folder, {"source.py": SOURCE})
    reads = [call("read_file", path="source.py", start_line=line, end_line=line + 30) for line in range(1, 300, 30)]
    steps = [turn({"reasoning": "I go on. " * 20}, "Here is the next part. " * 5, read) for read in reads]
    project.says(
        turn("We read, and wrote notes.", aside=True),
        *steps,
        turn(call("write_file", path="notes.md", content="${last_user}\n" * 30)),
        turn(call("run_terminal_command", command="wc -l notes.md source.py")),
        turn(f"{'That is how it is. ' * 30}{COMPLETION_SIGNAL}"),
    )
    return project


async def worked(desk: SessionManager, events: int) -> tuple[str, list[StampedEvent]]:
    """Run tasks until there are enough events; return the session id and the shown events."""
    session = await desk.open()
    shown = list(session.events)
    session.subscribe(shown.append)
    for number in count(1):
        if len(shown) >= events:
            break
        await session.run(f"update the notes for part {number}")
    await session.close()
    return session.id, shown


async def measured(folder: Path, events: int) -> dict[str, Any]:
    """Run and measure one long session."""
    ticks = count(0, HOUR / events)
    project = project_at(folder)
    async with project.desk() as desk:
        bare = megabytes()
        began = time.monotonic()
        fast = SessionManager(dataclasses.replace(desk._context, clock=lambda: 1_800_000_000 + next(ticks)))
        session, shown = await worked(fast, events)
        seconds, most = time.monotonic() - began, megabytes()
    async with project.desk() as desk:
        began, processor = time.monotonic(), time.process_time()
        stored = await desk.load_events(session)
        console = Console(width=100, file=io.StringIO())
        for piece in render_stored_session(stored):
            console.print(piece)
        again, processor = time.monotonic() - began, time.process_time() - processor
    return {
        "events": len(stored),
        "condensed": len(told(stored, HistoryCondensed)),
        "worked_seconds": round(seconds, 1),
        "megabytes_at_the_start": round(bare),
        "megabytes_at_most": round(most),
        "reopened_seconds": round(again, 2),
        "of_these_on_the_processor": round(processor, 2),
        "equal": shown == stored,
    }


def main() -> int:
    """Measure and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--events", type=int, default=10_000, metavar="N", help="number of events (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="output JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measured(Path(folder), arguments.events))
    if arguments.json:
        print(json.dumps(found))
    else:
        print("| measure | value |\n|---|---|")
        print("".join(f"| {name.replace('_', ' ')} | {value} |\n" for name, value in found.items()), end="")
    return 0 if found["equal"] else 1


if __name__ == "__main__":
    sys.exit(main())
