"""An agent's process is killed while it writes: every file is whole, and an undo gives back what was there before."""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path

import pytest

from callwright.agent.changes.checkpoints import Checkpoints
from callwright.agent.workspace.workspace import Workspace
from callwright.store.snapshots import compute_digest
from tests.integration.checkpoint_child import SESSION
from tests.support.opened_store import opened
from tests.support.warm import start

ROOT = Path(__file__).resolve().parents[2]
THEIRS = {"a.txt": b"first\n", "b.txt": b"second\n", "notes/ignored.log": b"mine\n", ".gitignore": b"*.log\n"}


def tree(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def killed(address: str, root: Path, seed: int) -> None:
    """The agent, for some tenths of a second."""
    words = ["tests.integration.checkpoint_child", address, str(root), str(seed)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    reading, writing = os.pipe()
    with os.fdopen(reading) as out:
        with os.fdopen(writing), Path(os.devnull).open() as nothing:
            child = start(words, cwd=ROOT, environment=environment, files=(nothing.fileno(), writing, 2))
        assert out.readline() == "begun\n"
        time.sleep(random.Random(seed).uniform(0, 0.5))
        child.kill()


@pytest.mark.parametrize("seed", range(4))
def test_a_killed_agent_leaves_whole_files_that_can_all_be_taken_back(tmp_path: Path, seed: int) -> None:
    root, address = tmp_path / "work", f"sqlite:///{tmp_path / 'store.db'}"
    for name, data in THEIRS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)

    async def check() -> None:
        async with opened(address) as store:
            rows = await store.snapshots.list_snapshots(SESSION)
            whole = {name for row in rows for name in (row.before, row.after)}
            checkpoints = Checkpoints(store.snapshots, SESSION, Workspace(root))
            assert {each.outcome for each in await checkpoints.recover_writes()} <= {"written", "not written"}
            found = tree(root)
            written = {row.path for row in rows}
            assert all(compute_digest(data) in whole for name, data in found.items() if name in written)
            assert not any(each.changed_since for each in await checkpoints.list_changed_files())
            assert (await checkpoints.undo_changes()).conflicts == ()
        assert tree(root) == THEIRS
        assert not (root / "made").exists()

    for again in range(2):  # the second time over what the first one left
        killed(address, root, seed * 2 + again)
    asyncio.run(check())
