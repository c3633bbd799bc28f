"""Split a call's arguments into the chunks that a client expects (W-12)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

__all__ = ["ArgumentChunker"]


class ArgumentChunker:
    """Splits the arguments of consecutive calls: as generated, complete, or into chunks of a fixed size."""

    __slots__ = ("_length", "_pending", "_size")

    def __init__(self, arguments: Literal["generated", "whole"] | int) -> None:
        self._size = arguments
        if isinstance(arguments, int) and arguments <= 0:
            self._size = "generated"
        self._pending: list[str] = []
        self._length = 0

    def feed(self, text: str) -> Sequence[str]:
        """Add more of the arguments and return the chunks that are ready, none of them empty."""
        size = self._size
        if size == "generated":
            return (text,) if text else ()
        self._pending.append(text)
        if size == "whole":
            return ()
        self._length += len(text)
        return () if self._length < size else self._split_chunks(size)

    def drain(self) -> Sequence[str]:
        """End the call and return the rest of its arguments."""
        rest = "".join(self._pending)
        self._pending.clear()
        self._length = 0
        return (rest,) if rest else ()

    def _split_chunks(self, size: int) -> list[str]:
        text = "".join(self._pending)
        end = len(text) - len(text) % size
        self._pending = [text[end:]]
        self._length = len(text) - end
        return [text[at : at + size] for at in range(0, end, size)]
