"""Inkling: a turn of typed blocks, each between special tokens; a call is one of them.

    <|message_model|>get_weather<|content_invoke_tool_json|>{"name": "get_weather", "args": {…}}<|end_message|>

The text between `<|message_model|>` and the token for the block's kind is its header. The prompt already contains the
first `<|message_model|>`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from callwright.dialects.base import Dialect, ReasoningTags
from callwright.dialects.call_object import read_call_object
from callwright.dialects.tagged_json import TaggedJson, format_call_json
from callwright.model import ToolCall
from callwright.text.source import ParseStep, Source, compile_markers
from callwright.turn import Turn

__all__ = ["DIALECTS", "Inkling"]

_MODEL = "<|message_model|>"
_THINKING = "<|content_thinking|>"
_TEXT = "<|content_text|>"
_CALL = "<|content_invoke_tool_json|>"
# Calls in plain text, and tool reports: shown unchanged, as vLLM does.
_TEXT_KINDS = ("<|content_invoke_tool_text|>", "<|content_tool_error|>")
_END = "<|end_message|>"
_END_SAMPLING = "<|content_model_end_sampling|>"

_KIND_MARKS = compile_markers(_THINKING, _TEXT, _CALL, *_TEXT_KINDS)
_TEXT_MARKS = compile_markers(_MODEL, _THINKING, _TEXT, _CALL, *_TEXT_KINDS, _END, _END_SAMPLING)
_REASONING_MARKS = compile_markers(*_TEXT_MARKS.markers, f"\n{_END}")
_HEADER = re.compile(r"[\w.:-]*")
_MAX_HEADER_LENGTH = 256


@dataclass(frozen=True, kw_only=True)
class Inkling(TaggedJson):
    """The family of typed blocks."""

    def grammar(self, source: Source, turn: Turn) -> ParseStep[None]:
        # The end of the prompt may not be known: a turn that begins with a tool's name and a call begins in a header.
        headers = [f"{name}{_CALL}" for name in turn.tools.names]
        if headers and (opener := (yield from source.accept(compile_markers(*headers)))):
            yield from self.try_read_calls(source, turn, opener, turn.add_text)
        thinking = False
        while True:
            emit = turn.add_reasoning if thinking else turn.add_text
            marker = yield from source.copy_until(_REASONING_MARKS if thinking else _TEXT_MARKS, emit)
            if marker is None:
                return
            header = ""
            if marker == _MODEL:
                header = yield from source.take_while(_HEADER, _MAX_HEADER_LENGTH)
                marker = yield from source.accept(_KIND_MARKS)
            if marker == _CALL:
                called = yield from self.try_read_calls(source, turn, header + _CALL, emit)
                if called and thinking:
                    turn.add_repair("call_in_reasoning", f"a call began before {_END}")
                thinking = thinking and not called
                continue
            thinking = marker == _THINKING
            if thinking:
                yield from source.skip_newlines(1)
            if header and marker:
                turn.add_repair("dropped_header", header)
            elif header and (not (yield from source.peek()) or (yield from source.is_truncated_inside(_KIND_MARKS))):
                turn.add_truncated(header + source.take_rest(), "a header")
            elif header:
                turn.add_text(header)

    @property
    def line_openers(self) -> tuple[str, ...]:
        return (_MODEL,)

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        """Read one call. The header stands before the opener, and usually names the tool."""
        header = opener.removesuffix(_CALL)
        if (yield from source.skip_space()) != "{":
            return "no JSON follows"
        name = header if turn.can_call(header) else ""
        problem = yield from read_call_object(source, turn, self.keys, name=name, skip_rejected=True)
        if header and not name and not problem:
            turn.add_repair("dropped_header", header)
        return (yield from self.read_remaining_calls(source, turn, problem))

    def is_truncated_call(self, turn: Turn, opener: str, raw: str) -> bool:
        # Before the opener stands the header, and before that the token that began the message.
        return super().is_truncated_call(turn, opener, _MODEL + raw)

    def render_call(self, *calls: ToolCall) -> str:
        return "".join(f"{_MODEL}{call.name}{_CALL}{format_call_json(call, 'name', 'args')}{_END}" for call in calls)

    def render_text(self, text: str) -> str:
        return f"{_MODEL}{_TEXT}{text}{_END}"


INKLING = Inkling(
    name="inkling",
    shape="J1",
    models="Inkling, Inkling-Small (Thinking Machines)",
    source="chat template of thinkingmachines/Inkling; vLLM inkling parser, SGLang inkling_detector",
    opens=(_CALL,),
    closes=(_END, _END_SAMPLING),
    reasoning_tags=(ReasoningTags(_THINKING, _END),),
    framing=(_MODEL, _TEXT, *_TEXT_KINDS, _END, _END_SAMPLING),
    tokens=frozenset(_TEXT_MARKS.markers),
    result_template="<|message_tool|>{name}<|content_text|>{content}<|end_message|>",
    parsers=("inkling",),
    patterns=("*inkling*",),
)

DIALECTS: Sequence[Dialect] = (INKLING,)
