"""G: `call:NAME{…}` with bare keys, and a special token for quotes.

    <|tool_call>call:get_weather{city:<|"|>Oslo<|"|>,days:2,tags:[<|"|>a<|"|>],o:{k:true}}<tool_call|>
    <start_function_call>call:get_weather{city:<escape>Oslo<escape>,days:2}<end_function_call>

Strings are raw, so only the position of a quote tells a closing quote from one inside: it closes the string if the next
key, or the end of the call, follows. Gemma 4 writes a literal `"` with the same token as its quotes (vllm-project/vllm
pull request 48678), omits the opening one (sgl-project/sglang 39240) and falls back to JSON's or Python's quotes (vllm
issue 51284); all of these are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from callwright.arguments import ArgumentsWriter
from callwright.dialects.base import Dialect, ReasoningTags, end_incomplete_call, open_call
from callwright.dialects.quoted_values import read_literal_value, read_string_value
from callwright.model import ToolCall
from callwright.text.boundaries import CallBoundary
from callwright.text.lookahead import Lookahead
from callwright.text.source import MarkerSet, ParseStep, Source, compile_markers, ignore
from callwright.text.string_notation import PYTHON_QUOTES, ClosingCheck, Notation, Quote, StringEndRule
from callwright.turn import Turn

__all__ = ["DIALECTS", "Gemma"]

_NAME = re.compile(r"[^\s{(<]*")
_MAX_NAME_LENGTH = 256
_KEY = re.compile(r"[^\s:=,{}()\[\]<\"']*")
_LITERAL = re.compile(r"\s*(?:[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|True|False|None)\s*\Z").match
_MAX_LITERAL_LENGTH = 64
_BRACKET_PAIRS = {"{": "}", "(": ")"}


@dataclass(frozen=True, kw_only=True)
class Gemma(Dialect):
    """A family of `call:NAME{…}`."""

    raw_values: ClassVar[bool] = True
    open: str
    close: str
    quote: Quote
    quotes_all: bool = False
    """Whether numbers may be quoted too, so that only the tool's schema decides what is a string."""
    null: str = "null"

    @property
    def openers(self) -> tuple[str, ...]:
        return (self.open,)

    @property
    def markers(self) -> tuple[str, ...]:
        return (self.open, self.close)

    @property
    def body_starts(self) -> tuple[str, ...]:
        return ("call:", ":")

    # ── reading ────────────────────────────────────────────────────────────────────────────────

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        problem = yield from self._read_call(source, turn)
        # Calls in one block follow each other without markers.
        while not problem and (yield from self._is_next_call(source, turn)):
            yield from source.skip_space()
            source.start_capture()
            problem = yield from self._read_call(source, turn)
        return problem

    def _is_next_call(self, source: Source, turn: Turn) -> ParseStep[bool]:
        """Whether another call of a tool follows a call that was not closed."""
        ahead = Lookahead(source)
        yield from ahead.skip_space()
        if not (yield from ahead.accept(compile_markers("call:"))):
            return False
        name = yield from ahead.take_word()
        return (yield from ahead.skip_space()) in ("{", "(") and turn.can_call(name)

    def build_boundary(self, turn: Turn) -> CallBoundary:
        return _GemmaBoundary((self.close, *self.framing), (self.open,), (), (), turn.can_call, nests=True)

    def _read_call(self, source: Source, turn: Turn) -> ParseStep[str]:
        yield from source.skip_space()
        prefix = yield from source.accept(compile_markers("call:", ":"))
        written_name = yield from source.take_while(_NAME, _MAX_NAME_LENGTH)
        # Some checkpoints put a namespace before the name: `call:ns:create`.
        name = next((name for name in (written_name, re.split(r"[:.]", written_name)[-1]) if turn.can_call(name)), "")
        if not name:
            return f"unknown tool {written_name!r}"
        bracket = yield from source.skip_space()
        if bracket not in _BRACKET_PAIRS:
            return "no arguments follow the name"
        source.position += 1
        arguments = open_call(source, turn, name)
        if name != written_name:
            arguments.call.add_repair("renamed_tool", f"{written_name!r} became {name!r}")
        if prefix != "call:":
            arguments.call.add_repair("missing_prefix", "'call:' was missing before the name")
        if bracket == "(":
            arguments.call.add_repair("round_brackets", "the arguments were in round brackets")
        if (yield from self._read_members(source, arguments, _BRACKET_PAIRS[bracket])):
            yield from self._read_call_end(source, turn)
        else:
            yield from self._end_incomplete_call(source, turn, arguments)
        return ""

    def _end_incomplete_call(self, source: Source, turn: Turn, arguments: ArgumentsWriter) -> ParseStep[None]:
        """End a call whose members are incomplete, and report the rest of it as malformed."""
        mark = yield from source.copy_until(compile_markers(self.close, self.open, *self.framing), ignore)
        source.position -= len(mark or "")
        yield from end_incomplete_call(source, turn, arguments)
        if mark == self.close:
            source.position += len(mark)

    def _read_call_end(self, source: Source, turn: Turn) -> ParseStep[None]:
        marker = yield from source.accept_next(compile_markers(self.close, "}" + self.close))
        if not marker:
            turn.add_repair("missing_close", f"{self.close} was missing after a call")
        elif marker != self.close:
            turn.add_repair("extra_bracket", "unexpected '}' after a call")

    def _read_members(self, source: Source, arguments: ArgumentsWriter, bracket: str) -> ParseStep[bool]:
        """Read members up to the closing bracket, and end the call. Return False if they are incomplete."""
        note = arguments.call.add_repair
        ends = self._build_ends(bracket)
        separated = True
        while (char := (yield from source.skip_space())) != bracket:
            if char == ",":
                source.position += 1
                separated = True
                continue
            if source.boundary and (yield from source.boundary.peek(source)):
                # The call ends here, so its bracket is missing.
                if not arguments.has_required:
                    return False
                note("missing_brace", f"{bracket!r} was missing after the arguments")
                arguments.close()
                return True
            if not separated:
                note("missing_comma", f"a comma was missing before {char!r}")
            source.start_capture()
            key = yield from self._take_key(source, arguments)
            if not key or not (yield from self._read_member(source, arguments, key, ends)):
                return False
            source.drop_capture()
            separated = False
        source.position += 1
        arguments.close()
        return True

    def _take_key(self, source: Source, arguments: ArgumentsWriter) -> ParseStep[str]:
        quote = yield from self._notation.accept_quote(source)
        if quote:
            key, _ = yield from source.take_to(compile_markers(quote.mark))
        else:
            key = yield from source.take_while(_KEY, _MAX_NAME_LENGTH)
        sign = yield from source.skip_space()
        if sign not in (":", "="):
            return ""
        if sign == "=":
            arguments.call.add_repair("equals_for_colon", f"'=' was written instead of ':' after the key {key!r}")
        source.position += 1
        return key

    def _read_member(
        self, source: Source, arguments: ArgumentsWriter, key: str, ends: StringEndRule
    ) -> ParseStep[bool]:
        closes = _ValueEnd(ends, arguments).is_reached
        char = yield from source.skip_space()
        quote = yield from self._notation.accept_quote(source)
        if quote is None:
            if char and char in "[{":
                return (yield from read_literal_value(source, arguments, key, self._notation))
            return (yield from self._read_bare_value(source, arguments, key, closes))
        if quote is not self.quote:
            arguments.call.add_repair("plain_quotes", f"a string was in {quote.mark}, not in {self.quote.mark}")
        elif self.quotes_all:
            source.drop_capture()
            parameter = arguments.start_parameter(key)
            complete = yield from quote.copy_string(source, parameter.write, arguments.call.add_repair, closes)
            if complete:
                parameter.end()
            return complete
        return (yield from read_string_value(source, arguments, key, quote, closes))

    def _read_bare_value(
        self, source: Source, arguments: ArgumentsWriter, key: str, closes: ClosingCheck
    ) -> ParseStep[bool]:
        """Read a value without an opening quote: a number, a word, or a string whose quote is missing."""
        source.drop_capture()
        parameter = arguments.start_parameter(key)
        text = ""
        """The value, as long as it can be a number or a constant."""

        def write(piece: str) -> None:
            nonlocal text
            text = (text + piece)[:_MAX_LITERAL_LENGTH]
            parameter.write(piece)

        stops = compile_markers(self.quote.mark, ",", "}", ")", self.close, self.open, *self.framing)
        while (stop := (yield from source.copy_until(stops, write))) is not None:
            source.position -= len(stop)
            is_literal = _LITERAL(text) is not None
            size = len(stop) if stop == self.quote.mark else 0
            if not size and len(stop) > 1 and source.boundary and (yield from source.boundary.peek(source)):
                if is_literal:
                    parameter.end()
                return is_literal
            if (is_literal and stop in ("}", ")")) or (yield from closes(source, size)):
                source.position += size
                if size:
                    arguments.call.add_repair("missing_quote", f"{stop} was missing before a value")
                parameter.end()
                return True
            source.position += len(stop)
            write(stop)
        return False

    def _build_ends(self, bracket: str) -> StringEndRule:
        after = compile_markers(self.close, "}" + self.close, self.open, *self.framing)
        within = compile_markers(self.quote.mark)
        return StringEndRule(
            bracket, after, ":=", allows_positional=False, quotes=self._quote_marks, inner_markers=within
        )

    @cached_property
    def _quote_marks(self) -> MarkerSet:
        return compile_markers(self.quote.mark, '"', "'")

    @cached_property
    def _notation(self) -> Notation:
        nested = StringEndRule(
            ")]}", compile_markers(*",)]}", self.close), ":", allows_colon=True, quotes=self._quote_marks
        )
        return Notation((self.quote, *PYTHON_QUOTES), nested)

    # ── rendering ──────────────────────────────────────────────────────────────────────────────

    def render_call(self, *calls: ToolCall) -> str:
        return "".join(
            f"{self.open}call:{call.name}{self._format_value(json.loads(call.arguments))}{self.close}" for call in calls
        )

    def _format_value(self, value: Any) -> str:
        match value:
            case dict():
                return "{" + ",".join(f"{key}:{self._format_value(item)}" for key, item in value.items()) + "}"
            case list():
                return "[" + ",".join(map(self._format_value, value)) + "]"
            case str():
                return f"{self.quote.mark}{value}{self.quote.mark}"
            case None:
                return self.null
            case _:
                return json.dumps(value)


