"""The text that a grammar reads: it grows at one end while it is consumed at the other.

A grammar is a generator. Each primitive here is one too, used with `yield from`; a bare `yield` means "more text is
needed". The caller then calls `Source.feed` or `Source.close` and resumes the generator. A primitive never consumes
text whose meaning the next character could still change, and never holds back more than that, so the result does not
depend on how the text is cut into chunks. Consumed text is not examined again: reading is linear in the length of the
text.

The text that a grammar buffers before it can decide is bounded by `limit`; exceeding it raises `BackendError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from callwright.errors import BackendError, MisuseError
from callwright.input_limits import MAX_SPACE_LENGTH

if TYPE_CHECKING:
    from callwright.text.boundaries import CallBoundary

__all__ = ["DEFAULT_LIMIT", "MarkerSet", "ParseStep", "Source", "TextSink", "compile_markers", "ignore"]

T = TypeVar("T")
ParseStep = Generator[None, None, T]
"""A step of a grammar: a generator that yields when it needs more text and returns what it read."""

TextSink = Callable[[str], object]

DEFAULT_LIMIT = 16 * 1024 * 1024
"""How many undecided characters may be buffered: far more than any real argument, far less than the memory."""

_NONSPACE = re.compile(r"\S")


class MarkerSet:
    """A compiled set of markers: finds the first one in a text (the longest, if several begin there), or a prefix."""

    __slots__ = ("_first", "_match", "_prefixes", "_reach", "markers")

    def __init__(self, markers: Iterable[str]) -> None:
        self.markers = tuple(sorted(set(markers), key=lambda marker: (-len(marker), marker)))
        if not self.markers or not self.markers[-1]:
            raise MisuseError("a marker set needs at least one marker, and no marker may be empty")
        self._first = re.compile(f"[{''.join(sorted({re.escape(marker[0]) for marker in self.markers}))}]").search
        self._match = re.compile("|".join(map(re.escape, self.markers))).match
        self._prefixes = frozenset(marker[:size] for marker in self.markers for size in range(len(marker)))
        self._reach = len(self.markers[0])

    def find_first(self, text: str, position: int, final: bool) -> tuple[int, int]:
        """Return start and end of the first marker. Start equal to end: no marker, and the text from there on must
        wait."""
        while first := self._first(text, position):
            start = first.start()
            if not final and self.is_prefix_at(text, start):
                return start, start
            if match := self._match(text, start):
                return start, match.end()
            position = start + 1
        return len(text), len(text)

    def match_at(self, text: str, position: int) -> int:
        """Return the end of the marker at `position`, or -1."""
        match = self._match(text, position)
        return match.end() if match else -1

    def is_prefix_at(self, text: str, position: int) -> bool:
        """Whether all the text from `position` on is the beginning of a marker, or of a longer one."""
        return len(text) - position < self._reach and text[position:] in self._prefixes

    def has_partial_end(self, text: str) -> bool:
        """Whether the text ends inside a marker."""
        tails = range(max(len(text) - self._reach, 0), len(text.rstrip()))
        return any(self.is_prefix_at(text, start) for start in tails)


@lru_cache(maxsize=4096)
def compile_markers(*markers: str) -> MarkerSet:
    """Return the compiled set of these markers."""
    return MarkerSet(markers)


class Source:
    """A growing text with a read position.

    `text[position:]` is not consumed yet; `closed` means that no more text will arrive. The primitives of the other
    modules use these attributes directly, because attribute access is cheaper than a method call.
    """

    __slots__ = (
        "_base_offset",
        "_capture_start",
        "_captured",
        "_held",
        "_held_mark",
        "_held_start",
        "_token_offsets",
        "boundary",
        "closed",
        "ended_at_boundary",
        "is_cut",
        "is_finished",
        "is_rewound",
        "limit",
        "position",
        "special_tokens",
        "text",
    )

    def __init__(self, text: str = "", *, limit: int = DEFAULT_LIMIT) -> None:
        self.text = text
        self.position = 0
        self.closed = False
        self.is_cut = False
        """Whether the text ended because the model reached its token limit."""
        self.is_finished = False
        """Whether the model itself ended the text; if neither is set, nobody knows."""
        self.is_rewound = False
        """Whether text is being read a second time. Nothing is rewound again then, so that reading stays linear."""
        self.limit = limit
        self.special_tokens: frozenset[str] = frozenset()
        self._token_offsets: set[int] = set()
        self._base_offset = 0
        self._captured: list[str] | None = None
        self._capture_start = 0
        self._held: list[str] | None = None
        self._held_start = 0
        self._held_mark = 0
        self.boundary: CallBoundary | None = None
        """Where the call that is being read must have ended, if its family has such markers."""
        self.ended_at_boundary = False
        """Whether the last string ended at such a place, where the call ends too."""

    @classmethod
    def from_text(cls, text: str) -> Source:
        """Return a source that is complete: reading from it never waits."""
        source = cls(text)
        source.closed = True
        return source

    # ── for the parser ─────────────────────────────────────────────────────────────────────────

    def feed(self, chunk: str, tokens: Iterable[int] = ()) -> None:
        """Append a chunk and forget the consumed text. `tokens` are the offsets of special tokens in the chunk."""
        position = self.position
        if self._captured is not None:
            self._captured.append(self.text[self._capture_start : position])
            self._capture_start = 0
        if self._held is not None:
            self._held.append(self.text[self._held_start : position])
            self._held_start = 0
        if position == len(self.text):
            self.text = chunk
        else:
            self.text = self.text[position:] + chunk
            if len(self.text) > self.limit:
                raise self.build_overflow_error()
        self._base_offset += position
        self.position = 0
        if self.special_tokens:
            start = self._base_offset + len(self.text) - len(chunk)
            needed = self._base_offset if self._captured is None and self._held is None else 0
            self._token_offsets = {token for token in self._token_offsets if token >= needed}.union(
                start + at for at in tokens
            )

    def close(self, reason: str | None = None) -> None:
        """Mark the end of the text, with the finish reason that the backend reported."""
        self.closed = True
        self.is_cut = reason == "length"
        self.is_finished = reason in ("stop", "tool_calls")

    def expect_tokens(self, markers: frozenset[str]) -> None:
        """From now on these markers count only where `feed` reports a special token."""
        self.special_tokens = markers

    def is_literal(self, marker: str, start: int) -> bool:
        """Whether the text at this position looks like a special token but is known to be none."""
        return marker in self.special_tokens and self._base_offset + start not in self._token_offsets

    def build_overflow_error(self) -> BackendError:
        """Return the error for a reader that would have to buffer more than the limit."""
        message = f"the model's output has more than {self.limit} characters in a row that cannot be classified"
        return BackendError(message, kind="unusable")

    @property
    def may_be_cut(self) -> bool:
        """Whether the text ended, and perhaps not where the model wanted it to end."""
        return self.closed and not self.is_finished

    # ── capturing consumed text until its meaning is known ────────────────────────────────────────

    def start_capture(self, prefix: str = "") -> None:
        """Record the text that is consumed from here on, for `end_capture`. The record starts with `prefix`."""
        self._captured = [prefix]
        self._capture_start = self.position
        self._held_mark = 1

    @property
    def is_capturing(self) -> bool:
        """Whether consumed text is being recorded."""
        return self._captured is not None

    def end_capture(self) -> str:
        """Stop recording and return the text consumed since `start_capture`; empty if nothing was recorded."""
        if self._captured is None:
            return ""
        text = "".join(self._captured) + self.text[self._capture_start : self.position]
        self._captured = None
        return text

    def start_hold(self) -> None:
        """Remember the text from here on, so that `rewind` can go back to it. Captures are not affected."""
        self._held = []
        self._held_start = self.position
        if self._captured is not None:
            self._captured.append(self.text[self._capture_start : self.position])
            self._capture_start = self.position
            self._held_mark = len(self._captured)

    @property
    def has_pending_newline(self) -> bool:
        """Whether the text consumed since `start_hold` has a newline."""
        return "\n" in self.text[self._held_start : self.position] or any("\n" in part for part in self._held or ())

    def end_hold(self) -> str:
        """Return the text consumed since `start_hold`, which is decided now."""
        text = "".join(self._held or ()) + self.text[self._held_start : self.position]
        self._held = None
        return text

    def rewind(self, *, is_long: bool = True) -> None:
        """Go back to where `start_hold` was called. `is_long` if the text since then has no bound."""
        self.is_rewound = self.is_rewound or is_long
        text = self.end_hold()
        self.text = text + self.text[self.position :]
        self._base_offset += self.position - len(text)
        self.position = 0
        if self._captured is not None:
            del self._captured[self._held_mark :]
            self._capture_start = 0

    def drop_capture(self) -> None:
        """Stop recording and discard the record."""
        self._captured = None

    # ── primitives ──────────────────────────────────────────────────────────────────────────────

    def copy_until(self, markers: MarkerSet, emit: TextSink) -> ParseStep[str | None]:
        """Emit text up to the first marker, consume the marker and return it; None if the text ended first."""
        while True:
            text, position = self.text, self.position
            start, end = markers.find_first(text, position, self.closed)
            if start > position:
                emit(text[position:start])
                self.position = start
            if end > start:
                self.position = end
                marker = text[start:end]
                if self.special_tokens and self.is_literal(marker, start):
                    emit(marker)
                    continue
                return marker
            if self.closed:
                return None
            yield

    def take_to(self, markers: MarkerSet) -> ParseStep[tuple[str, str | None]]:
        """Return the text up to the first marker, and that marker (consumed), or None if the text ended first."""
        buffer = TextBuffer(self)
        marker = yield from self.copy_until(markers, buffer.add)
        return buffer.get_text(), marker

    def accept(self, markers: MarkerSet) -> ParseStep[str]:
        """Consume and return the marker at the position; return an empty string if there is none."""
        while not self.closed and markers.is_prefix_at(self.text, self.position):
            yield
        end = markers.match_at(self.text, self.position)
        if end < 0:
            return ""
        start, self.position = self.position, end
        return self.text[start:end]

    def peek_marker(self, markers: MarkerSet) -> ParseStep[str]:
        """Return the marker after optional white space, without consuming anything; empty if there is none."""
        while True:
            start = _find_space_end(self.text, self.position)
            if start - self.position > MAX_SPACE_LENGTH:
                return ""
            if self.closed or not markers.is_prefix_at(self.text, start):
                end = markers.match_at(self.text, start)
                return self.text[start:end] if end >= 0 else ""
            yield

    def accept_next(self, markers: MarkerSet) -> ParseStep[str]:
        """Consume optional white space and the marker after it, and return the marker. If there is none, consume
        nothing and return an empty string."""
        marker = yield from self.peek_marker(markers)
        if marker:
            self.position = _find_space_end(self.text, self.position) + len(marker)
        return marker

    def is_truncated_at(self, markers: MarkerSet) -> bool:
        """Whether the text ended here: after white space, or in the beginning of a marker. Nothing is consumed."""
        return self.closed and markers.is_prefix_at(self.text, _find_space_end(self.text, self.position))

    def is_truncated_inside(self, markers: MarkerSet) -> ParseStep[bool]:
        """Whether the text ends here, after white space, in the middle of a marker."""
        yield from self.peek_marker(markers)
        start = _find_space_end(self.text, self.position)
        is_complete = markers.match_at(self.text, start) == len(self.text)
        return self.closed and start < len(self.text) and not is_complete and markers.is_prefix_at(self.text, start)

    def take_rest(self) -> str:
        """Consume and return all text that has arrived."""
        start, self.position = self.position, len(self.text)
        return self.text[start:]

    def skip_space(self) -> ParseStep[str]:
        """Consume white space; return the character after it without consuming it, empty at the end."""
        while True:
            self.position = _find_space_end(self.text, self.position)
            if self.position < len(self.text):
                return self.text[self.position]
            if self.closed:
                return ""
            yield

    def skip_newlines(self, max_count: int) -> ParseStep[None]:
        """Consume up to `max_count` newlines: the framing that templates put around a block."""
        for _ in range(max_count):
            if (yield from self.peek()) != "\n":
                return
            self.position += 1

    def peek(self) -> ParseStep[str]:
        """Return the next character without consuming it; empty at the end."""
        while self.position == len(self.text):
            if self.closed:
                return ""
            yield
        return self.text[self.position]

    def take_while(self, pattern: re.Pattern[str], max_length: int) -> ParseStep[str]:
        """Consume the longest match of a pattern such as `[\\w.]*`, of at most `max_length` characters."""
        while True:
            match = pattern.match(self.text, self.position, self.position + max_length)
            end = match.end() if match else self.position
            if end < len(self.text) or self.closed or end - self.position == max_length:
                start, self.position = self.position, end
                return self.text[start:end]
            yield


class TextBuffer:
    """Collects text until its meaning is known, within the source's limit."""

    __slots__ = ("_parts", "_size", "_source")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._parts: list[str] = []
        self._size = 0

    def add(self, piece: str) -> None:
        self._size += len(piece)
        if self._size > self._source.limit:
            raise self._source.build_overflow_error()
        self._parts.append(piece)

    def get_text(self) -> str:
        return "".join(self._parts)


def _find_space_end(text: str, position: int) -> int:
    word = _NONSPACE.search(text, position)
    return word.start() if word else len(text)


def ignore(*_: str) -> None:
    """Discard text and notes. A sink for text that is skipped; the source's capture has what is needed."""
