"""A turn of framed messages, each with a header that says where it goes: Harmony and the families that adopted it.

    <|start|>assistant<|channel|>analysis<|message|>Need the weather.<|end|><|start|>assistant …

`FramedTurnReader` reads one turn. Any marker may be missing, doubled or misplaced, the output may begin inside a header
that the prompt opened, and the server may have stripped the special tokens. Text that cannot be read as a message is
reported as malformed, and reading continues with the next message.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar

from callwright.dialects.base import FENCE, Dialect, ReasoningTags
from callwright.dialects.message_header import (
    ANALYSIS,
    ASSISTANT,
    CHANNEL,
    CONSTRAIN,
    FOREIGN_ROLES,
    MESSAGE,
    RECIPIENT_PREFIX,
    START,
    MessageHeader,
    is_glued,
)
from callwright.text.boundaries import CallBoundary
from callwright.text.closing_tags import FOREIGN_CLOSERS, find_near_token
from callwright.text.json_stream import copy_json
from callwright.text.source import ParseStep, Source, TextSink, compile_markers, ignore
from callwright.turn import Turn

__all__ = ["FramedDialect", "FramedTurnReader"]

END_OF_TEXT = "<|endoftext|>"

_FOREIGN_CLOSERS = compile_markers(*FOREIGN_CLOSERS)
_OPEN_TAG = re.compile(r"<[^<>\n]{0,40}\Z").match
_SPACES = (" ", "\n", "\t", "\r")
_PROSE = "prose"
_BODY = "body"


@dataclass(frozen=True, kw_only=True)
class FramedDialect(Dialect):
    """A family that frames every message. Subclasses read the body."""

    non_tool_recipients: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Recipients that are not tools, each with its channel."""

    reasoning_tags: tuple[ReasoningTags, ...] = ()
    framing: tuple[str, ...] = (END_OF_TEXT,)
    channels: tuple[str, ...] = ()
    header_markers: tuple[str, ...] = ()
    """Markers inside a header."""
    call_end_markers: tuple[str, ...]
    text_end_markers: tuple[str, ...]
    unframed_openers: tuple[str, ...] = ()
    """Markers that begin a call even outside of any message."""
    tag_dialect: Dialect | None = None
    """Another family, whose calls count inside the text for the user."""

    @property
    def openers(self) -> tuple[str, ...]:
        return (START, *self.header_markers[:1], *self.unframed_openers)

    @cached_property
    def message_markers(self) -> tuple[str, ...]:
        """The markers around messages."""
        return (START, MESSAGE, *self.header_markers, *dict.fromkeys(self.call_end_markers + self.text_end_markers))

    @property
    def markers(self) -> tuple[str, ...]:
        return self.message_markers

    @cached_property
    def stripped_markers(self) -> tuple[str, ...]:
        """The text that remains between two messages if a server strips special tokens."""
        glued = tuple(f"{ASSISTANT}{channel}" for channel in self.channels)
        return (*glued, f"{ASSISTANT} {RECIPIENT_PREFIX}") if glued else ()

    @abstractmethod
    def find_recipient_tool(self, turn: Turn, recipient: str) -> str:
        """Return the tool that a recipient names; an empty string if the request has no such tool."""

    @abstractmethod
    def read_body(self, source: Source, turn: Turn, header: MessageHeader) -> ParseStep[str]:
        """Read the body of a message to a tool, up to the marker that ends it, which is not consumed.

        Return an empty string, or the reason why it is no call.
        """

    def skip_body(self, source: Source) -> ParseStep[None]:
        """Skip the part of a body that may contain markers as data."""
        if (yield from source.skip_space()) == "{":
            yield from copy_json(source, ignore, ignore)

    def build_boundary(self, turn: Turn) -> CallBoundary | None:
        """Every marker around messages ends a JSON body; a header is another call if it names a tool."""
        starts = (START, *self.header_markers[:1])
        ends = tuple(marker for marker in (*self.message_markers, *self.framing) if marker not in starts)
        return CallBoundary(ends, starts, (), (), turn.tools.__contains__, breaks=starts)

    def grammar(self, source: Source, turn: Turn) -> ParseStep[None]:
        messages = FramedTurnReader(self, source, turn)
        yield from messages.run((yield from messages.read_opening()))

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        """Read the turn to its end: if one message is framed, all are."""
        if opener not in self.unframed_openers and not (
            yield from source.peek_marker(compile_markers(*self.body_starts))
        ):
            return "no message follows"
        yield from FramedTurnReader(self, source, turn).run(opener)
        return ""


