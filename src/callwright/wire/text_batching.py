"""Batch text so that clients do not mistake it for a repetition, whatever sizes the model's tokens have.

VS Code Copilot Chat (chat-lib 0.66, `anomalyDetection.ts`) discards a whole answer if its last 10 chunks are the same,
or if its last 30, 45, 60 or 120 repeat a pattern of up to 10, 20, 30 or 60 chunks; it checks all chunks once, and once
those that are not blank. A table's ruler, streamed token by token, is enough. So text is joined into pieces of
irregular size, and no piece equals one of the last `REPEAT_WINDOW`: then no pattern can repeat. Memory is bounded, and
the pieces join to the text.
"""

from __future__ import annotations

from itertools import cycle

__all__ = ["TextBatcher"]

REPEAT_WINDOW = 128
"""Twice the longest pattern, so that blank pieces between others do not matter."""
MAX_PENDING_CHARACTERS = 3 * REPEAT_WINDOW
"""Text of this length is sent even if it must be split to be new: among so many positions one always is."""
_BATCH_SIZES = (5, 9, 6, 12, 7, 10)


class TextBatcher:
    """Batches one text. Each method returns what to send now, possibly nothing."""

    __slots__ = ("_pending", "_recent", "_size", "_sizes")

    def __init__(self) -> None:
        self._pending = ""
        self._recent: dict[int, None] = {}
        """Hashes of the last pieces, oldest first: a collision only makes a piece wait."""
        self._sizes = cycle(_BATCH_SIZES)
        self._size = 1
        """The first piece is sent at once: the user waits for it."""

    def feed(self, text: str) -> str:
        """Add text and return the piece to send."""
        self._pending = pending = self._pending + text
        if len(pending) < self._size:
            return ""
        if self._can_send(pending):
            return self._take_batch(len(pending))
        return "" if len(pending) < MAX_PENDING_CHARACTERS else self._take_batch(self._find_longest_unique())

    @property
    def has_pending(self) -> bool:
        """Whether `flush` would send something."""
        return self._can_send(self._pending)

    def flush(self) -> str:
        """Return the pending text after a pause, unless that would repeat a piece."""
        return self._take_batch(len(self._pending)) if self.has_pending else ""

    def drain(self) -> tuple[str, ...]:
        """Return all pending text, because something else follows; in two pieces if one would be a repetition."""
        pending = self._pending
        if not pending:
            return ()
        if hash(pending) in self._recent:
            for end in range(1, len(pending)):
                head, tail = pending[:end], pending[end:]
                if head != tail and hash(head) not in self._recent and hash(tail) not in self._recent:
                    return self._take_batch(end), self._take_batch(len(tail))
        return (self._take_batch(len(pending)),)

    def _can_send(self, text: str) -> bool:
        """Whether a text may be a piece: new, visible, and without a final `\\r`, which Copilot Chat cuts off."""
        return text != "" and hash(text) not in self._recent and text[-1] != "\r" and not text.isspace()

    def _find_longest_unique(self) -> int:
        """Return the length of the longest new piece of the pending text, blank or not."""
        pending = self._pending
        ends = range(len(pending), 0, -1)
        return next(
            (end for end in ends if pending[end - 1] != "\r" and hash(pending[:end]) not in self._recent), len(pending)
        )

    def _take_batch(self, end: int) -> str:
        piece, self._pending = self._pending[:end], self._pending[end:]
        recent, key = self._recent, hash(piece)
        recent.pop(key, None)
        recent[key] = None
        if len(recent) > REPEAT_WINDOW:
            del recent[next(iter(recent))]
        self._size = next(self._sizes)
        return piece
