"""A terminal without a keyboard: programs write to it line by line, as for users, and can read nothing.

Invariant: each use starts with the original modes, and without output of the previous use.
"""

from __future__ import annotations

import asyncio
import os
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from callwright.errors import ToolError

__all__ = ["PseudoTerminal"]

_CHUNK_BYTES = 65536
# More than a terminal buffers: what still arrives after it comes from a process that should not write here.
_MAX_LEFTOVER_BYTES = 1 << 20


class PseudoTerminal:
    """Both ends of a terminal. `writer` is the one for programs."""

    def __init__(self, *, columns: int, rows: int) -> None:
        try:
            self._master_fd, self._slave_fd = os.openpty()
        except OSError as error:
            raise ToolError(f"no terminal could be opened: {error.strerror}") from error
        termios.tcsetwinsize(self._slave_fd, (rows, columns))
        self._modes = termios.tcgetattr(self._slave_fd)
        self._modes[1] &= ~termios.OPOST  # newlines are not translated
        self._modes[3] &= ~termios.ECHO
        os.set_blocking(self._master_fd, False)
        # A pager without a keyboard at its input tries its output, and then the terminal by its name: the first is
        # write-only, and the second cannot be opened.
        self.writer_fd = os.open(os.ttyname(self._slave_fd), os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)
        os.fchmod(self._slave_fd, 0)

    @contextmanager
    def forward_output(self, feed: Callable[[bytes], None]) -> Iterator[None]:
        """Forward what programs write to `feed` while the block runs, and the rest of the output after it."""
        loop = asyncio.get_running_loop()
        termios.tcsetattr(self._slave_fd, termios.TCSANOW, self._modes)
        self._drain_output(lambda data: None)
        loop.add_reader(self._master_fd, self._read_chunk, feed)
        try:
            yield
        finally:
            loop.remove_reader(self._master_fd)
            self._drain_output(feed)

    def close(self) -> None:
        """Close both ends; processes that still write receive an error."""
        for end in (self.writer_fd, self._slave_fd, self._master_fd):
            os.close(end)

    def _drain_output(self, feed: Callable[[bytes], None]) -> None:
        left = _MAX_LEFTOVER_BYTES
        while left > 0 and (size := self._read_chunk(feed)):
            left -= size

    def _read_chunk(self, feed: Callable[[bytes], None]) -> int:
        try:
            data = os.read(self._master_fd, _CHUNK_BYTES)
        except BlockingIOError:
            return 0
        feed(data)
        return len(data)
