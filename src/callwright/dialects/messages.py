"""A turn of framed messages, each with a header that says where it goes: Harmony, and who took its framing over.

    <|start|>assistant<|channel|>analysis<|message|>Need the weather.<|end|><|start|>assistant …

`Messages` reads one turn. Any marker may be missing, doubled or out of place, the output may begin
inside a header that the prompt opened, and the server may have eaten the special tokens; what cannot
be read as a message is set aside as malformed, and the next message is read as if nothing had been.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar

from callwright.dialects.base import FENCE, Dialect, Think
from callwright.dialects.message_header import (
    ANALYSIS,
    ASSISTANT,
    CHANNEL,
    CONSTRAIN,
    FOREIGN,
    MESSAGE,
    START,
    TO,
    Header,
    is_glued,
)
from callwright.text.json_stream import copy_json
from callwright.text.source import ParseStep, Source, TextSink, compile_markers, ignore
from callwright.turn import Turn

__all__ = ["Framed", "Messages"]

END_OF_TEXT = "<|endoftext|>"

_SPACES = (" ", "\n", "\t", "\r")
_PROSE = "prose"
_BODY = "body"


@dataclass(frozen=True, kw_only=True)
class Framed(Dialect):
    """A family that frames every message. Its body is the family's own."""

    addresses: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Recipients that are no tools, and the channel that each one means."""

    thinks: tuple[Think, ...] = ()
    framing: tuple[str, ...] = (END_OF_TEXT,)
    channels: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    """Markers inside a header."""
    ends_call: tuple[str, ...]
    ends_text: tuple[str, ...]
    bare: tuple[str, ...] = ()
    """Markers that begin a call even where no message frames it."""
    tags: Dialect | None = None
    """Another family, whose calls count where they stand in the words for the reader."""

    @property
    def openers(self) -> tuple[str, ...]:
        return (START, *self.sections[:1], *self.bare)

    @cached_property
    def frame(self) -> tuple[str, ...]:
        """The markers around messages."""
        return (START, MESSAGE, *self.sections, *dict.fromkeys(self.ends_call + self.ends_text))

    @property
    def markers(self) -> tuple[str, ...]:
        return self.frame

    @cached_property
    def begins(self) -> tuple[str, ...]:
        """What is left of the markers between two messages when a server strips special tokens."""
        glued = tuple(f"{ASSISTANT}{channel}" for channel in self.channels)
        return (*glued, f"{ASSISTANT} {TO}") if glued else ()

    @abstractmethod
    def tool_of(self, turn: Turn, recipient: str) -> str:
        """The tool that a recipient names; nothing when none was offered under that name."""

    @abstractmethod
    def read_body(self, source: Source, turn: Turn, header: Header) -> ParseStep[str]:
        """Read the body of a message to a tool, up to the marker that ends it, which stays.

        Returns the empty string, or why it is no call.
        """

    def skip_body(self, source: Source) -> ParseStep[None]:
        """Pass over what in a body may hold markers that are data."""
        if (yield from source.skip_space()) == "{":
            yield from copy_json(source, ignore, ignore)

    def grammar(self, source: Source, turn: Turn) -> ParseStep[None]:
        messages = Messages(self, source, turn)
        yield from messages.run((yield from messages.opening()))

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        """Where one message is framed all are: read the turn to its end."""
        if opener not in self.bare and not (yield from source.peek_marker(compile_markers(*self.starts))):
            return "no message follows"
        yield from Messages(self, source, turn).run(opener)
        return ""


class Messages:
    """One turn being read.

    Text outside any message is shown where the turn is nothing but text. Among messages it waits: next
    to a call it is what is left of a broken message, and is set aside.
    """

    def __init__(self, dialect: Framed, source: Source, turn: Turn) -> None:
        self._dialect = dialect
        self._source = source
        self._turn = turn
        self._framed = False
        self._stripped = False
        self._outside: list[str] = []
        self._stops = (*dialect.ends_call, *dialect.ends_text, *dialect.framing)
        self._tags = dialect.tags.openers_for(turn.tools) if dialect.tags else ()
        quoted = tuple(f"`{tag}" for tag in self._tags)
        self._inside = (*self._tags, *quoted, FENCE) if self._tags else ()
        """What is listened for in the words for the reader: tags that begin calls, and what makes them mere words."""
        self._listen((*dialect.frame, *dialect.framing))

    def _listen(self, ends: tuple[str, ...]) -> None:
        self._ends = compile_markers(*ends)
        self._ends_outside = compile_markers(*ends, *self._dialect.bare)
        self._ends_word = compile_markers(*ends, *_SPACES, "{", *self._dialect.bare)

    def _strip(self) -> None:
        """No marker stood where one must: the server stripped them, and words are all that is left."""
        if self._dialect.channels and not self._stripped:
            self._stripped = True
            self._turn.add_repair("stripped_tokens", "the special tokens were missing")
            self._listen((*self._dialect.frame, *self._dialect.framing, *self._dialect.begins))

    # ── from message to message ────────────────────────────────────────────────────────────────

    def run(self, marker: str | None) -> ParseStep[None]:
        """Read messages from this marker on to the end of the turn."""
        while marker is not None:
            self._source.start_capture()
            marker = yield from self._message(marker)
        self._settle(call=False)

    def opening(self) -> ParseStep[str | None]:
        """Read the beginning of the output, which may be the rest of a header, up to the first marker."""
        source, dialect = self._source, self._dialect
        source.start_capture()
        tail = f" {TO}"
        known = (*dialect.frame, *dialect.begins)
        word = yield from source.accept(compile_markers(tail, TO, ASSISTANT, *dialect.channels, *known))
        if word in known:
            return word
        if word.endswith(TO) or (word and (yield from source.peek_marker(compile_markers(*dialect.frame, TO)))):
            lead = ASSISTANT + word if word in dialect.channels else word.lstrip()
            return (yield from self._message("", lead, sure=word == tail))
        if word in dialect.channels and is_glued(word, (yield from source.peek())):
            return ASSISTANT + word
        return (yield from self._plain())

    def _plain(self) -> ParseStep[str | None]:
        """Text without any framing, what was kept of it included."""
        text = self._source.end_capture()
        if text:
            self._turn.add_text(text)
        return (yield from self._copy(self._turn.add_text, framed=False))

    def _message(self, marker: str, lead: str = "", *, sure: bool = True) -> ParseStep[str | None]:
        """Read one message from its header on, and return the marker that ended it.

        `lead` is a first word that is read already; unless it is `sure` to be one, plain text is not taken
        for a message.
        """
        dialect = self._dialect
        header = Header(dialect.channels, dialect.addresses, lambda name: dialect.tool_of(self._turn, name))
        ending = yield from self._header(header, marker, lead)
        if not sure and (ending in (None, _PROSE) or (ending == _BODY and (header.loose or not header.tool))):
            return (yield from self._plain())
        if header.empty and ending not in (MESSAGE, _PROSE):
            self._note_stray(marker, ending)
            return ending
        if header.foreign and (ending == MESSAGE or header.started):
            return (yield from self._aside(f"a message of {header.role!r}", ending))
        if ending is None and (header.recipient or not header.loose or header.partial):
            # Nothing of a header is text. A mere word after the end of a call is junk that models add, and not what
            # is left of a header: vLLM #22519.
            if marker in dialect.ends_call and not header.section and not header.recipient:
                self._turn.add_malformed(self._source.end_capture(), "text outside any message")
            else:
                self._turn.add_truncated(self._source.end_capture(), "the header of a message")
            return None
        if marker in self._stops and (header.channel or header.recipient or ending == MESSAGE):
            self._turn.add_repair("missing_start", f"{START} was missing before a message")
        if header.recipient:
            return (yield from self._to_tool(header, ending))
        return (yield from self._to_reader(header, ending))

    def _header(self, header: Header, marker: str, lead: str) -> ParseStep[str | None]:
        """Read a header. Returns the marker that ended it, or what follows without one."""
        source, dialect = self._source, self._dialect
        if marker in dialect.begins:
            tail = f" {TO}"
            header.word(marker.removesuffix(tail))
            if not marker.endswith(tail) and not (yield from source.accept(compile_markers(TO, tail))):
                return _PROSE
            lead = TO
        elif marker in dialect.bare:
            source.position -= len(marker)
            header.recipient = marker
            self._turn.add_repair("missing_header", "a call stood outside any message")
            return _BODY
        elif marker == MESSAGE:
            return MESSAGE
        elif marker in dialect.sections:
            header.enter(marker)
        header.started = marker == START
        return (yield from self._words(header, lead))

    def _words(self, header: Header, word: str) -> ParseStep[str | None]:
        source, dialect = self._source, self._dialect
        while True:
            more, mark = yield from source.take_to(self._ends_word)
            if word + more:
                header.word(word + more)
            word = ""
            if mark is None or (mark in self._ends.markers and mark not in dialect.sections):
                return mark
            if mark in dialect.sections:
                header.enter(mark)
            elif mark in _SPACES:
                header.space(mark)
            else:
                source.position -= len(mark)
                if mark in dialect.bare:
                    header.recipient = header.recipient or mark
                return _BODY if header.recipient or header.typed else _PROSE
            if header.is_prose:
                return _PROSE

    def _note_stray(self, marker: str, ending: str | None) -> None:
        """Two markers with nothing between them: only a stop before a start is as it should be."""
        if ending is None or (marker in self._stops and ending in (START, *self._dialect.framing)):
            return
        self._turn.add_repair("stray_marker", f"{ending} came right after {marker}")

    # ── messages to tools ──────────────────────────────────────────────────────────────────────

    def _to_tool(self, header: Header, ending: str | None) -> ParseStep[str | None]:
        source, turn = self._source, self._turn
        self._settle(call=bool(header.tool))
        self._framed = self._framed or header.recipient not in self._dialect.bare
        if ending in self._dialect.ends_call and not header.loose:
            # No body at all, but the call is closed: it has no arguments.
            source.position -= len(ending)
        elif ending == _BODY and not header.section:
            self._strip()
        elif ending not in (MESSAGE, _BODY, _PROSE):
            turn.add_malformed(source.end_capture(), "the message has no body")
            return ending
        header.message()
        problem = yield from self._dialect.read_body(source, turn, header)
        if problem:
            ending = yield from self._aside(problem, MESSAGE)
            turn.is_truncated = turn.is_truncated or (ending is None and bool(header.tool))
            return ending
        return (yield from (self._after_call() if self._framed else self._outside_text("", _PROSE)))

    def _after_call(self) -> ParseStep[str | None]:
        """What stands between a call's body and the next message."""
        source, turn, dialect = self._source, self._turn, self._dialect
        while True:
            char = yield from source.skip_space()
            mark = yield from source.accept(self._ends)
            if mark or not char:
                if mark not in self._stops:
                    if not turn.is_truncated and not self._stripped:
                        turn.add_repair("missing_close", f"{dialect.ends_call[0]} was missing after a call")
                elif mark not in dialect.ends_call:
                    turn.add_repair("wrong_close", f"{mark} closed a call")
                return mark or None
            if char not in "}]":
                source.start_capture()
                return (yield from self._aside("text after the arguments of a call", MESSAGE))
            source.position += 1
            turn.add_repair("extra_bracket", f"{char!r} stood after a call")

    def _aside(self, problem: str, ending: str | None) -> ParseStep[str | None]:
        """Set a message aside, to its end. Markers inside its JSON strings do not end it."""
        source = self._source
        while ending == MESSAGE:
            yield from self._dialect.skip_body(source)
            _, ending = yield from source.take_to(self._ends)
        self._turn.add_malformed(source.end_capture().removesuffix(ending or ""), problem)
        return ending

    # ── messages to the reader ─────────────────────────────────────────────────────────────────

    def _to_reader(self, header: Header, ending: str | None) -> ParseStep[str | None]:
        source, turn = self._source, self._turn
        text = header.loose
        if ending == MESSAGE:
            header.message()
            text = ""
        elif header.gap:
            text, header.channel = source.end_capture().removeprefix(ASSISTANT), ""
        source.drop_capture()
        if header.odd:
            turn.add_repair("odd_header", ", ".join(header.odd))
        if not header.channel and ending != MESSAGE:
            return (yield from self._outside_text(text, ending))
        self._framed = True
        if header.channel != ANALYSIS:
            self._settle(call=False)
        if ending != MESSAGE and (header.glued or not (header.section or header.started)):
            self._strip()
        elif ending != MESSAGE and (text or ending in (_PROSE, _BODY)):
            turn.add_repair("missing_message", f"{MESSAGE} was missing after a header")
        return (
            yield from self._said(turn.add_reasoning if header.channel == ANALYSIS else turn.add_text, text, ending)
        )

    def _outside_text(self, text: str, ending: str | None) -> ParseStep[str | None]:
        """Text that no header introduces."""
        emit = self._outside.append if self._framed else self._turn.add_text
        ending = yield from self._said(emit, text, ending, framed=False)
        if self._turn.call_count:
            self._settle(call=True)
        return ending

    def _said(self, emit: TextSink, text: str, ending: str | None, *, framed: bool = True) -> ParseStep[str | None]:
        """Say what is known of a body and the rest of it."""
        if text:
            emit(text)
        if ending in (MESSAGE, _PROSE, _BODY):
            return (yield from self._copy(emit, framed=framed))
        return ending

    def _copy(self, emit: TextSink, *, framed: bool) -> ParseStep[str | None]:
        """Copy a body to the marker that ends it. A marker that continues nothing is a word of the text."""
        source, turn, dialect = self._source, self._turn, self._dialect
        ends, fenced = self._ends if framed else self._ends_outside, False
        if self._inside and emit == turn.add_text:
            ends = compile_markers(*ends.markers, *self._inside)
        while True:
            marker = yield from source.copy_until(ends, emit)
            if marker in self._tags and dialect.tags and not fenced:
                yield from dialect.tags.attempt(source, turn, marker, emit)
            elif marker in self._inside:
                emit(marker or "")
                fenced ^= marker == FENCE
            elif marker in (MESSAGE, CONSTRAIN):
                turn.add_repair("stray_marker", f"{marker} stood inside a message")
            elif marker in (START, CHANNEL):
                if (yield from self._is_message()):
                    if framed:
                        turn.add_repair("missing_close", f"{dialect.ends_text[0]} was missing before {marker}")
                    return marker
                emit(marker)
                turn.add_repair("literal_marker", f"{marker} stood inside the text")
            else:
                if framed and marker in dialect.ends_call and marker not in dialect.ends_text:
                    turn.add_repair("wrong_close", f"{marker} closed a text")
                return marker

    def _is_message(self) -> ParseStep[bool]:
        """Whether a header follows here, or what the end of the output left of one."""
        dialect, source = self._dialect, self._source
        words = compile_markers(*dialect.frame, *dialect.channels, ASSISTANT, TO, "functions.", *FOREIGN)
        follows = yield from source.peek_marker(words)
        return bool(follows) or words.is_prefix_at(source.text, source.position)

    def _settle(self, *, call: bool) -> None:
        """Decide about text outside any message: next to a call it is set aside, else it is text."""
        text = "".join(self._outside)
        self._outside.clear()
        if text.strip() and (call or self._turn.call_count):
            self._turn.add_malformed(text, "text outside any message")
        elif text.strip():
            self._turn.add_repair("missing_header", "text stood outside any message")
            self._turn.add_text(text)
