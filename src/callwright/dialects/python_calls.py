"""P: calls in Python syntax, in a list or on lines of their own.

    [get_weather(city="Oslo", days=2), ping()]

Llama 4 and models under Google's prompts for Gemma 3 write exactly this; LFM2, OLMo 3, Llama 3's tools and `tool_code`
fences put markers around it. Literals are Python's or JSON's. A call of an unknown name is no call: lists in code stay
text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from callwright.dialects.base import Dialect, open_call
from callwright.dialects.python_calls_grammar import PythonCalls
from callwright.model import ToolCall
from callwright.schema import Toolbox
from callwright.text.lookahead import Lookahead
from callwright.text.python_stream import peek_call
from callwright.text.source import MarkerSet, ParseStep, Source, TextSink, compile_markers
from callwright.turn import Turn

__all__ = ["DIALECTS"]

_CODE_TOOLS = ("python", "code_interpreter", "ipython")
"""Names of the tool that runs code; Llama 3 writes the code alone, without a name."""
_SENTENCE_OPENERS = tuple(f"{end}{space}[" for end in ".!?:" for space in ("", " "))


@dataclass(frozen=True, kw_only=True)
class LineStartCalls(PythonCalls):
    """Calls whose first opener is plain text: it counts at the start of a line, and is written with its newline."""

    def _copy_reasoning(self, source: Source, turn: Turn, closers: tuple[str, ...]) -> ParseStep[str | None]:
        # Reasoning is not searched: models draft calls there.
        return (yield from source.copy_until(compile_markers(*closers), turn.add_reasoning))

    def _read_answer_start(self, source: Source, turn: Turn) -> ParseStep[None]:
        opener = compile_markers(self.openers[0][1:])
        if marker := (yield from source.peek_marker(opener)):
            yield from source.copy_until(opener, turn.add_text)
            yield from self.try_read_calls(source, turn, marker, turn.add_text)
        else:
            yield from super()._read_answer_start(source, turn)

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        opener = opener if opener in self.openers else f"\n{opener}"
        return (yield from super().read_calls(source, turn, opener))

    def render_call(self, *calls: ToolCall) -> str:
        return super().render_call(*calls).removeprefix("\n")

    def render_text(self, text: str) -> str:
        return f"{text}\n" if text else ""


@dataclass(frozen=True, kw_only=True)
class BarePythonList(LineStartCalls):
    """A list without markers: it counts after the end of a sentence too, and nowhere else inside a line."""

    def _build_marks(self, tools: Toolbox) -> MarkerSet:
        return compile_markers(*super()._build_marks(tools).markers, *_SENTENCE_OPENERS)

    def try_read_calls(self, source: Source, turn: Turn, opener: str, emit: TextSink) -> ParseStep[bool]:
        if opener in _SENTENCE_OPENERS:
            emit(opener[:-1])
            opener = opener[-1]
        return (yield from super().try_read_calls(source, turn, opener, emit))


@dataclass(frozen=True, kw_only=True)
class PythonTag(PythonCalls):
    """Llama 3's tag before a call of a built-in tool, before JSON, or before code for an interpreter."""

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        char = yield from source.skip_space()
        if char == "{" or (yield from self._is_call_ahead(source, turn, char)):
            return (yield from super().read_calls(source, turn, opener))
        return (yield from _read_code(source, turn, compile_markers(*self.framing)))

    def _is_call_ahead(self, source: Source, turn: Turn, char: str) -> ParseStep[bool]:
        ahead = Lookahead(source, 1 if char == "[" else 0)
        if char == "[" and (yield from ahead.skip_space()) == "{":
            return True
        head = yield from peek_call(source, ahead.offset)
        return head is not None and bool(self._find_tool(turn, head.name))

    def _find_tool(self, turn: Turn, name: str) -> str:
        # Anything else is code: without known tools, `print(1)` would be a call of `print`.
        return super()._find_tool(turn, name) if name in turn.tools or name.endswith(self.name_suffix) else ""


