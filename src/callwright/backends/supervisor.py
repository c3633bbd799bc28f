"""Supervisor: keeps one child process alive, and never outlives or loses it.

The child gets its order as one line on its standard input, says its address as one line on its standard output, and
ends when its input does. So it ends with us however we end, also when nobody has the time to tell it. It is started at
the first need; when it ends by itself it is started again, at once the first time and then after growing pauses. It
runs in a session of its own: a Ctrl-C is for us, and turns may finish.
"""

from __future__ import annotations

import asyncio
import logging
import re
import signal
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from callwright.errors import BackendError

__all__ = ["Supervisor"]

log = logging.getLogger("callwright.backends")

PAUSES = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before a start, by how many failures came before it."""
STEADY_SECONDS = 60.0
"""A child that lived as long has not failed: what ends it later is no consequence of how it started."""
FAREWELL_SECONDS = 2.0
"""How long a child may take to end by itself."""
_KEPT_LINES = 20
_LABEL = re.compile(r"^[\d.]+ [EW] ")
"""What llama.cpp puts before a line of its log: the time and how bad it is."""


class Supervisor:
    """One child. `who` begins every sentence about it; `seconds` is how long it may take to say its address."""

    def __init__(
        self, command: Sequence[str], order: str, *, who: str, seconds: float, pauses: Sequence[float] = PAUSES
    ) -> None:
        self._command = command
        self._order = f"{order}\n".encode()
        self._who = who
        self._seconds = seconds
        self._pauses = pauses
        self._known = asyncio.Event()
        """Whether there is an address or a failure to tell."""
        self._address = ""
        self._failure = ""
        self._keeping: asyncio.Task[None] | None = None
        self.pid = 0
        """Of the child; 0 while there is none."""

    async def address(self) -> str:
        """Where the child is, as soon as it says so. Raises `BackendError` while it rests after failures."""
        if self._keeping is None and not self._failure:
            self._keeping = asyncio.create_task(self._keep())
        while not (self._address or self._failure):
            await self._known.wait()
        if self._failure:
            raise BackendError(self._failure, kind="unavailable", retryable=True)
        return self._address

    async def close(self) -> None:
        """End the child, and wait until it has ended. Whoever still waits for its address is told."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
        self._failure = f"{self._who} was stopped"
        self._known.set()

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        failures = 0
        while True:
            begun = loop.time()
            try:
                ending = await self._live()
            except OSError as error:
                ending = f"cannot be started: {error.strerror}"
            if loop.time() - begun >= STEADY_SECONDS:
                failures = 0
            pause = self._pauses[min(failures, len(self._pauses) - 1)]
            failures += 1
            told = f"{self._who} {ending}"
            log.warning("%s; it is started again in %g seconds", told, pause)
            if pause:
                self._failure = told
                self._known.set()
                await asyncio.sleep(pause)
                self._failure = ""
                self._known.clear()

    async def _live(self) -> str:
        """Start the child and stay with it; how it ended."""
        process = await asyncio.create_subprocess_exec(
            *self._command, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
        assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018 - all are pipes
        said: deque[str] = deque(maxlen=_KEPT_LINES)
        listening = asyncio.create_task(_listen(process.stderr, said))
        self.pid = process.pid
        try:
            process.stdin.write(self._order)
            try:
                async with asyncio.timeout(self._seconds):
                    self._address = (await process.stdout.readline()).decode().strip()
            except TimeoutError:
                return f"was not ready within {self._seconds:g} seconds"
            if self._address:
                said.clear()
                self._known.set()
            code = await process.wait()
            await listening
            return _ending(code, said)
        finally:
            self.pid = 0
            self._address = ""
            self._known.clear()
            await _end(process)
            await listening


async def _listen(stream: asyncio.StreamReader, said: deque[str]) -> None:
    """Read what the child complains of, so that it can go on complaining."""
    while True:
        try:
            line = await stream.readline()
        except ValueError:  # longer than any line worth keeping; it was thrown away
            continue
        if not line:
            return
        said.append(line.decode(errors="replace").strip())


async def _end(process: Process) -> None:
    """Let a child end by itself, or else end it."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(FAREWELL_SECONDS):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _ending(code: int, said: Sequence[str]) -> str:
    """How a process ended, with what it said first: what follows is about that."""
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended by itself (code {code})"
    return f"{how}: {_LABEL.sub('', said[0])}" if said else how
