"""B: calls as plain JSON, bare or in a Markdown fence, and ReAct.

    {"name": "get_weather", "parameters": {"city": "Oslo"}}; {"name": "ping", "parameters": {}}

Llama 3 was trained to call with bare JSON (see its chat template); models write fences when a prompt shows them JSON
calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from callwright.dialects.base import FENCE, Dialect
from callwright.dialects.call_object import NO_JSON, TRUNCATED, read_json_calls, report_malformed
from callwright.dialects.line_calls import PROMPT_CALL_KEYS, LineCalls, has_call_key_first
from callwright.dialects.react import REACT
from callwright.dialects.tagged_json import TaggedJson, format_call_json
from callwright.model import ToolCall
from callwright.text.source import ParseStep, Source, TextSink, compile_markers
from callwright.turn import Turn

__all__ = ["DIALECTS", "FENCED", "BareJson", "FencedJson"]

_START_MARKS = compile_markers("{", "[", FENCE)
_FENCE_MARKS = compile_markers(FENCE)
_JOINT_MARKS = compile_markers("{", ";", ",", "}", "]")
_SEPARATOR_MARKS = compile_markers(";", ",")


@dataclass(frozen=True, kw_only=True)
class BareJson(LineCalls, TaggedJson):
    """Objects at the start of a line or after a semicolon; `opens` are optional markers before them. Fenced objects are
    examples, not calls."""

    @property
    def line_openers(self) -> tuple[str, ...]:
        return ("{", "[")

    @property
    def call_prefixes(self) -> tuple[str, ...]:
        # An object that was no call may be followed by one that is.
        return (*self.opens, ";")

    def read_line(self, source: Source, turn: Turn, lead: str, emit: TextSink) -> ParseStep[TextSink]:
        marker = yield from source.peek_marker(_START_MARKS)
        if marker in ("{", "[") and (yield from self._is_call_ahead(source, lead)):
            called = yield from self.try_read_calls(source, turn, lead, emit)
        else:
            called = False
            if lead:
                emit(lead)
        if lead in self.opens and not called:
            turn.add_malformed(lead, "no JSON call follows", shown=True)
        if marker == FENCE:
            yield from source.copy_until(_FENCE_MARKS, emit)
            yield from self._read_fenced_block(source, turn, FENCE)
        return emit

    def _is_call_ahead(self, source: Source, lead: str) -> ParseStep[bool]:
        # An indented object after a newline is part of something printed over several lines.
        indented = lead == "\n" and (yield from source.peek()).isspace()
        return not indented and (yield from has_call_key_first(source))

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        problem = yield from read_json_calls(source, turn, self.keys)
        if problem:
            return problem
        while marker := (yield from source.peek_marker(_JOINT_MARKS)):
            source.start_capture()
            yield from source.skip_space()
            if marker in "}]":
                source.position += 1
                turn.add_repair("extra_bracket", f"unexpected {marker!r} after a call")
                continue
            yield from source.accept(_SEPARATOR_MARKS)
            problem = yield from read_json_calls(source, turn, self.keys)
            if problem in (TRUNCATED, NO_JSON) and not (yield from source.peek()):
                report_malformed(source, turn, problem)
            elif problem:
                # It only looked like another call: a sentence continues, or some other object follows.
                turn.add_text(source.end_capture())
                return ""
        return ""

    def render_call(self, *calls: ToolCall) -> str:
        return "; ".join(format_call_json(call, self.name_key, self.arguments_key) for call in calls)


@dataclass(frozen=True, kw_only=True)
class FencedJson(LineCalls, TaggedJson):
    """Calls in Markdown fences, which `opens` and `closes` describe. Any other fence is text to its end."""

    def read_line(self, source: Source, turn: Turn, lead: str, emit: TextSink) -> ParseStep[TextSink]:
        if (yield from source.peek_marker(_FENCE_MARKS)):
            space, fence = yield from source.take_to(compile_markers(*self.opens))
            is_for_calls = fence != FENCE or (yield from source.peek()) == "\n"
            if (yield from self.try_read_calls(source, turn, f"{lead}{space}{fence}", emit)):
                return emit
            if is_for_calls:
                yield from self._read_open_block(source, turn)
            else:
                yield from self._read_fenced_block(source, turn, "")
        elif lead:
            emit(lead)
        return emit

    def _read_open_block(self, source: Source, turn: Turn) -> ParseStep[None]:
        """Read the rest of a block that is no call as text. Only a fence without a language can end it: if one for
        calls follows instead, and a call in it, the block has no end."""
        openers = tuple(f"\n{opener}" for opener in self.opens if opener != FENCE)
        marks = compile_markers(f"\n{FENCE}", *openers)
        while (mark := (yield from source.copy_until(marks, turn.add_text))) in openers:
            if (yield from self.try_read_calls(source, turn, str(mark), turn.add_text)):
                turn.add_repair("missing_close", f"{FENCE} was missing after a block")
                return
        turn.add_text(mark or "")

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        if not (yield from has_call_key_first(source)):
            return "no call follows"
        problem = yield from read_json_calls(source, turn, self.keys)
        return problem or (yield from self.read_remaining_calls(source, turn, ""))


LLAMA3_JSON = BareJson(
    name="llama3_json",
    shape="B",
    models="Llama 3.1 to 3.3, Llama 4 with JSON calls, and fine-tunes that write FUNCTION_CALL: or TOOL_CALL:",
    source="chat template of meta-llama/Llama-3.1-8B-Instruct",
    opens=("<|python_tag|>", "FUNCTION_CALL:", "TOOL_CALL:"),
    arguments_key="parameters",
    keys=PROMPT_CALL_KEYS,
    text_tags=True,
    framing=("<|eot_id|>", "<|eom_id|>"),
    tokens=frozenset({"<|python_tag|>", "<|eot_id|>", "<|eom_id|>"}),
    result_template="{content}",
    parsers=("llama3_json", "llama4_json", "llama3"),
    patterns=("*llama-3*", "*llama3*"),
)

FENCED = FencedJson(
    name="fenced",
    shape="B",
    models="any model that is taught to call by JSON in a Markdown fence; Qwen2.5-Coder falls back to it",
    source="what prompts teach; LangChain's structured chat writes action and action_input",
    opens=("```json", "```tool_call", "```tool_calls", "```JSON", "```"),
    closes=("```",),
    keys=PROMPT_CALL_KEYS,
    text_tags=True,
)

DIALECTS: Sequence[Dialect] = (LLAMA3_JSON, FENCED, REACT)