class FramedTurnReader:
    """Reads one turn.

    Text outside of any message is emitted if the turn is nothing but text. Among messages it waits: next to a call it
    is the rest of a broken message, and is reported as malformed.
    """

    def __init__(self, dialect: FramedDialect, source: Source, turn: Turn) -> None:
        self._dialect = dialect
        self._source = source
        self._turn = turn
        self._is_framed = False
        self._is_stripped = False
        self._outside_parts: list[str] = []
        self._stop_markers = (*dialect.call_end_markers, *dialect.text_end_markers, *dialect.framing)
        self._tag_openers = dialect.tag_dialect.list_openers(turn.tools) if dialect.tag_dialect else ()
        quoted = tuple(f"`{tag}" for tag in self._tag_openers)
        self._boundary = dialect.build_boundary(turn)
        self._text_markers = (*self._tag_openers, *quoted, FENCE) if self._tag_openers else ()
        """Markers inside text for the user: tags that begin calls, and quotes or fences that make them plain text."""
        self._set_end_marks((*dialect.message_markers, *dialect.framing))
        starts = (f" {RECIPIENT_PREFIX}", RECIPIENT_PREFIX, MESSAGE, *dialect.header_markers)
        self._header_starts = compile_markers(*(f"{ASSISTANT}{start}" for start in starts))
        """The beginnings of a header whose marker is missing."""

    def _set_end_marks(self, ends: tuple[str, ...]) -> None:
        self._end_marks = compile_markers(*ends)
        self._outside_end_marks = compile_markers(*ends, *self._dialect.unframed_openers)
        self._word_end_marks = compile_markers(*ends, *_SPACES, "{", *self._dialect.unframed_openers)

    def _note_stripped_tokens(self) -> None:
        """Record that a marker was missing where one is required: the server stripped them and left only text."""
        if self._dialect.channels and not self._is_stripped:
            self._is_stripped = True
            self._turn.add_repair("stripped_tokens", "the special tokens were missing")
            self._set_end_marks(
                (*self._dialect.message_markers, *self._dialect.framing, *self._dialect.stripped_markers)
            )

    # ── from message to message ────────────────────────────────────────────────────────────────

    def run(self, marker: str | None) -> ParseStep[None]:
        """Read messages from this marker on to the end of the turn."""
        while marker is not None:
            self._source.start_capture()
            marker = yield from self._read_message(marker)
        self._resolve_outside_text(has_call=False)

    def read_opening(self) -> ParseStep[str | None]:
        """Read the beginning of the output, which may be the rest of a header, up to the first marker."""
        source, dialect = self._source, self._dialect
        source.start_capture()
        tail = f" {RECIPIENT_PREFIX}"
        markers = (*dialect.message_markers, *dialect.stripped_markers)
        word = yield from source.accept(compile_markers(tail, RECIPIENT_PREFIX, ASSISTANT, *dialect.channels, *markers))
        if word in markers:
            return word
        if word.endswith(RECIPIENT_PREFIX) or (
            word and (yield from source.peek_marker(compile_markers(*dialect.message_markers, RECIPIENT_PREFIX)))
        ):
            lead = ASSISTANT + word if word in dialect.channels else word.lstrip()
            return (yield from self._read_message("", lead, is_certain=word == tail))
        if word in dialect.channels and is_glued(word, (yield from source.peek())):
            return ASSISTANT + word
        return (yield from self._read_plain_text())

    def _read_plain_text(self) -> ParseStep[str | None]:
        """Read text without any framing, including the captured text."""
        text = self._source.end_capture()
        if text:
            self._turn.add_text(text)
        return (yield from self._copy_body(self._turn.add_text, is_framed=False))

    def _read_message(self, marker: str, lead: str = "", *, is_certain: bool = True) -> ParseStep[str | None]:
        """Read one message from its header on, and return the marker that ended it.

        `lead` is a first word that is already read; unless it `is_certain` to belong to a header, plain text is not
        taken for a message.
        """
        dialect = self._dialect
        header = MessageHeader(
            dialect.channels, dialect.non_tool_recipients, lambda name: dialect.find_recipient_tool(self._turn, name)
        )
        ending = yield from self._read_header(header, marker, lead)
        if not is_certain and (
            ending in (None, _PROSE) or (ending == _BODY and (header.loose_text or not header.tool))
        ):
            return (yield from self._read_plain_text())
        if header.is_empty and ending not in (MESSAGE, _PROSE):
            self._note_stray_marker(marker, ending)
            return ending
        if header.is_foreign and (ending == MESSAGE or header.has_start):
            return (yield from self._report_message(f"a message of {header.role!r}", ending))
        if ending is None and (header.recipient or not header.loose_text or header.is_partial):
            # No part of a header is text. A single word after the end of a call is junk that models add, not the rest
            # of a header: vLLM #22519.
            if marker in dialect.call_end_markers and not header.section and not header.recipient:
                self._turn.add_malformed(self._source.end_capture(), "text outside of any message")
            else:
                self._turn.add_truncated(self._source.end_capture(), "the header of a message")
            return None
        if marker in self._stop_markers and (header.channel or header.recipient or ending == MESSAGE):
            self._turn.add_repair("missing_start", f"{START} was missing before a message")
        if header.recipient:
            return (yield from self._read_tool_message(header, ending))
        return (yield from self._read_text_message(header, ending))

    def _read_header(self, header: MessageHeader, marker: str, lead: str) -> ParseStep[str | None]:
        """Read a header. Return the marker that ended it, or what follows without one."""
        source, dialect = self._source, self._dialect
        if marker in dialect.stripped_markers:
            tail = f" {RECIPIENT_PREFIX}"
            header.add_word(marker.removesuffix(tail))
            if not marker.endswith(tail) and not (yield from source.accept(compile_markers(RECIPIENT_PREFIX, tail))):
                return _PROSE
            lead = RECIPIENT_PREFIX
        elif marker in dialect.unframed_openers:
            source.position -= len(marker)
            header.recipient = marker
            self._turn.add_repair("missing_header", "a call was outside of any message")
            return _BODY
        elif marker == MESSAGE:
            return MESSAGE
        elif marker in dialect.header_markers:
            header.enter_section(marker)
        header.has_start = marker == START
        return (yield from self._read_header_words(header, lead))

    def _read_header_words(self, header: MessageHeader, word: str) -> ParseStep[str | None]:
        source, dialect = self._source, self._dialect
        while True:
            more, mark = yield from source.take_to(self._word_end_marks)
            if word + more:
                header.add_word(word + more)
            word = ""
            if mark is None or (mark in self._end_marks.markers and mark not in dialect.header_markers):
                return mark
            if mark in dialect.header_markers:
                header.enter_section(mark)
            elif mark in _SPACES:
                header.add_space(mark)
            else:
                source.position -= len(mark)
                if mark in dialect.unframed_openers:
                    header.recipient = header.recipient or mark
                return _BODY if header.recipient or header.has_type else _PROSE
            if header.is_prose:
                return _PROSE

    def _note_stray_marker(self, marker: str, ending: str | None) -> None:
        """Record two markers with nothing between them, unless the first one ends and the second one starts a
        message."""
        if ending is None or (marker in self._stop_markers and ending in (START, *self._dialect.framing)):
            return
        self._turn.add_repair("stray_marker", f"{ending} directly followed {marker}")

    # ── messages to tools ──────────────────────────────────────────────────────────────────────

    def _read_tool_message(self, header: MessageHeader, ending: str | None) -> ParseStep[str | None]:
        source, turn = self._source, self._turn
        self._resolve_outside_text(has_call=bool(header.tool))
        self._is_framed = self._is_framed or header.recipient not in self._dialect.unframed_openers
        if ending in self._dialect.call_end_markers and not header.loose_text:
            # There is no body, but the call is closed: it has no arguments.
            source.position -= len(ending)
        elif ending == _BODY and not header.section:
            self._note_stripped_tokens()
        elif ending not in (MESSAGE, _BODY, _PROSE):
            turn.add_malformed(source.end_capture(), "the message has no body")
            return ending
        header.finish_header()
        source.boundary = self._boundary
        problem = yield from self._dialect.read_body(source, turn, header)
        source.boundary = None
        if problem:
            ending = yield from self._report_message(problem, MESSAGE, shown=not header.tool and len(turn.tools) > 0)
            turn.is_truncated = turn.is_truncated or (ending is None and bool(header.tool))
            return ending
        return (yield from (self._read_call_end() if self._is_framed else self._read_outside_text("", _PROSE)))

    def _read_call_end(self) -> ParseStep[str | None]:
        """Read what stands between a call's body and the next message."""
        source, turn, dialect = self._source, self._turn, self._dialect
        while True:
            char = yield from source.skip_space()
            mark = yield from source.accept(self._end_marks)
            if mark or not char:
                if mark not in self._stop_markers:
                    if not turn.is_truncated and not self._is_stripped:
                        turn.add_repair("missing_close", f"{dialect.call_end_markers[0]} was missing after a call")
                elif mark not in dialect.call_end_markers:
                    turn.add_repair("wrong_close", f"{mark} closed a call")
                return mark or None
            if char == "<" and (yield from self._skip_wrong_closer()):
                continue
            if char not in "}]":
                return (yield from self._read_rest_of_call())
            source.position += 1
            turn.add_repair("extra_bracket", f"unexpected {char!r} after a call")

    def _skip_wrong_closer(self) -> ParseStep[bool]:
        """Consume a closing tag that is misspelt, cut short or of another family; return whether there was one."""
        source, dialect = self._source, self._dialect
        while not source.closed and _OPEN_TAG(source.text, source.position):
            yield
        if foreign := (yield from source.accept(_FOREIGN_CLOSERS)):
            self._turn.add_repair("stray_marker", f"{foreign} closed nothing")
            return True
        tags = (tag for tag in dialect.markers if tag.startswith("</"))
        near = find_near_token(source, source.position, (*dialect.call_end_markers, *tags))
        if near is None:
            return False
        real, end = near
        self._turn.add_repair("misspelt_tag", f"{source.text[source.position : end]} was written instead of {real}")
        source.position = end
        return True

    def _read_rest_of_call(self) -> ParseStep[str | None]:
        """Read what follows a call's body in the same message: the header of another message, or text. What follows a
        broken call is the rest of that call, and is no text."""
        source, turn = self._source, self._turn
        if (yield from source.peek_marker(self._header_starts)):
            turn.add_repair("missing_close", f"{self._dialect.call_end_markers[0]} was missing after a call")
            turn.add_repair("missing_start", f"{START} was missing before a message")
            return START
        is_cut = yield from source.is_truncated_inside(compile_markers(*self._dialect.markers))
        if is_cut or not turn.is_last_call_complete:
            source.start_capture()
            return (yield from self._report_message("text after the arguments of a call", MESSAGE))
        parts: list[str] = []

        def show(piece: str) -> None:
            parts.append(piece)
            turn.add_text(piece)

        source.start_capture()
        yield from self._skip_body()
        if skipped := source.end_capture():
            show(skipped)
        ending: str | None = MESSAGE
        while ending == MESSAGE:
            ending = yield from source.copy_until(self._end_marks, show)
        turn.add_malformed("".join(parts), "text after the arguments of a call", shown=True)
        return ending

    def _report_message(self, problem: str, ending: str | None, *, shown: bool = False) -> ParseStep[str | None]:
        """Report a message as malformed, up to its end, and show it as text if it is to be `shown`. Markers inside its
        JSON strings do not end it."""
        source = self._source
        while ending == MESSAGE:
            yield from self._skip_body()
            _, ending = yield from source.take_to(self._end_marks)
        raw = source.end_capture().removesuffix(ending or "")
        if shown:
            self._turn.add_text(raw)
        self._turn.add_malformed(raw, problem, shown=shown)
        return ending

    def _skip_body(self) -> ParseStep[None]:
        self._source.boundary = self._boundary
        yield from self._dialect.skip_body(self._source)
        self._source.boundary = None

    # ── messages to the reader ─────────────────────────────────────────────────────────────────

    def _read_text_message(self, header: MessageHeader, ending: str | None) -> ParseStep[str | None]:
        source, turn = self._source, self._turn
        text = header.loose_text
        if ending == MESSAGE:
            header.finish_header()
            text = ""
        elif header.has_gap:
            text, header.channel = source.end_capture().removeprefix(ASSISTANT), ""
        source.drop_capture()
        if header.oddities:
            turn.add_repair("odd_header", ", ".join(header.oddities))
        if not header.channel and ending != MESSAGE:
            return (yield from self._read_outside_text(text, ending))
        self._is_framed = True
        if header.channel != ANALYSIS:
            self._resolve_outside_text(has_call=False)
        if ending != MESSAGE and (header.has_glued_role or not (header.section or header.has_start)):
            self._note_stripped_tokens()
        elif ending != MESSAGE and (text or ending in (_PROSE, _BODY)):
            turn.add_repair("missing_message", f"{MESSAGE} was missing after a header")
        return (
            yield from self._emit_body(
                turn.add_reasoning if header.channel == ANALYSIS else turn.add_text, text, ending
            )
        )

    def _read_outside_text(self, text: str, ending: str | None) -> ParseStep[str | None]:
        """Read text that has no header."""
        emit = self._outside_parts.append if self._is_framed else self._turn.add_text
        ending = yield from self._emit_body(emit, text, ending, is_framed=False)
        if self._turn.call_count:
            self._resolve_outside_text(has_call=True)
        return ending

    def _emit_body(
        self, emit: TextSink, text: str, ending: str | None, *, is_framed: bool = True
    ) -> ParseStep[str | None]:
        """Emit the known part of a body and the rest of it."""
        if text:
            emit(text)
        if ending in (MESSAGE, _PROSE, _BODY):
            return (yield from self._copy_body(emit, is_framed=is_framed))
        return ending

    def _copy_body(self, emit: TextSink, *, is_framed: bool) -> ParseStep[str | None]:
        """Copy a body up to the marker that ends it. A marker that continues nothing is part of the text."""
        source, turn, dialect = self._source, self._turn, self._dialect
        ends, fenced = self._end_marks if is_framed else self._outside_end_marks, False
        if self._text_markers and emit == turn.add_text:
            ends = compile_markers(*ends.markers, *self._text_markers)
        while True:
            marker = yield from source.copy_until(ends, emit)
            if marker in self._tag_openers and dialect.tag_dialect and not fenced:
                yield from dialect.tag_dialect.try_read_calls(source, turn, marker, emit)
            elif marker in self._text_markers:
                emit(marker or "")
                fenced ^= marker == FENCE
            elif marker in (MESSAGE, CONSTRAIN):
                turn.add_repair("stray_marker", f"{marker} was written inside a message")
            elif marker in (START, CHANNEL):
                if (yield from self._is_message_ahead()):
                    if is_framed:
                        turn.add_repair("missing_close", f"{dialect.text_end_markers[0]} was missing before {marker}")
                    return marker
                emit(marker)
                turn.add_repair("literal_marker", f"{marker} was written inside the text")
            else:
                if is_framed and marker in dialect.call_end_markers and marker not in dialect.text_end_markers:
                    turn.add_repair("wrong_close", f"{marker} closed a text")
                return marker

    def _is_message_ahead(self) -> ParseStep[bool]:
        """Whether a header follows, or the beginning of one that the end of the output cut off."""
        dialect, source = self._dialect, self._source
        words = compile_markers(
            *dialect.message_markers, *dialect.channels, ASSISTANT, RECIPIENT_PREFIX, "functions.", *FOREIGN_ROLES
        )
        follows = yield from source.peek_marker(words)
        return bool(follows) or words.is_prefix_at(source.text, source.position)

    def _resolve_outside_text(self, *, has_call: bool) -> None:
        """Decide about text outside of any message: next to a call it is malformed, otherwise it is text."""
        text = "".join(self._outside_parts)
        self._outside_parts.clear()
        if text.strip() and (has_call or self._turn.call_count):
            self._turn.add_malformed(text, "text outside of any message")
        elif text.strip():
            self._turn.add_repair("missing_header", "text was outside of any message")
            self._turn.add_text(text)
