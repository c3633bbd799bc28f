"""Drive the agent from a script: give it a task, watch what it does, and look at what it changed.

    python examples/drive_agent.py [FOLDER]

A script of two turns plays the model, so nothing has to be installed; `load_config("callwright.toml")` uses yours.
Without a folder it works in a temporary one.
"""

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from callwright.agent.session_api import ApprovalReply
from callwright.agent.session_events import ApprovalRequested, StampedEvent, TaskSummarized, ToolFinished
from callwright.app import Config, open_agent
from callwright.backends.settings import BackendSettings

SCRIPT = Path(__file__).with_name("agent_script.toml")
CONFIG = Config(backends=(BackendSettings(name="script", kind="scripted", script=str(SCRIPT)),))


def show(stamped: StampedEvent) -> None:
    """Print an event while the agent works; `session.events` has all of them afterwards."""
    event = stamped.event
    if isinstance(event, ToolFinished):
        print(f"{event.name}: {event.status}")
    elif isinstance(event, TaskSummarized):
        print(f"summary: {event.text}")


def decide(asked: ApprovalRequested) -> ApprovalReply:
    """Answer what the agent asks. This script allows nothing that has to be asked."""
    return ApprovalReply(verdict="deny", words=f"{asked.subject} is not allowed in this script.")


async def main(folder: Path) -> None:
    """Run one task in the folder, then keep what it changed."""
    async with open_agent(CONFIG, folder, answer=decide) as session:
        session.subscribe(show)
        stopped = await session.run("Write a file that greets the reader.")
        print(f"the task ended: {stopped.reason}")
        for file in await session.review_changes():
            print(file.diff)
        await session.keep_changes()  # or undo_changes()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(main(Path(sys.argv[1])))
    else:
        with TemporaryDirectory() as temporary:
            asyncio.run(main(Path(temporary)))
