"""The text that a grammar reads: it grows at one end while it is consumed at the other.

A grammar is a generator. Each primitive here is one too, used with `yield from`; a bare `yield`
means "I need more text". Whoever drives the grammar answers with `Source.feed` or `Source.close`
and resumes it. A primitive never consumes text whose meaning the next character could still
change, and never holds back more than that, so the cuts between chunks leave no trace in what is
read. Consumed text is not looked at again: reading is linear in the length of the text.

What a grammar collects before it can decide is bounded by `limit`; reaching it is a `BackendError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from functools import lru_cache
from typing import TypeVar

from callwright.errors import BackendError, MisuseError

__all__ = ["DEFAULT_LIMIT", "MarkerSet", "ParseStep", "Source", "TextSink", "compile_markers", "ignore"]

T = TypeVar("T")
ParseStep = Generator[None, None, T]
"""A piece of grammar: yields when it needs more text, returns what it read."""

TextSink = Callable[[str], object]

DEFAULT_LIMIT = 16 * 1024 * 1024
"""Characters held undecided before we call it a fault: far above any sane argument, far below the machine."""

_NONSPACE = re.compile(r"\S")


class MarkerSet:
    """A set of markers, compiled once: find the first, the longest where several begin, or a prefix of one."""

    __slots__ = ("_first", "_match", "_prefixes", "_reach", "markers")

    def __init__(self, markers: Iterable[str]) -> None:
        self.markers = tuple(sorted(set(markers), key=lambda marker: (-len(marker), marker)))
        if not self.markers or not self.markers[-1]:
            raise MisuseError("markers must be given, and none of them empty")
        self._first = re.compile(f"[{''.join(sorted({re.escape(marker[0]) for marker in self.markers}))}]").search
        self._match = re.compile("|".join(map(re.escape, self.markers))).match
        self._prefixes = frozenset(marker[:size] for marker in self.markers for size in range(len(marker)))
        self._reach = len(self.markers[0])

    def find_first(self, text: str, position: int, final: bool) -> tuple[int, int]:
        """Where the first marker stands. Start equal to end: no marker, and text from there on must wait."""
        while first := self._first(text, position):
            start = first.start()
            if not final and self.is_prefix_at(text, start):
                return start, start
            if hit := self._match(text, start):
                return start, hit.end()
            position = start + 1
        return len(text), len(text)

    def match_at(self, text: str, position: int) -> int:
        """End of the marker that stands at `position`, or -1."""
        hit = self._match(text, position)
        return hit.end() if hit else -1

    def is_prefix_at(self, text: str, position: int) -> bool:
        """Whether all the text from `position` on is the beginning of a (or of a longer) marker."""
        return len(text) - position < self._reach and text[position:] in self._prefixes

    def has_partial_end(self, text: str) -> bool:
        """Whether the text ends inside a marker."""
        tails = range(max(len(text) - self._reach, 0), len(text.rstrip()))
        return any(self.is_prefix_at(text, start) for start in tails)


@lru_cache(maxsize=4096)
def compile_markers(*markers: str) -> MarkerSet:
    """The compiled set of these markers."""
    return MarkerSet(markers)


class Source:
    """A growing text with a read position.

    `text[position:]` is what is not consumed yet; `closed` says that no more will come. Primitives
    of sister modules work on these three directly: attribute access is what makes them cheap.
    """

    __slots__ = (
        "_base_offset",
        "_capture_start",
        "_captured",
        "_token_offsets",
        "closed",
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
        self.is_rewound = False
        """Whether text is being read again: then nothing is put in doubt a second time, and reading stays linear."""
        self.limit = limit
        self.special_tokens: frozenset[str] = frozenset()
        self._token_offsets: set[int] = set()
        self._base_offset = 0
        self._captured: list[str] | None = None
        self._capture_start = 0

    @classmethod
    def from_text(cls, text: str) -> Source:
        """A source that is complete: reading from it never waits."""
        source = cls(text)
        source.closed = True
        return source

    # ── the driver's side ──────────────────────────────────────────────────────────────────────

    def feed(self, chunk: str, tokens: Iterable[int] = ()) -> None:
        """Append a chunk; what was consumed before is forgotten. `tokens`: where in it special tokens begin."""
        position = self.position
        if self._captured is not None:
            self._captured.append(self.text[self._capture_start : position])
            self._capture_start = 0
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
            needed = self._base_offset if self._captured is None else 0
            self._token_offsets = {token for token in self._token_offsets if token >= needed}.union(
                start + at for at in tokens
            )

    def close(self) -> None:
        """Say that the text has ended."""
        self.closed = True

    def expect_tokens(self, markers: frozenset[str]) -> None:
        """From now on these markers count only where `feed` is told that a special token stands."""
        self.special_tokens = markers

    def is_literal(self, marker: str, start: int) -> bool:
        """Whether what looks like a special token at this place in `text` is known to be none."""
        return marker in self.special_tokens and self._base_offset + start not in self._token_offsets

    def build_overflow_error(self) -> BackendError:
        """The error for a reader that would have to hold more than the limit."""
        message = f"the model's output holds an undecided stretch of more than {self.limit} characters"
        return BackendError(message, kind="unusable")

    # ── keeping what is consumed while it is not yet sure what it is ──────────────────────────────

    def start_capture(self, prefix: str = "") -> None:
        """Keep what is consumed from here on, for `kept`, after what was kept `before`."""
        self._captured = [prefix]
        self._capture_start = self.position

    @property
    def is_capturing(self) -> bool:
        """Whether what is consumed is being kept."""
        return self._captured is not None

    def end_capture(self) -> str:
        """All that was consumed since `keep`; keeping ends. Empty when nothing was being kept."""
        if self._captured is None:
            return ""
        text = "".join(self._captured) + self.text[self._capture_start : self.position]
        self._captured = None
        return text

    def rewind(self) -> None:
        """Go back to where keeping began."""
        self.is_rewound = True
        text = self.end_capture()
        self.text = text + self.text[self.position :]
        self._base_offset += self.position - len(text)
        self.position = 0

    def drop_capture(self) -> None:
        """It is sure now: what was kept is not needed."""
        self._captured = None

    # ── primitives ──────────────────────────────────────────────────────────────────────────────

    def copy_until(self, markers: MarkerSet, emit: TextSink) -> ParseStep[str | None]:
        """Emit text up to the first marker, consume the marker and return it; None when the text ended first."""
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
        """The text up to the first marker, and that marker (consumed); None for the marker at the end of the text."""
        held = TextBuffer(self)
        marker = yield from self.copy_until(markers, held.add)
        return held.get_text(), marker

    def accept(self, markers: MarkerSet) -> ParseStep[str]:
        """Consume and return the marker that stands here; the empty string when none does."""
        while not self.closed and markers.is_prefix_at(self.text, self.position):
            yield
        end = markers.match_at(self.text, self.position)
        if end < 0:
            return ""
        start, self.position = self.position, end
        return self.text[start:end]

    def peek_marker(self, markers: MarkerSet) -> ParseStep[str]:
        """The marker that stands here after white space, without consuming anything; empty when none does."""
        while True:
            start = _find_space_end(self.text, self.position)
            if self.closed or not markers.is_prefix_at(self.text, start):
                end = markers.match_at(self.text, start)
                return self.text[start:end] if end >= 0 else ""
            yield

    def accept_next(self, markers: MarkerSet) -> ParseStep[str]:
        """Consume and return the marker that stands here after white space, and that space; where none does, consume
        nothing."""
        marker = yield from self.peek_marker(markers)
        if marker:
            self.position = _find_space_end(self.text, self.position) + len(marker)
        return marker

    def is_truncated_at(self, markers: MarkerSet) -> bool:
        """Whether the text has ended here, after white space or in the beginning of a marker. Nothing is consumed."""
        return self.closed and markers.is_prefix_at(self.text, _find_space_end(self.text, self.position))

    def is_truncated_inside(self, markers: MarkerSet) -> ParseStep[bool]:
        """Whether the text ends here, after white space, in the middle of a marker."""
        yield from self.peek_marker(markers)
        start = _find_space_end(self.text, self.position)
        whole = markers.match_at(self.text, start) == len(self.text)
        return self.closed and start < len(self.text) and not whole and markers.is_prefix_at(self.text, start)

    def take_rest(self) -> str:
        """Consume and return all that has come."""
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
        """Consume up to `most` newlines that stand here: the framing that templates put around a block."""
        for _ in range(max_count):
            if (yield from self.peek()) != "\n":
                return
            self.position += 1

    def peek(self) -> ParseStep[str]:
        """The next character without consuming it, empty at the end."""
        while self.position == len(self.text):
            if self.closed:
                return ""
            yield
        return self.text[self.position]

    def take_while(self, pattern: re.Pattern[str], max_length: int) -> ParseStep[str]:
        """Consume the longest match of a pattern such as `[\\w.]*`, of at most `most` characters."""
        while True:
            hit = pattern.match(self.text, self.position, self.position + max_length)
            end = hit.end() if hit else self.position
            if end < len(self.text) or self.closed or end - self.position == max_length:
                start, self.position = self.position, end
                return self.text[start:end]
            yield


class TextBuffer:
    """Text collected until its meaning is known, within the source's limit."""

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
    """Where the text of something that is skipped goes, and the notes on it: the source keeps what is needed."""
