"""A terminal without a keyboard: programs write to it line by line, as they do for people, and can read nothing.

Invariant: each use begins with the modes of the first, and with nothing left over from the one before.
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
# More than a terminal buffers: whatever still comes after it is written by somebody who has no business here.
_MOST_LEFT_OVER_BYTES = 1 << 20


class PseudoTerminal:
    """Both ends of a terminal. `writer` is the one for programs."""

    def __init__(self, *, columns: int, rows: int) -> None:
        try:
            self._reader, self._keeper = os.openpty()
        except OSError as error:
            raise ToolError(f"no terminal could be opened: {error.strerror}") from error
        termios.tcsetwinsize(self._keeper, (rows, columns))
        self._modes = termios.tcgetattr(self._keeper)
        self._modes[1] &= ~termios.OPOST  # newlines stay as they are
        self._modes[3] &= ~termios.ECHO
        os.set_blocking(self._reader, False)
        # A pager that finds no keyboard at its input looks for one at its output, and then by the terminal's name: the
        # one can only be written to, and the other not be opened.
        self.writer = os.open(os.ttyname(self._keeper), os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)
        os.fchmod(self._keeper, 0)

    @contextmanager
    def watched(self, feed: Callable[[bytes], None]) -> Iterator[None]:
        """What programs write goes to `feed`, while the block runs and what is left over after it."""
        loop = asyncio.get_running_loop()
        termios.tcsetattr(self._keeper, termios.TCSANOW, self._modes)
        self._drain(lambda data: None)
        loop.add_reader(self._reader, self._read, feed)
        try:
            yield
        finally:
            loop.remove_reader(self._reader)
            self._drain(feed)

    def close(self) -> None:
        """Give it back; whoever still writes to it is told that nobody listens."""
        for end in (self.writer, self._keeper, self._reader):
            os.close(end)

    def _drain(self, feed: Callable[[bytes], None]) -> None:
        left = _MOST_LEFT_OVER_BYTES
        while left > 0 and (size := self._read(feed)):
            left -= size

    def _read(self, feed: Callable[[bytes], None]) -> int:
        try:
            data = os.read(self._reader, _CHUNK_BYTES)
        except BlockingIOError:
            return 0
        feed(data)
        return len(data)
