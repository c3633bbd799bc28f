"""Cuts: a call's arguments on their way out, in the pieces that a client wants (W-12)."""

from __future__ import annotations

import sys
from typing import Literal

__all__ = ["ArgumentChunker"]

_SIZES = {"generated": 0, "whole": sys.maxsize}


class ArgumentChunker:
    """The arguments of one call after the other: as they are generated, whole, or so many characters at a time."""

    __slots__ = ("_length", "_pending", "_size")

    def __init__(self, arguments: Literal["generated", "whole"] | int) -> None:
        self._size = _SIZES[arguments] if isinstance(arguments, str) else arguments
        self._pending: list[str] = []
        self._length = 0

    def feed(self, text: str) -> list[str]:
        """More of the arguments; the pieces that are ready."""
        if self._size <= 0:
            return [text]
        self._pending.append(text)
        self._length += len(text)
        return [] if self._length < self._size else self._split_chunks(self._size)

    def drain(self) -> list[str]:
        """The call is over: what is left of its arguments."""
        return self._split_chunks(self._length) if self._length else []

    def _split_chunks(self, size: int) -> list[str]:
        text = "".join(self._pending)
        whole = len(text) - len(text) % size
        self._pending = [text[whole:]]
        self._length = len(text) - whole
        return [text[at : at + size] for at in range(0, whole, size)]
