"""Standard input and output as lines, for editors that start us as their child."""

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
"""A prompt may carry whole files."""


class StdioTransport:
    """The two ends. What others print must go to standard error."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read_line(self) -> bytes:
        """The next line; empty at the end."""
        try:
            return await self._reader.readline()
        except ValueError:  # longer than anything that we take: nothing after it can be trusted
            return b""

    async def write_line(self, line: bytes) -> None:
        """Send one, as fast as it is taken; nothing happens when nobody takes it any more."""
        if not self._writer.is_closing():
            self._writer.write(line)
            with suppress(ConnectionError):
                await self._writer.drain()

    def close(self) -> None:
        """Nobody reads any more: what waits to be taken is dropped, and so is the waiting for it."""
        self._writer.transport.abort()


@asynccontextmanager
async def open_stdio() -> AsyncIterator[StdioTransport]:
    """This process's own. `ConfigError` where they are no pipes."""
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
        # Files and /dev/null cannot be waited for; a terminal can, for whoever wants to type messages.
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or file.isatty()):
            raise ConfigError([f"standard {name} is no pipe: --acp is for editors, which start this as their child"])