@dataclass(frozen=True)
class _GemmaBoundary(CallBoundary):
    """The boundaries of these calls: an opener counts if a name and a bracket follow, of whatever tool."""

    def is_call_ahead(self, source: Source, offset: int, opener: str) -> ParseStep[bool]:
        ahead = Lookahead(source, offset)
        yield from ahead.skip_space()
        yield from ahead.accept(compile_markers("call:", ":"))
        word = yield from ahead.take_word()
        return bool(word) and (yield from ahead.skip_space()) in (":", "{", "(")


class _ValueEnd:
    """Tells where one value ends."""

    __slots__ = ("_arguments", "_ends", "_is_first")

    def __init__(self, ends: StringEndRule, arguments: ArgumentsWriter) -> None:
        self._ends = ends
        self._arguments = arguments
        self._is_first = True
        """Whether no quote was met inside the value yet."""

    def is_reached(self, source: Source, size: int) -> ParseStep[bool]:
        """Whether the value ends here: the notation can continue, with a key that was not read yet."""
        is_first, self._is_first = self._is_first, False
        arguments = self._arguments
        ahead = Lookahead(source, size)
        comma = (yield from ahead.skip_space()) == ","
        if comma:
            ahead.offset += 1
            yield from ahead.skip_space()
        word = yield from ahead.take_word()
        missing = arguments.is_missing(word)
        if comma and word in arguments.call.schema.properties and not missing:
            # A key that was read already is part of the value, unless nothing else in the value is like markup.
            return is_first and size > 1 and (yield from self._is_given_again(ahead))
        if (yield from self._ends.is_string_end(source, size)):
            return True
        return size > 0 and not comma and missing and (yield from ahead.skip_space()) == ":"

    def _is_given_again(self, ahead: Lookahead) -> ParseStep[bool]:
        """Whether a quoted value follows the key."""
        if not (yield from ahead.accept(compile_markers(":"))):
            return False
        return bool((yield from ahead.accept(self._ends.quotes)))


