"""J3: a header that names the tool (and often carries the call's id), then a JSON object of arguments.

    <|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>
    {"city": "Oslo", "days": 2}<|tool_call_end|><|tool_calls_section_end|>

Defined by the families' chat templates. The header consists of words and separators; each separator says what the next
word is. The arguments are read as JSON, so that nothing inside a string can end a call. This module has the class, and
the families that need nothing but data.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from callwright.arguments import ArgumentsWriter, read_object
from callwright.dialects.base import FENCE, Dialect, ReasoningTags, open_call, truncate_call
from callwright.dialects.call_object import accept_fence, emit_complete_call
from callwright.model import ToolCall
from callwright.text.json_stream import RepairSink, copy_json, take_json, take_string
from callwright.text.source import MarkerSet, ParseStep, Source, compile_markers, ignore
from callwright.turn import Turn

__all__ = ["DIALECTS", "HeaderJson", "JsonCallHeader"]

_WORD = re.compile(r"[^\s<>\[\]{}\"'`]*")
_MAX_WORD_LENGTH = 256
_BRACKETS = ("}", "]")


@dataclass(frozen=True)
class JsonCallHeader:
    """The content of a header. `repair_detail` describes how it deviated from the format, if it did."""

    name: str = ""
    id: str = ""
    repair_detail: str = ""

    @property
    def notes(self) -> dict[str, str]:
        return {"repaired_header": self.repair_detail} if self.repair_detail else {}


@dataclass(frozen=True, kw_only=True)
class HeaderJson(Dialect):
    """A family whose calls are a header and a JSON object, alone or several in a section."""

    call_marker: str
    """The marker that begins a call."""
    call_template: str
    """The form of a call: a format string with {name}, {id} and {arguments}."""
    separators: tuple[tuple[str, str], ...] = ()
    """The separators of the header, each with the meaning of the next word: "name", "id" or "arguments"."""
    first_word: str = "name"
    """The meaning of the first word of the header."""
    closes: tuple[str, ...] = ()
    """The markers that close a call, in this order."""
    sections: tuple[str, ...] = ()
    """The markers that open a section of calls; the first one is written. Empty if calls stand alone."""
    section_ends: tuple[str, ...] = ()
    """The markers that close a section; the first one is written."""
    call_separator: str = ""
    """The text between two calls."""
    fences: tuple[str, ...] = ()
    """Code fences that may enclose the arguments: the opening one first, the closing one last."""
    text_template: str = "{text}"
    """The form of text before calls."""
    id_template: str = "call_{index}"
    """The form of the family's ids; {name} is the tool's name."""

    # ── reading ────────────────────────────────────────────────────────────────────────────────

    @property
    def openers(self) -> tuple[str, ...]:
        return (*self.sections, self.call_marker)

    @property
    def markers(self) -> tuple[str, ...]:
        return (*self.openers, *(separator for separator, _ in self.separators), *self.closes, *self.section_ends)

    @property
    def last_brackets(self) -> int:
        return 0 if self.closers else 1

    @property
    def closers(self) -> tuple[str, ...]:
        return (*self.closes, *self.section_ends)

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        if opener in self.sections:
            yield from source.skip_space()
            if not (yield from source.accept(compile_markers(self.call_marker))):
                return f"no {self.call_marker} follows"
        problem = yield from self._read_call(source, turn)
        if not problem and opener in self.sections[1:]:
            turn.add_repair("variant_marker", f"{opener} was written instead of {self.sections[0]}")
        if problem or not self.sections:
            return problem
        while (mark := (yield from source.accept_next(self._next_marks))) == self.call_marker:
            source.start_capture()
            problem = yield from self._read_call(source, turn)
            if problem:
                # Its neighbours are calls: only this one is reported as malformed.
                turn.add_malformed(mark + source.end_capture(), problem)
        if not mark and not turn.is_truncated:
            turn.add_repair("missing_close", f"{self.section_ends[0]} was missing after a call")
        return ""

    def _read_call(self, source: Source, turn: Turn) -> ParseStep[str]:
        """Read from a call's opener up to its closers. Return an empty string, or the reason why it is no call."""
        words, announced = yield from self._read_header(source)
        head = self.identify_call(words.get("name", ""), words.get("id", ""), turn)
        notes: dict[str, str] = {}
        fenced = not self.fences and (yield from accept_fence(source, notes.__setitem__))
        if fenced:
            head = replace(head, repair_detail="the arguments were in a Markdown fence")
        char = yield from source.peek()
        problem = ""
        if words.get("arguments", "null") != "null":
            problem = "no JSON object follows"
        elif not turn.can_call(head.name):
            problem = yield from self.read_nameless_call(source, turn, head)
        elif char == "{":
            yield from self.read_arguments(source, turn, head)
        elif char == "[" and not (yield from source.peek_marker(self._structure_marks)):
            problem = yield from self._read_list_arguments(source, turn, head)
        elif char == '"':
            problem = yield from self._read_string_arguments(source, turn, head, is_certain=announced == "arguments")
        else:
            problem = yield from self._read_empty_arguments(source, turn, head, is_certain=announced == "arguments")
        if not problem and fenced:
            yield from source.accept_next(compile_markers(FENCE))
        if not problem:
            yield from self._read_call_end(source, ignore if turn.is_truncated else turn.add_repair)
        elif char == "{" and head.name:
            # Skip it as JSON: what its strings quote is no call either.
            yield from copy_json(source, ignore, ignore)
            yield from self._read_call_end(source, ignore)
        return problem

    def _read_header(self, source: Source) -> ParseStep[tuple[dict[str, str], str]]:
        """Return the words of a header by their meaning, and the meaning that the last separator announced."""
        words: dict[str, str] = {}
        kind, announced = self.first_word, ""
        while True:
            yield from source.skip_space()
            if self._separator_kinds and (separator := (yield from source.accept(self._separator_marks))):
                kind = announced = self._separator_kinds[separator]
                continue
            word = "" if kind in words else (yield from source.take_while(_WORD, _MAX_WORD_LENGTH))
            if not word:
                return words, announced
            # No tool is named null: some models write it where a call has no arguments.
            words["arguments" if word == "null" else kind] = word

    def identify_call(self, name: str, call_id: str, turn: Turn) -> JsonCallHeader:
        """Return the call that a header means."""
        return JsonCallHeader(name, call_id)

    def is_truncated_call(self, turn: Turn, opener: str, raw: str) -> bool:
        """Also accept an id of another form, and markers that only some members of the family write."""
        is_truncated = super().is_truncated_call(turn, opener, raw)
        if is_truncated or self.text_tags:
            return is_truncated
        header, *arguments = self._arguments_pattern.split(raw)
        words = self._header_pattern.sub(" ", header).split()
        kinds = ("id", "name") if self.first_word == "id" else ("name", "id")
        name = self.identify_call(dict(zip(kinds, words, strict=False)).get("name", ""), "", turn).name
        more = self._header_pattern.sub("", "".join(arguments)).strip()
        header_only = 0 < len(words) <= len(kinds) and all(map(_WORD.fullmatch, words)) and not more
        return header_only and any(tool.startswith(name) for tool in turn.tools.names)

    @cached_property
    def _arguments_pattern(self) -> re.Pattern[str]:
        """A pattern for what announces arguments."""
        return re.compile(
            "|".join(re.escape(mark) for mark, kind in self._separator_kinds.items() if kind == "arguments")
        )

    @cached_property
    def _header_pattern(self) -> re.Pattern[str]:
        """A pattern for the markers of a header, including one that the end of the output cut off."""
        markers = map(re.escape, (*self.openers, *self._separator_kinds))
        return re.compile(rf"{'|'.join(markers)}|[<\[][^>\]]*\Z")

    def read_nameless_call(self, source: Source, turn: Turn, head: JsonCallHeader) -> ParseStep[str]:
        """Read a call whose header names no known tool, if something else identifies the tool."""
        yield from ()
        return f"unknown tool {head.name!r}"

    def read_arguments(self, source: Source, turn: Turn, head: JsonCallHeader) -> ParseStep[None]:
        """Read the JSON object at the position as a call. Broken JSON is skipped up to the next marker."""
        arguments = _open_call(source, turn, head)
        source.ended_at_boundary = False
        if (yield from read_object(source, arguments)):
            return
        if source.ended_at_boundary:
            yield from truncate_call(source, turn, arguments)
            return
        if not source.is_capturing:
            source.start_capture()
        mark = yield from source.copy_until(self._structure_marks, ignore)
        source.position -= len(mark or "")
        yield from truncate_call(source, turn, arguments)

    def _read_list_arguments(self, source: Source, turn: Turn, head: JsonCallHeader) -> ParseStep[str]:
        """Read arguments that are in a list: none, or one object."""
        raw = yield from take_json(source, ignore)
        if raw is None:
            return "the JSON is incomplete"
        return (yield from emit_complete_call(source, turn, head.name, raw, head.id, head.notes))

    def _read_string_arguments(
        self, source: Source, turn: Turn, head: JsonCallHeader, *, is_certain: bool
    ) -> ParseStep[str]:
        """Read arguments that are JSON text in a string."""
        raw = yield from take_string(source)
        if raw is not None:
            return (yield from emit_complete_call(source, turn, head.name, raw, head.id, head.notes))
        if not is_certain:
            return "the JSON is incomplete"
        raw = source.end_capture()
        _open_call(source, turn, head).call.end_truncated(raw)
        return ""

    def _read_empty_arguments(
        self, source: Source, turn: Turn, head: JsonCallHeader, *, is_certain: bool
    ) -> ParseStep[str]:
        """Read a header without an object: a call without arguments if it is closed, a truncated one if it is
        certain."""
        closed = yield from source.peek_marker(self._structure_marks)
        tool = turn.tools.get(head.name)
        if closed in self.openers and tool and tool.schema.required:
            return "another call begins before the arguments"
        if not closed and (not is_certain or (yield from source.peek())):
            return "no JSON object follows"
        arguments = _open_call(source, turn, head)
        if closed:
            arguments.close_empty()
        else:
            arguments.call.end_truncated()
        return ""

    def _read_call_end(self, source: Source, note: RepairSink) -> ParseStep[None]:
        """Consume the markers that close a call."""
        while mark := (yield from source.accept_next(self._loose_marks)):
            if mark in _BRACKETS:
                note("extra_bracket", f"unexpected {mark!r} after a call")
        for closer in self.closes:
            if not (yield from source.accept_next(compile_markers(closer))):
                note("missing_close", f"{closer} was missing after a call")

    @cached_property
    def _separator_kinds(self) -> dict[str, str]:
        return dict.fromkeys(self.fences, "arguments") | dict(self.separators)

    @cached_property
    def _separator_marks(self) -> MarkerSet:
        return compile_markers(*self._separator_kinds)

    @cached_property
    def _next_marks(self) -> MarkerSet:
        return compile_markers(self.call_marker, *self.section_ends)

    @cached_property
    def _loose_marks(self) -> MarkerSet:
        return compile_markers(*_BRACKETS, *self.fences[-1:])

    @cached_property
    def _structure_marks(self) -> MarkerSet:
        """What can follow a call; reading continues there after broken JSON."""
        return compile_markers(*self.openers, *self.closes, *self.section_ends, *self.framing)

    # ── rendering ──────────────────────────────────────────────────────────────────────────────

    def make_call_id(self, name: str, index: int) -> str:
        return self.id_template.format(name=name, index=index)

    def render_text(self, text: str) -> str:
        return self.text_template.format(text=text)

    def render_call(self, *calls: ToolCall) -> str:
        rendered = (self.call_template.format(name=call.name, id=call.id, arguments=call.arguments) for call in calls)
        return "".join((*self.sections[:1], self.call_separator.join(rendered), *self.section_ends[:1]))