def _read_code(source: Source, turn: Turn, ends: MarkerSet) -> ParseStep[str]:
    """Read code for an interpreter, up to the end of the message, as the only string argument of the tool."""
    for name in _CODE_TOOLS:
        tool = turn.tools.get(name)
        keys = [key for key, schema in tool.schema.properties.items() if schema.is_string] if tool else []
        if len(keys) == 1:
            code = source.end_capture().lstrip()
            arguments = open_call(source, turn, name)
            parameter = arguments.start_parameter(keys[0])
            parameter.write(code)
            # Most servers strip the end-of-message token: if it is missing, the code may still be complete.
            if (yield from source.copy_until(ends, parameter.write)) is None:
                arguments.call.add_repair("missing_close", "no end of the message followed the code")
            parameter.end()
            arguments.close()
            return ""
    return "code, but no tool accepts code"


PYTHONIC = BarePythonList(
    name="pythonic",
    shape="P",
    models="Llama 4, Llama 3.2 in its zero-shot prompt, ToolACE, Gemma 3 as Google prompts it",
    source="Meta's prompt format of Llama 3.2 and 4, ai.google.dev/gemma/docs/capabilities/function-calling",
    marker_pairs=(("\n[", ""), ("<|python_start|>", "<|python_end|>")),
    list_frame=("", ", ", "]"),
    text_tags=True,
    framing=("<|eot|>", "<|eom|>", "<|eot_id|>", "<|eom_id|>"),
    tokens=frozenset({"<|python_start|>", "<|python_end|>", "<|eot|>", "<|eom|>", "<|eot_id|>", "<|eom_id|>"}),
    result_template="{content}",
    parsers=("pythonic", "llama4_pythonic"),
    patterns=("*llama-4*", "*llama4*", "*toolace*", "*gemma-3*", "*gemma3*"),
)
LFM2 = PythonCalls(
    name="lfm2",
    shape="P",
    models="LFM2 and LFM2.5 of Liquid AI",
    source="chat templates of LiquidAI/LFM2-8B-A1B and LiquidAI/LFM2.5-8B-A1B",
    marker_pairs=(("<|tool_call_start|>", "<|tool_call_end|>"),),
    literals="single",
    framing=("<|im_end|>",),
    tokens=frozenset({"<|tool_call_start|>", "<|tool_call_end|>", "<|im_end|>"}),
    result_template="<|tool_response_start|>{content}<|tool_response_end|>",
    parsers=("lfm2",),
    patterns=("*lfm2*",),
)
OLMO3 = PythonCalls(
    name="olmo3",
    shape="P",
    models="OLMo 3",
    source="chat template of allenai/Olmo-3-7B-Instruct",
    marker_pairs=(("<function_calls>", "</function_calls>"),),
    list_frame=("", "\n", ""),
    literals="json",
    text_tags=True,
    framing=("<|im_end|>",),
    result_template="{content}",
    parsers=("olmo3",),
    patterns=("*olmo-3*", "*olmo3*"),
)
PYTHON_TAG = PythonTag(
    name="python_tag",
    shape="P",
    models="Llama 3.1 and 3.3 with built-in tools",
    source="chat template of meta-llama/Llama-3.1-8B-Instruct",
    marker_pairs=(("<|python_tag|>", ""),),
    list_frame=("", "; ", ""),
    name_suffix=".call",
    framing=("<|eom_id|>", "<|eot_id|>"),
    tokens=frozenset({"<|python_tag|>", "<|eom_id|>", "<|eot_id|>"}),
    result_template="{content}",
)
TOOL_CODE = LineStartCalls(
    name="tool_code",
    shape="P",
    models="Gemma 2 and 3 and Gemini, taught by prompt",
    source="prompt-taught: fenced tool_code blocks of Gemma and Gemini, answered with tool_output",
    marker_pairs=(("\n```tool_code", "```"),),
    list_frame=("\n", "\n", "\n"),
    framing=("<end_of_turn>",),
    tokens=frozenset({"<end_of_turn>"}),
    result_template="```tool_output\n{content}\n```",
    patterns=("*gemma-2*", "*gemma2*"),
)

DIALECTS: Sequence[Dialect] = (PYTHONIC, LFM2, OLMO3, PYTHON_TAG, TOOL_CODE)
