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

__all__ = ["DEFAULT_LIMIT", "Emit", "Marks", "Reading", "Source", "ignore", "marks"]

T = TypeVar("T")
Reading = Generator[None, None, T]
"""A piece of grammar: yields when it needs more text, returns what it read."""

Emit = Callable[[str], object]

DEFAULT_LIMIT = 16 * 1024 * 1024
"""Characters held undecided before we call it a fault: far above any sane argument, far below the machine."""

_WORD = re.compile(r"\S")


class Marks:
    """A set of markers, compiled once: find the first, the longest where several begin, or a prefix of one."""

    __slots__ = ("_first", "_match", "_prefixes", "_reach", "all")

    def __init__(self, markers: Iterable[str]) -> None:
        self.all = tuple(sorted(set(markers), key=lambda marker: (-len(marker), marker)))
        if not self.all or not self.all[-1]:
            raise MisuseError("markers must be given, and none of them empty")
        self._first = re.compile(f"[{''.join(sorted({re.escape(marker[0]) for marker in self.all}))}]").search
        self._match = re.compile("|".join(map(re.escape, self.all))).match
        self._prefixes = frozenset(marker[:size] for marker in self.all for size in range(len(marker)))
        self._reach = len(self.all[0])

    def find(self, text: str, position: int, final: bool) -> tuple[int, int]:
        """Where the first marker stands. Start equal to end: no marker, and text from there on must wait."""
        while first := self._first(text, position):
            start = first.start()
            if not final and self.undecided(text, start):
                return start, start
            if hit := self._match(text, start):
                return start, hit.end()
            position = start + 1
        return len(text), len(text)

    def at(self, text: str, position: int) -> int:
        """End of the marker that stands at `position`, or -1."""
        hit = self._match(text, position)
        return hit.end() if hit else -1

    def undecided(self, text: str, position: int) -> bool:
        """Whether all the text from `position` on is the beginning of a (or of a longer) marker."""
        return len(text) - position < self._reach and text[position:] in self._prefixes

    def cut(self, text: str) -> bool:
        """Whether the text ends inside a marker."""
        tails = range(max(len(text) - self._reach, 0), len(text.rstrip()))
        return any(self.undecided(text, start) for start in tails)


@lru_cache(maxsize=4096)
def marks(*markers: str) -> Marks:
    """The compiled set of these markers."""
    return Marks(markers)


