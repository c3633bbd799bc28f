"""Pieces: text cut for the client's eye and against its fears, whatever sizes the model's tokens have.

VS Code Copilot Chat (chat-lib 0.66, `anomalyDetection.ts`) throws a whole answer away when its last 10 chunks are
the same, or its last 30, 45, 60 or 120 repeat a pattern of up to 10, 20, 30 or 60 chunks; it looks once at all chunks
and once at those that are not blank. A table's ruler, streamed token by token, is enough. So text is joined into
pieces of irregular size, and no piece equals one of the last `WINDOW`: then no pattern can repeat. Memory is bounded,
and the joined pieces are the text.
"""

from __future__ import annotations

from itertools import cycle

__all__ = ["TextBatcher"]

REPEAT_WINDOW = 128
"""Twice the longest pattern, so that blank pieces between others do not matter."""
MAX_PENDING_CHARACTERS = 3 * REPEAT_WINDOW
"""Text of this length goes out even if it must be cut to be new: among so many cuts one always is."""
_BATCH_SIZES = (5, 9, 6, 12, 7, 10)


class TextBatcher:
    """One text on its way out. Each method returns what is to be sent now, perhaps nothing."""

    __slots__ = ("_pending", "_recent", "_size", "_sizes")

    def __init__(self) -> None:
        self._pending = ""
        self._recent: dict[int, None] = {}
        """Hashes of the last pieces, oldest first: a collision makes a piece wait, and nothing worse."""
        self._sizes = cycle(_BATCH_SIZES)
        self._size = 1
        """The first piece goes at once: it is what the reader waits for."""

    def feed(self, text: str) -> str:
        """More text."""
        self._pending = held = self._pending + text
        if len(held) < self._size:
            return ""
        if self._can_send(held):
            return self._take_batch(len(held))
        return "" if len(held) < MAX_PENDING_CHARACTERS else self._take_batch(self._find_longest_unique())

    @property
    def has_pending(self) -> bool:
        """Whether `flush` would send something."""
        return self._can_send(self._pending)

    def flush(self) -> str:
        """Nothing came for a moment: what is held, unless that would repeat a piece."""
        return self._take_batch(len(self._pending)) if self.has_pending else ""

    def drain(self) -> tuple[str, ...]:
        """Something else comes: all that is held, in two pieces where one would be a repetition."""
        held = self._pending
        if not held:
            return ()
        if hash(held) in self._recent:
            for end in range(1, len(held)):
                head, tail = held[:end], held[end:]
                if head != tail and hash(head) not in self._recent and hash(tail) not in self._recent:
                    return self._take_batch(end), self._take_batch(len(tail))
        return (self._take_batch(len(held)),)

    def _can_send(self, text: str) -> bool:
        """Whether a text may be a piece: new, visible, and without the last `\\r` that Copilot Chat cuts off."""
        return text != "" and hash(text) not in self._recent and text[-1] != "\r" and not text.isspace()

    def _find_longest_unique(self) -> int:
        """The longest piece of what is held that is new, blank or not."""
        held = self._pending
        ends = range(len(held), 0, -1)
        return next((end for end in ends if held[end - 1] != "\r" and hash(held[:end]) not in self._recent), len(held))

    def _take_batch(self, end: int) -> str:
        piece, self._pending = self._pending[:end], self._pending[end:]
        recent, key = self._recent, hash(piece)
        recent.pop(key, None)
        recent[key] = None
        if len(recent) > REPEAT_WINDOW:
            del recent[next(iter(recent))]
        self._size = next(self._sizes)
        return piece
