"""A child process that is kept alive: what it says, how it ends, and that it never outlives us."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from callwright.backends import child_process
from callwright.backends.child_process import ServerProcess
from callwright.errors import BackendError

LIVES = "print('at ' + order, flush=True); sys.stdin.read()"
DIES = "print('1.23.456 E no such thing', file=sys.stderr); print('more', file=sys.stderr); sys.exit(3)"
DEAF = "print('here', flush=True); import time; time.sleep(600)"
SILENT = "sys.stdin.read()"


def child(folder: Path, code: str, *, seconds: float = 20.0, delays: tuple[float, ...] = (0.0, 30.0)) -> ServerProcess:
    """A supervisor of that code; each start of it adds a line to `starts` in the folder."""
    begin = f"import sys, os; open({str(folder / 'starts')!r}, 'a').write('.'); order = sys.stdin.readline().strip();"
    command = [sys.executable, "-c", begin + code]
    return ServerProcess(command, "it", subject="the child", seconds=seconds, delays=delays)


def starts(folder: Path) -> int:
    return len((folder / "starts").read_text())


def run(kept: ServerProcess, story: Callable[[ServerProcess], Coroutine[Any, Any, None]]) -> None:
    async def told() -> None:
        try:
            await story(kept)
        finally:
            pid = kept.pid
            await kept.close()
            assert not pid or gone(pid)

    asyncio.run(told())


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def changed(kept: ServerProcess, pid: int) -> None:
    while kept.pid == pid:
        await asyncio.sleep(0.01)


def test_nothing_is_started_before_it_is_needed(tmp_path: Path) -> None:
    async def story(kept: ServerProcess) -> None:
        await asyncio.sleep(0.1)

    run(child(tmp_path, LIVES), story)
    assert not (tmp_path / "starts").exists()


def test_it_gets_its_order_and_says_where_it_is_to_all_who_ask(tmp_path: Path) -> None:
    async def story(kept: ServerProcess) -> None:
        assert set(await asyncio.gather(*(kept.get_address() for _ in range(20)))) == {"at it"}

    run(child(tmp_path, LIVES), story)
    assert starts(tmp_path) == 1


def test_who_stops_waiting_does_not_stop_the_start(tmp_path: Path) -> None:
    async def story(kept: ServerProcess) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await kept.get_address()
        assert await kept.get_address() == "at it"

    run(child(tmp_path, LIVES), story)
    assert starts(tmp_path) == 1


def test_one_that_was_killed_is_started_again(tmp_path: Path) -> None:
    async def story(kept: ServerProcess) -> None:
        await kept.get_address()
        first = kept.pid
        os.kill(first, signal.SIGKILL)
        await changed(kept, first)
        assert await kept.get_address() == "at it"
        assert kept.pid != first

    run(child(tmp_path, LIVES), story)
    assert starts(tmp_path) == 2


def test_a_short_pause_of_one_that_was_there_is_waited_out_and_a_long_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "MAX_WAIT_SECONDS", 0.5)

    async def story(kept: ServerProcess) -> None:
        for pause in (0.0, 0.2, 0.4):
            assert await kept.get_address() == "at it"
            pid, begun = kept.pid, time.monotonic()
            os.kill(pid, signal.SIGKILL)
            await changed(kept, pid)
            assert await kept.get_address() == "at it"
            assert time.monotonic() - begun > pause
        pid = kept.pid
        os.kill(pid, signal.SIGKILL)
        await changed(kept, pid)
        with pytest.raises(BackendError, match="killed by SIGKILL"):
            await kept.get_address()

    run(child(tmp_path, LIVES, delays=(0.0, 0.2, 0.4, 30.0)), story)


def test_one_that_cannot_start_is_tried_once_more_and_then_rests_with_its_reason(tmp_path: Path) -> None:
    async def story(kept: ServerProcess) -> None:
        for _ in range(3):
            with pytest.raises(BackendError, match=r"^the child exited with code 3: no such thing$") as failed:
                await kept.get_address()
            assert (failed.value.kind, failed.value.retryable) == ("unavailable", True)

    run(child(tmp_path, DIES), story)
    assert starts(tmp_path) == 2


def test_pauses_grow_and_the_last_one_stays(tmp_path: Path) -> None:
    async def story(kept: ServerProcess) -> None:
        while starts(tmp_path) < 5 if (tmp_path / "starts").exists() else True:
            with pytest.raises(BackendError):
                await kept.get_address()
            await asyncio.sleep(0.02)

    begun = time.monotonic()
    run(child(tmp_path, DIES, delays=(0.0, 0.1, 0.3)), story)
    assert time.monotonic() - begun >= 0.1 + 0.3 + 0.3


def test_one_that_lived_long_begins_anew_without_a_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "STEADY_SECONDS", 0.0)

    async def story(kept: ServerProcess) -> None:
        for _ in range(3):
            await kept.get_address()
            pid = kept.pid
            os.kill(pid, signal.SIGKILL)
            await changed(kept, pid)
        assert await kept.get_address() == "at it"

    run(child(tmp_path, LIVES), story)


def test_one_that_says_nothing_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    async def story(kept: ServerProcess) -> None:
        with pytest.raises(BackendError, match=r"was not ready within 0.3 seconds"):
            await kept.get_address()

    run(child(tmp_path, SILENT, seconds=0.3, delays=(30.0,)), story)


def test_one_that_does_not_listen_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "STOP_SECONDS", 0.1)

    async def story(kept: ServerProcess) -> None:
        await kept.get_address()

    run(child(tmp_path, DEAF), story)


def test_a_program_that_does_not_exist_is_a_failure_like_any_other() -> None:
    async def story(kept: ServerProcess) -> None:
        with pytest.raises(BackendError, match=r"the child cannot be started: No such file"):
            await kept.get_address()

    run(ServerProcess(["/no/such/program"], "", subject="the child", seconds=1.0, delays=(30.0,)), story)


def test_who_waits_when_it_is_ended_is_told(tmp_path: Path) -> None:
    async def told() -> None:
        kept = child(tmp_path, SILENT)
        waiting = asyncio.create_task(kept.get_address())
        await asyncio.sleep(0.1)
        await kept.close()
        with pytest.raises(BackendError, match="was stopped"):
            await waiting

    asyncio.run(told())


def test_after_the_end_nothing_is_started(tmp_path: Path) -> None:
    async def told() -> None:
        kept = child(tmp_path, LIVES)
        await kept.get_address()
        await kept.close()
        with pytest.raises(BackendError, match="was stopped"):
            await kept.get_address()

    asyncio.run(told())
    assert starts(tmp_path) == 1


def test_much_that_it_complains_of_does_not_stop_it(tmp_path: Path) -> None:
    loud = "print('x' * 1_000_000, file=sys.stderr); print('x\\n' * 500_000, file=sys.stderr);"

    async def story(kept: ServerProcess) -> None:
        assert await kept.get_address() == "at it"

    run(child(tmp_path, loud + LIVES), story)


def test_it_ends_when_we_are_killed(tmp_path: Path) -> None:
    """We are a process here too, and SIGKILL leaves no time to tell anybody."""
    program = tmp_path / "program.py"
    program.write_text(f"import sys; order = sys.stdin.readline(); {LIVES}")
    code = f"""
import asyncio, sys
from callwright.backends.child_process import ServerProcess
async def main():
    kept = ServerProcess([sys.executable, {str(program)!r}], "it", subject="it", seconds=20)
    await kept.get_address()
    print(kept.pid, flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        assert not gone(pid)
        parent.kill()
        parent.wait()
    ends = time.monotonic() + 10
    while not gone(pid) and time.monotonic() < ends:
        time.sleep(0.02)
    assert gone(pid)