def _open_call(source: Source, turn: Turn, head: JsonCallHeader) -> ArgumentsWriter:
    arguments = open_call(source, turn, head.name, head.id)
    for kind, detail in head.notes.items():
        arguments.call.add_repair(kind, detail)
    return arguments


SOLAR = HeaderJson(
    name="solar",
    shape="J3",
    models="Solar-Open",
    source="chat template of upstage/Solar-Open-100B",
    sections=("<|tool_calls|>",),
    call_marker="<|tool_call:begin|>",
    first_word="id",
    separators=(("<|tool_call:name|>", "name"), ("<|tool_call:args|>", "arguments")),
    closes=("<|tool_call:end|>",),
    section_ends=("<|calls|>",),
    call_template="<|tool_call:begin|>{id}<|tool_call:name|>{name}<|tool_call:args|>{arguments}<|tool_call:end|>",
    text_template="<|content|>{text}<|end|><|begin|>assistant",
    id_template="call{index:06d}",
    reasoning_tags=(ReasoningTags("<|think|>", "<|end|>"),),
    framing=("<|begin|>assistant", "<|content|>", "<|end|>"),
    tokens=frozenset(
        {
            "<|tool_calls|>",
            "<|tool_call:begin|>",
            "<|tool_call:name|>",
            "<|tool_call:args|>",
            "<|tool_call:end|>",
            "<|calls|>",
            "<|think|>",
            "<|content|>",
            "<|end|>",
        }
    ),
    result_template="<|tool_response:begin|>{id}<|tool_response:name|>{name}<|tool_response:result|>{content}"
    "<|tool_response:end|>",
    parsers=("solar_open",),
    patterns=("*solar-open*",),
)