class Source:
    """A growing text with a read position.

    `text[position:]` is what is not consumed yet; `closed` says that no more will come. Primitives
    of sister modules work on these three directly: attribute access is what makes them cheap.
    """

    __slots__ = (
        "_base",
        "_kept",
        "_kept_from",
        "_tokens",
        "closed",
        "limit",
        "position",
        "rewound",
        "text",
        "tokens_known",
    )

    def __init__(self, text: str = "", *, limit: int = DEFAULT_LIMIT) -> None:
        self.text = text
        self.position = 0
        self.closed = False
        self.rewound = False
        """Whether text is being read again: then nothing is put in doubt a second time, and reading stays linear."""
        self.limit = limit
        self.tokens_known: frozenset[str] = frozenset()
        self._tokens: set[int] = set()
        self._base = 0
        self._kept: list[str] | None = None
        self._kept_from = 0

    @classmethod
    def of(cls, text: str) -> Source:
        """A source that is complete: reading from it never waits."""
        source = cls(text)
        source.closed = True
        return source

    # ── the driver's side ──────────────────────────────────────────────────────────────────────

    def feed(self, chunk: str, tokens: Iterable[int] = ()) -> None:
        """Append a chunk; what was consumed before is forgotten. `tokens`: where in it special tokens begin."""
        position = self.position
        if self._kept is not None:
            self._kept.append(self.text[self._kept_from : position])
            self._kept_from = 0
        if position == len(self.text):
            self.text = chunk
        else:
            self.text = self.text[position:] + chunk
            if len(self.text) > self.limit:
                raise self.overflow()
        self._base += position
        self.position = 0
        if self.tokens_known:
            start = self._base + len(self.text) - len(chunk)
            needed = self._base if self._kept is None else 0
            self._tokens = {token for token in self._tokens if token >= needed}.union(start + at for at in tokens)

    def close(self) -> None:
        """Say that the text has ended."""
        self.closed = True

    def expect_tokens(self, markers: frozenset[str]) -> None:
        """From now on these markers count only where `feed` is told that a special token stands."""
        self.tokens_known = markers

    def is_literal(self, marker: str, start: int) -> bool:
        """Whether what looks like a special token at this place in `text` is known to be none."""
        return marker in self.tokens_known and self._base + start not in self._tokens

    def overflow(self) -> BackendError:
        """The error for a reader that would have to hold more than the limit."""
        message = f"the model's output holds an undecided stretch of more than {self.limit} characters"
        return BackendError(message, kind="unusable")

    # ── keeping what is consumed while it is not yet sure what it is ──────────────────────────────

    def keep(self, before: str = "") -> None:
        """Keep what is consumed from here on, for `kept`, after what was kept `before`."""
        self._kept = [before]
        self._kept_from = self.position

    @property
    def keeping(self) -> bool:
        """Whether what is consumed is being kept."""
        return self._kept is not None

    def kept(self) -> str:
        """All that was consumed since `keep`; keeping ends. Empty when nothing was being kept."""
        if self._kept is None:
            return ""
        text = "".join(self._kept) + self.text[self._kept_from : self.position]
        self._kept = None
        return text

    def rewind(self) -> None:
        """Go back to where keeping began."""
        self.rewound = True
        text = self.kept()
        self.text = text + self.text[self.position :]
        self._base += self.position - len(text)
        self.position = 0

    def settle(self) -> None:
        """It is sure now: what was kept is not needed."""
        self._kept = None

    # ── primitives ──────────────────────────────────────────────────────────────────────────────

    def copy_until(self, markers: Marks, emit: Emit) -> Reading[str | None]:
        """Emit text up to the first marker, consume the marker and return it; None when the text ended first."""
        while True:
            text, position = self.text, self.position
            start, end = markers.find(text, position, self.closed)
            if start > position:
                emit(text[position:start])
                self.position = start
            if end > start:
                self.position = end
                marker = text[start:end]
                if self.tokens_known and self.is_literal(marker, start):
                    emit(marker)
                    continue
                return marker
            if self.closed:
                return None
            yield

    def take_until(self, markers: Marks) -> Reading[tuple[str, str | None]]:
        """The text up to the first marker, and that marker (consumed); None for the marker at the end of the text."""
        held = Held(self)
        marker = yield from self.copy_until(markers, held.add)
        return held.text(), marker

    def accept(self, markers: Marks) -> Reading[str]:
        """Consume and return the marker that stands here; the empty string when none does."""
        while not self.closed and markers.undecided(self.text, self.position):
            yield
        end = markers.at(self.text, self.position)
        if end < 0:
            return ""
        start, self.position = self.position, end
        return self.text[start:end]

    def looking_at(self, markers: Marks) -> Reading[str]:
        """The marker that stands here after white space, without consuming anything; empty when none does."""
        while True:
            start = _space_end(self.text, self.position)
            if self.closed or not markers.undecided(self.text, start):
                end = markers.at(self.text, start)
                return self.text[start:end] if end >= 0 else ""
            yield

    def accept_next(self, markers: Marks) -> Reading[str]:
        """Consume and return the marker that stands here after white space, and that space; where none does, consume
        nothing."""
        marker = yield from self.looking_at(markers)
        if marker:
            self.position = _space_end(self.text, self.position) + len(marker)
        return marker

    def breaks_off(self, markers: Marks) -> bool:
        """Whether the text has ended here, after white space or in the beginning of a marker. Nothing is consumed."""
        return self.closed and markers.undecided(self.text, _space_end(self.text, self.position))

    def ends_inside(self, markers: Marks) -> Reading[bool]:
        """Whether the text ends here, after white space, in the middle of a marker."""
        yield from self.looking_at(markers)
        start = _space_end(self.text, self.position)
        whole = markers.at(self.text, start) == len(self.text)
        return self.closed and start < len(self.text) and not whole and markers.undecided(self.text, start)

    def take_rest(self) -> str:
        """Consume and return all that has come."""
        start, self.position = self.position, len(self.text)
        return self.text[start:]

    def skip_space(self) -> Reading[str]:
        """Consume white space; return the character after it without consuming it, empty at the end."""
        while True:
            self.position = _space_end(self.text, self.position)
            if self.position < len(self.text):
                return self.text[self.position]
            if self.closed:
                return ""
            yield

    def skip_newlines(self, most: int) -> Reading[None]:
        """Consume up to `most` newlines that stand here: the framing that templates put around a block."""
        for _ in range(most):
            if (yield from self.peek()) != "\n":
                return
            self.position += 1

    def peek(self) -> Reading[str]:
        """The next character without consuming it, empty at the end."""
        while self.position == len(self.text):
            if self.closed:
                return ""
            yield
        return self.text[self.position]

    def take_while(self, pattern: re.Pattern[str], most: int) -> Reading[str]:
        """Consume the longest match of a pattern such as `[\\w.]*`, of at most `most` characters."""
        while True:
            hit = pattern.match(self.text, self.position, self.position + most)
            end = hit.end() if hit else self.position
            if end < len(self.text) or self.closed or end - self.position == most:
                start, self.position = self.position, end
                return self.text[start:end]
            yield


class Held:
    """Text collected until its meaning is known, within the source's limit."""

    __slots__ = ("_parts", "_size", "_source")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._parts: list[str] = []
        self._size = 0

    def add(self, piece: str) -> None:
        self._size += len(piece)
        if self._size > self._source.limit:
            raise self._source.overflow()
        self._parts.append(piece)

    def text(self) -> str:
        return "".join(self._parts)


def _space_end(text: str, position: int) -> int:
    word = _WORD.search(text, position)
    return word.start() if word else len(text)


def ignore(*_: str) -> None:
    """Where the text of something that is skipped goes, and the notes on it: the source keeps what is needed."""
