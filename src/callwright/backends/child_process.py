"""Keeper: keeps one child process alive, and never outlives or loses it. Supervisor: one that has an address.

The child ends when its standard input does. So it ends with us however we end, also when nobody has the time to tell
it. It is started at the first need; when it ends by itself it is started again, at once the first time and then after
growing pauses. It runs in a session of its own: a Ctrl-C is for us, and turns may finish.
"""

from __future__ import annotations

import asyncio
import logging
import re
import signal
from abc import ABC, abstractmethod
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from callwright.errors import BackendError

__all__ = ["RESTART_DELAYS", "ChildProcess", "ServerProcess", "start_process"]

ReadyT = TypeVar("ReadyT")

log = logging.getLogger("callwright.backends")

RESTART_DELAYS = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before a start, by how many failures came before it."""
STEADY_SECONDS = 60.0
"""A child that lived as long has not failed: what ends it later is no consequence of how it started."""
MAX_WAIT_SECONDS = 2.0
"""The longest pause that whoever needs the child waits out. A longer one is told at once, and so is any of a child that
could not be started."""
STOP_SECONDS = 2.0
"""How long a child may take to end by itself."""
_STDERR_LINES = 20
_LOG_PREFIX = re.compile(r"^[\d.]+ [EW] ")
"""What llama.cpp puts before a line of its log: the time and how bad it is."""


class ChildProcess(ABC, Generic[ReadyT]):
    """One child. `who` begins every sentence about it; `seconds` is how long it may take to greet."""

    def __init__(self, *, who: str, seconds: float, pauses: Sequence[float] = RESTART_DELAYS) -> None:
        self._subject = who
        self._seconds = seconds
        self._pauses = pauses
        self._state_known = asyncio.Event()
        """Whether there is a greeting or a failure to tell."""
        self._ready_value: ReadyT | None = None
        self._failure = ""
        self._was_ready = False
        """Whether the last child came to its greeting."""
        self._supervision: asyncio.Task[None] | None = None
        self.pid = 0
        """Of the child; 0 while there is none."""

    @abstractmethod
    async def _start_process(self) -> Process:
        """Start the child, with pipes. Raises `OSError`."""

    @abstractmethod
    async def _perform_handshake(self, process: Process) -> ReadyT | None:
        """What the child is to those who need it, as soon as it is ready; None when it is ending."""

    async def wait_until_ready(self) -> ReadyT:
        """The child's greeting, as soon as it is there. Raises `BackendError` while it rests after failures."""
        if self._supervision is None and not self._failure:
            self._supervision = asyncio.create_task(self._keep_running())
        while not (self._ready_value or self._failure):
            await self._state_known.wait()
        if self._failure or self._ready_value is None:
            raise BackendError(self._failure, kind="unavailable", retryable=True)
        return self._ready_value

    async def close(self) -> None:
        """End the child, and wait until it has ended. Whoever still waits for it is told."""
        if self._supervision is not None:
            self._supervision.cancel()
            await asyncio.wait([self._supervision])
        self._failure = f"{self._subject} was stopped"
        self._state_known.set()

    async def _keep_running(self) -> None:
        loop = asyncio.get_running_loop()
        failures = 0
        while True:
            begun = loop.time()
            self._was_ready = False
            try:
                ending = await self._run_once()
            except OSError as error:
                ending = f"cannot be started: {error.strerror}"
            if loop.time() - begun >= STEADY_SECONDS:
                failures = 0
            pause = self._pauses[min(failures, len(self._pauses) - 1)]
            failures += 1
            told = f"{self._subject} {ending}"
            log.warning("%s; it is started again in %g seconds", told, pause)
            if pause:
                if pause > MAX_WAIT_SECONDS or not self._was_ready:
                    self._failure = told
                    self._state_known.set()
                await asyncio.sleep(pause)
                self._failure = ""
                self._state_known.clear()

    async def _run_once(self) -> str:
        """Start the child and stay with it; how it ended."""
        process = await self._start_process()
        said: deque[str] = deque(maxlen=_STDERR_LINES)
        listening = asyncio.create_task(_collect_stderr(process.stderr, said))
        self.pid = process.pid
        try:
            try:
                async with asyncio.timeout(self._seconds):
                    self._ready_value = await self._perform_handshake(process)
            except TimeoutError:
                return f"was not ready within {self._seconds:g} seconds"
            if self._ready_value:
                self._was_ready = True
                said.clear()
                self._state_known.set()
            code = await process.wait()
            await listening
            return _describe_exit(code, said)
        finally:
            self.pid = 0
            self._ready_value = None
            self._state_known.clear()
            await _stop_process(process)
            await listening


class ServerProcess(ChildProcess[str]):
    """A child that gets its order as one line on its input, and says its address as one line on its output."""

    def __init__(
        self, command: Sequence[str], order: str, *, who: str, seconds: float, pauses: Sequence[float] = RESTART_DELAYS
    ) -> None:
        super().__init__(who=who, seconds=seconds, pauses=pauses)
        self._command = command
        self._order = f"{order}\n".encode()

    async def get_address(self) -> str:
        """Where the child is, as soon as it says so."""
        return await self.wait_until_ready()

    async def _start_process(self) -> Process:
        return await start_process(self._command)

    async def _perform_handshake(self, process: Process) -> str:
        assert process.stdin and process.stdout  # noqa: S101, PT018 - both are pipes
        process.stdin.write(self._order)
        return (await process.stdout.readline()).decode().strip()


async def start_process(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    folder: str | None = None,
    line_limit: int = 65536,
) -> Process:
    """A child with pipes, in a session of its own; `line` is the longest line that it may say."""
    return await asyncio.create_subprocess_exec(
        *command,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
        env=environment,
        cwd=folder,
        limit=line_limit,
    )


async def _collect_stderr(stream: asyncio.StreamReader | None, lines: deque[str]) -> None:
    """Read what the child complains of, so that it can go on complaining."""
    while stream is not None:
        try:
            line = await stream.readline()
        except ValueError:  # longer than any line worth keeping; it was thrown away
            continue
        if not line:
            return
        if not line.startswith(b"WARNING"):  # as Codex begins, about folders that it would rather have
            lines.append(line.decode(errors="replace").strip())


async def _stop_process(process: Process) -> None:
    """Let a child end by itself, or else end it."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _describe_exit(code: int, lines: Sequence[str]) -> str:
    """How a process ended, with what it said first: what follows is about that."""
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended by itself (code {code})"
    return f"{how}: {_LOG_PREFIX.sub('', lines[0])}" if lines else how