FUNCTIONGEMMA = Gemma(
    name="functiongemma",
    shape="G",
    models="FunctionGemma",
    source="ai.google.dev/gemma/docs/functiongemma/formatting-and-best-practices",
    open="<start_function_call>",
    close="<end_function_call>",
    quote=Quote("<escape>", "<escape>", escapes=False),
    quotes_all=True,
    framing=("<start_function_response>", "<end_of_turn>"),
    tokens=frozenset(
        {"<start_function_call>", "<end_function_call>", "<escape>", "<start_function_response>", "<end_of_turn>"}
    ),
    result_template="<start_function_response>response:{name}{value:<escape>{content}<escape>}<end_function_response>",
    parsers=("functiongemma",),
    patterns=("*functiongemma*",),
)
GEMMA4 = Gemma(
    name="gemma4",
    shape="G",
    models="Gemma 4",
    source="chat template of google/gemma-4-31B-it",
    # The quote is not a marker: inside a string the model writes `"` with it.
    open="<|tool_call>",
    close="<tool_call|>",
    quote=Quote('<|"|>', '"', escapes=False),
    null="None",
    reasoning_tags=(ReasoningTags("<|channel>thought", "<channel|>"), ReasoningTags("<|channel>", "<channel|>")),
    framing=("<|tool_response>", "<turn|>"),
    tokens=frozenset(
        {"<|tool_call>", "<tool_call|>", '<|"|>', "<|channel>", "<channel|>", "<|tool_response>", "<turn|>"}
    ),
    result_template='<|tool_response>response:{name}{value:<|"|>{content}<|"|>}<tool_response|>',
    parsers=("gemma4",),
    patterns=("*gemma-4*", "*gemma4*"),
)

DIALECTS: Sequence[Dialect] = (FUNCTIONGEMMA, GEMMA4)
