"""An agent that writes files through checkpoints until it is killed.

    python -m tests.integration.checkpoint_child STORE WORKSPACE SEED

It takes back what it did now and then, so that the end may come in the middle of an undo as well. A line on its output
says that it has begun.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import sys
from pathlib import Path

from callwright.agent.changes.checkpoints import Checkpoints
from callwright.agent.changes.file_change import FileChange
from callwright.agent.workspace.workspace import Workspace
from tests.support.opened_store import opened

SESSION = "killed"
FILES = ("a.txt", "b.txt", "made/deep/c.txt", "made/d.txt")


def contents(dice: random.Random) -> bytes:
    """Long enough for a write to take some time."""
    return "".join(f"{dice.random()}\n" for _ in range(5000)).encode()


async def _main(address: str, root: Path, dice: random.Random) -> None:
    async with opened(address) as store:
        checkpoints = Checkpoints(store.snapshots, SESSION, Workspace(root))
        await checkpoints.recover_writes()
        os.write(1, b"begun\n")
        for number in itertools.count():
            chosen = dice.sample(FILES, dice.randint(1, 3))
            before = {name: (root / name).read_bytes() if (root / name).exists() else None for name in chosen}
            after = {
                name: contents(dice) if data is None or dice.random() < 0.7 else None for name, data in before.items()
            }
            changes = [FileChange(path=name, before=before[name], after=after[name]) for name in chosen]
            await checkpoints.record_plan(number, f"call {number}", changes)
            await checkpoints.write_changes(f"call {number}")
            if number % 3 == 2:
                await checkpoints.undo_changes(task=number)
            if number % 7 == 6:
                await checkpoints.undo_changes()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], Path(sys.argv[2]), random.Random(int(sys.argv[3]))))
