"""Standard input and output as lines, for editors that start us as their child."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

__all__ = ["StandardLines", "standard_lines"]

_LONGEST = 64 * 1024 * 1024
"""A prompt may carry whole files."""


class StandardLines:
    """The two ends. What others print must go to standard error."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        """The next line; empty at the end."""
        try:
            return await self._reader.readline()
        except ValueError:  # longer than anything that we take: nothing after it can be trusted
            return b""

    async def write(self, line: bytes) -> None:
        """Send one, as fast as it is taken."""
        self._writer.write(line)
        await self._writer.drain()


@asynccontextmanager
async def standard_lines() -> AsyncIterator[StandardLines]:
    """This process's own."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LONGEST)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    try:
        yield StandardLines(reader, asyncio.StreamWriter(transport, protocol, None, loop))
    finally:
        transport.close()
