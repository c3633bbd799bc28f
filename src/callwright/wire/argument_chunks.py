"""Split a call's arguments into the chunks that a client expects (W-12)."""

from __future__ import annotations

import sys
from typing import Literal

__all__ = ["ArgumentChunker"]

_SIZES = {"generated": 0, "whole": sys.maxsize}


class ArgumentChunker:
    """Splits the arguments of consecutive calls: as generated, complete, or into chunks of a fixed size."""

    __slots__ = ("_length", "_pending", "_size")

    def __init__(self, arguments: Literal["generated", "whole"] | int) -> None:
        self._size = _SIZES[arguments] if isinstance(arguments, str) else arguments
        self._pending: list[str] = []
        self._length = 0

    def feed(self, text: str) -> list[str]:
        """Add more of the arguments and return the chunks that are ready."""
        if self._size <= 0:
            return [text]
        self._pending.append(text)
        self._length += len(text)
        return [] if self._length < self._size else self._split_chunks(self._size)

    def drain(self) -> list[str]:
        """End the call and return the rest of its arguments."""
        return self._split_chunks(self._length) if self._length else []

    def _split_chunks(self, size: int) -> list[str]:
        text = "".join(self._pending)
        end = len(text) - len(text) % size
        self._pending = [text[end:]]
        self._length = len(text) - end
        return [text[at : at + size] for at in range(0, end, size)]