PLAMO3 = HeaderJson(
    name="plamo3",
    shape="J3",
    models="PLaMo 3",
    source="plamo3 tool parsers of vLLM and SGLang",
    sections=("<|plamo:begin_tool_requests:plamo|>",),
    call_marker="<|plamo:begin_tool_request:plamo|>",
    separators=(
        ("<|plamo:begin_tool_name:plamo|>", "name"),
        ("<|plamo:end_tool_name:plamo|>", "arguments"),
        ("<|plamo:begin_tool_arguments:plamo|>", "arguments"),
        ("<|plamo:constrain|>json", "arguments"),
        ("<|plamo:msg|>", "arguments"),
    ),
    closes=("<|plamo:end_tool_arguments:plamo|>", "<|plamo:end_tool_request:plamo|>"),
    section_ends=("<|plamo:end_tool_requests:plamo|>",),
    call_template="<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>{name}<|plamo:end_tool_name:plamo|>"
    "<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>{arguments}"
    "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>",
    reasoning_tags=(ReasoningTags("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),),
    framing=("<|plamo:tag|>",),
    # The other markers take several tokens each.
    tokens=frozenset({"<|plamo:msg|>", "<|plamo:tag|>"}),
    parsers=("plamo3",),
    patterns=("*plamo-3*", "*plamo3*"),
)

DIALECTS: Sequence[Dialect] = (SOLAR, PLAMO3)
