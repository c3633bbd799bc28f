"""Standard input and output as lines, for editors that start the agent as a child process."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TextIO

from callwright.errors import ConfigError

__all__ = ["StdioTransport", "open_stdio"]

_MAX_LINE_BYTES = 64 * 1024 * 1024
"""A prompt may contain whole files."""


class StdioTransport:
    """Reads and writes lines. Everything else must print to standard error."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read_line(self) -> bytes:
        """Return the next line; an empty one at the end."""
        try:
            return await self._reader.readline()
        except ValueError:  # longer than any valid message: nothing after it can be trusted
            return b""

    async def write_line(self, line: bytes) -> None:
        """Send a line, waiting for the reader; does nothing if the reader has gone."""
        if not self._writer.is_closing():
            self._writer.write(line)
            with suppress(ConnectionError):
                await self._writer.drain()

    def close(self) -> None:
        """Drop unsent output, and stop waiting for the reader."""
        self._writer.transport.abort()


@asynccontextmanager
async def open_stdio() -> AsyncIterator[StdioTransport]:
    """Open this process's own streams. Raises `ConfigError` if they are not pipes."""
    _require_pipes((sys.stdin, "input"), (sys.stdout, "output"))
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_MAX_LINE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    try:
        yield StdioTransport(reader, asyncio.StreamWriter(transport, protocol, None, loop))
    finally:
        transport.close()


def _require_pipes(*ends: tuple[TextIO, str]) -> None:
    for file, name in ends:
        mode = os.fstat(file.fileno()).st_mode
        # Files and /dev/null cannot be polled; a terminal can, so that messages can be typed by hand.
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or file.isatty()):
            raise ConfigError(
                [f"standard {name} is not a pipe: --acp is for editors, which start the agent as a child process"]
            )
