"""Supervises one child process. `ServerProcess` is a child that serves at an address.

The child ends when its standard input is closed, so it always ends with this process, however that ends. It is started
on first use. When it ends by itself it is restarted, at once the first time and then after growing delays. It runs in a
session of its own, so that Ctrl-C reaches only this process and turns can finish.
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
"""Seconds before a restart, by the number of preceding failures."""
STEADY_SECONDS = 60.0
"""After this time the start counts as successful, and the failure count is reset."""
MAX_WAIT_SECONDS = 2.0
"""The longest restart delay that callers wait for. During a longer one, or after a failed start, they get an error at
once."""
STOP_SECONDS = 2.0
"""Seconds that a child may take to end by itself."""
_STDERR_LINES = 20
_LOG_PREFIX = re.compile(r"^[\d.]+ [EW] ")
"""The prefix of llama.cpp's log lines: the time and the severity."""


class ChildProcess(ABC, Generic[ReadyT]):
    """One child. `subject` begins every message about it; `seconds` limits the time until it is ready."""

    def __init__(self, *, subject: str, seconds: float, delays: Sequence[float] = RESTART_DELAYS) -> None:
        self._subject = subject
        self._seconds = seconds
        self._delays = delays
        self._state_known = asyncio.Event()
        """Set when the child is ready or has failed."""
        self._ready_value: ReadyT | None = None
        self._failure = ""
        self._was_ready = False
        """Whether the last child became ready."""
        self._supervision: asyncio.Task[None] | None = None
        self.pid = 0
        """Process id of the child; 0 while there is none."""

    @abstractmethod
    async def _start_process(self) -> Process:
        """Start the child with pipes. Raises `OSError`."""

    @abstractmethod
    async def _perform_handshake(self, process: Process) -> ReadyT | None:
        """Complete the handshake and return the value for callers; None when the child is ending."""

    async def wait_until_ready(self) -> ReadyT:
        """Wait for the child and return its handshake's value. Raises `BackendError` during a delay after failures."""
        if self._supervision is None and not self._failure:
            self._supervision = asyncio.create_task(self._keep_running())
        while not (self._ready_value or self._failure):
            await self._state_known.wait()
        if self._failure or self._ready_value is None:
            raise BackendError(self._failure, kind="unavailable", retryable=True)
        return self._ready_value

    async def close(self) -> None:
        """Stop the child and wait for its end. Waiting callers get an error."""
        if self._supervision is not None:
            self._supervision.cancel()
            await asyncio.wait([self._supervision])
        self._failure = f"{self._subject} was stopped"
        self._state_known.set()

    async def _keep_running(self) -> None:
        loop = asyncio.get_running_loop()
        failures = 0
        while True:
            started_at = loop.time()
            self._was_ready = False
            try:
                ending = await self._run_once()
            except OSError as error:
                ending = f"cannot be started: {error.strerror}"
            if loop.time() - started_at >= STEADY_SECONDS:
                failures = 0
            delay = self._delays[min(failures, len(self._delays) - 1)]
            failures += 1
            message = f"{self._subject} {ending}"
            log.warning("%s; restarting in %g seconds", message, delay)
            if delay:
                if delay > MAX_WAIT_SECONDS or not self._was_ready:
                    self._failure = message
                    self._state_known.set()
                await asyncio.sleep(delay)
                self._failure = ""
                self._state_known.clear()

    async def _run_once(self) -> str:
        """Start the child, wait for its end, and return how it ended."""
        process = await self._start_process()
        stderr_lines: deque[str] = deque(maxlen=_STDERR_LINES)
        collector = asyncio.create_task(_collect_stderr(process.stderr, stderr_lines))
        self.pid = process.pid
        try:
            try:
                async with asyncio.timeout(self._seconds):
                    self._ready_value = await self._perform_handshake(process)
            except TimeoutError:
                return f"was not ready within {self._seconds:g} seconds"
            if self._ready_value:
                self._was_ready = True
                stderr_lines.clear()
                self._state_known.set()
            code = await process.wait()
            await collector
            return _describe_exit(code, stderr_lines)
        finally:
            self.pid = 0
            self._ready_value = None
            self._state_known.clear()
            await _stop_process(process)
            await collector


class ServerProcess(ChildProcess[str]):
    """A child that reads its parameters as one line of input and writes its address as one line of output."""

    def __init__(
        self,
        command: Sequence[str],
        parameters: str,
        *,
        subject: str,
        seconds: float,
        delays: Sequence[float] = RESTART_DELAYS,
    ) -> None:
        super().__init__(subject=subject, seconds=seconds, delays=delays)
        self._command = command
        self._parameters = f"{parameters}\n".encode()

    async def get_address(self) -> str:
        """Wait until the child is ready, and return its address."""
        return await self.wait_until_ready()

    async def _start_process(self) -> Process:
        return await start_process(self._command)

    async def _perform_handshake(self, process: Process) -> str:
        assert process.stdin and process.stdout  # noqa: S101, PT018 - both are pipes
        process.stdin.write(self._parameters)
        return (await process.stdout.readline()).decode().strip()


async def start_process(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    folder: str | None = None,
    line_limit: int = 65536,
) -> Process:
    """Start a child with pipes, in a session of its own. `line_limit` is the maximum length of an output line."""
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
    """Read the child's standard error into `lines`, so that its pipe never fills."""
    while stream is not None:
        try:
            line = await stream.readline()
        except ValueError:  # too long to be of use; readline has discarded it
            continue
        if not line:
            return
        if not line.startswith(b"WARNING"):  # Codex's warnings about folders
            lines.append(line.decode(errors="replace").strip())


async def _stop_process(process: Process) -> None:
    """Let a child end by itself, and kill it when it does not."""
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
    """Describe how a process ended, with the first line that it wrote: later lines follow from that."""
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
    return f"{how}: {_LOG_PREFIX.sub('', lines[0])}" if lines else how
