"""J1 and J2: a marker, then JSON that names the tool: one object, several, or an array of them.

    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}
    </tool_call>

Two dozen families share this shape; tags, key names and layout are data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from callwright.dialects.base import THINK_TAGS, Dialect, ReasoningTags
from callwright.dialects.call_object import DEFAULT_CALL_KEYS, TRUNCATED, CallKeys, read_json_calls, report_malformed
from callwright.model import ToolCall
from callwright.text.closing_tags import skip_stray_closers
from callwright.text.json_stream import escape_json
from callwright.text.source import MarkerSet, ParseStep, Source, compile_markers
from callwright.turn import Turn

__all__ = ["DIALECTS", "TaggedJson", "format_call_json"]


@dataclass(frozen=True, kw_only=True)
class TaggedJson(Dialect):
    """A family that wraps JSON calls in markers."""

    opens: tuple[str, ...]
    """Opening markers; the first one is written."""
    closes: tuple[str, ...] = ()
    """Closing markers; the first one is written. Empty if the calls just end."""
    optional_closes: tuple[str, ...] = ()
    """Optional closing markers that other versions of the family write."""
    layout: Literal["each", "array", "lines"] = "each"
    """One call per pair of markers, one array, or one object per line."""
    inset: str = "\n"
    """The text between the opening marker and the JSON."""
    outset: str | None = None
    """The text between the JSON and the closing marker, if it differs from `inset`."""
    call_separator: str = "\n"
    """The text between two pairs of markers."""
    keys: CallKeys = DEFAULT_CALL_KEYS
    name_key: str = "name"
    arguments_key: str = "arguments"
    id_key: str = ""
    """The key for the call's id, if the family writes one."""

    @property
    def openers(self) -> tuple[str, ...]:
        return self.opens

    @property
    def markers(self) -> tuple[str, ...]:
        return (*self.opens, *self.closes, *self.optional_closes)

    @property
    def closers(self) -> tuple[str, ...]:
        return (*self.closes, *self.optional_closes)

    @property
    def last_brackets(self) -> int:
        return 0 if self.closes else 2

    @property
    def body_starts(self) -> tuple[str, ...]:
        return ("{", "[")

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        problem = yield from read_json_calls(source, turn, self.keys, skip_rejected=True)
        return (yield from self.read_remaining_calls(source, turn, problem))

    def read_remaining_calls(self, source: Source, turn: Turn, problem: str) -> ParseStep[str]:
        """Read what may follow the first object or list, which was a call unless there is a `problem`: more calls, an
        extra bracket, the closing marker."""
        if problem == TRUNCATED:
            report_malformed(source, turn, problem)
            problem = ""
        while marker := (yield from self._peek_end_mark(source, turn)):
            if problem and marker not in "{[":
                return problem
            if problem:
                turn.add_malformed(source.end_capture(), problem)
                problem = ""
            yield from source.skip_space()
            if marker in "{[":
                source.start_capture()
                item_problem = yield from read_json_calls(source, turn, self.keys, skip_rejected=True)
                if item_problem:
                    report_malformed(source, turn, item_problem)
                continue
            source.position += len(marker)
            if marker in self.closes or marker in self.optional_closes:
                return ""
            if marker in "}]":
                turn.add_repair("extra_bracket", f"unexpected {marker!r} after a call")
        if self.closes and not problem and not turn.is_truncated:
            turn.add_repair("missing_close", f"{self.closes[0]} was missing after a call")
        return problem

    def _peek_end_mark(self, source: Source, turn: Turn) -> ParseStep[str]:
        """Return what may follow a call. Closing tags of other families are skipped where the real one follows."""
        marker = yield from source.peek_marker(self._end_or_open_marks)
        if marker in self.opens and marker not in self.closes:
            return ""
        if marker or not self.closes or turn.is_truncated:
            return marker
        source.start_hold()
        strays = yield from skip_stray_closers(source, ())
        marker = yield from source.peek_marker(compile_markers(*self.closes))
        if not strays or not marker:
            source.rewind(is_long=False)
            return ""
        source.end_hold()
        turn.add_repair("stray_marker", f"{' '.join(strays)} closed nothing")
        return marker

    @cached_property
    def _end_or_open_marks(self) -> MarkerSet:
        return compile_markers(*self._end_marks.markers, *self.opens)

    @cached_property
    def _end_marks(self) -> MarkerSet:
        # Without a closing marker the end of the calls is not known: all but a bracket may be text.
        return (
            compile_markers(*self.closes, "{", "[", ",", ";", "}", "]")
            if self.closes
            else compile_markers("}", "]", *self.optional_closes)
        )

    def render_call(self, *calls: ToolCall) -> str:
        bodies = [format_call_json(call, self.name_key, self.arguments_key, self.id_key) for call in calls]
        if self.layout == "each":
            return self.call_separator.join(self._wrap_body(body) for body in bodies)
        return self._wrap_body("[" + ", ".join(bodies) + "]" if self.layout == "array" else "\n".join(bodies))

    def _wrap_body(self, body: str) -> str:
        outset = self.inset if self.outset is None else self.outset
        close = f"{outset}{self.closes[0]}" if self.closes else ""
        return f"{self.opens[0]}{self.inset}{body}{close}"


def format_call_json(call: ToolCall, name_key: str = "name", arguments_key: str = "arguments", id_key: str = "") -> str:
    """Format a call as a JSON object, with its arguments unchanged."""
    lead = f'"{id_key}": "{escape_json(call.id)}", ' if id_key else ""
    return f'{{{lead}"{name_key}": "{escape_json(call.name)}", "{arguments_key}": {call.arguments}}}'


LONGCAT = TaggedJson(
    name="longcat",
    shape="J1",
    models="LongCat-Flash (the first layout; the later one is longcat2)",
    source="chat template of meituan-longcat/LongCat-Flash-Chat; vLLM longcat_tool_parser",
    opens=("<longcat_tool_call>",),
    closes=("</longcat_tool_call>",),
    reasoning_tags=(ReasoningTags("<longcat_think>", "</longcat_think>"), THINK_TAGS),
    framing=("</longcat_s>",),
    quotable=True,
    tokens=frozenset({"<longcat_tool_call>", "</longcat_tool_call>"}),
    result_template="<longcat_tool_response>\n{content}\n</longcat_tool_response>",
    parsers=("longcat",),
    patterns=("*longcat-flash*",),
)

ERNIE45 = TaggedJson(
    name="ernie45",
    shape="J1",
    models="ERNIE 4.5 Thinking, ERNIE X1",
    source="vLLM ernie45_tool_parser and its reasoning parser; baidu/ERNIE-4.5-21B-A3B-Thinking",
    opens=("<tool_call>",),
    closes=("</tool_call>",),
    # A plain answer is in a wrapper, whose tags are on lines of their own.
    framing=(
        "\n<response>\n",
        "\n<response>",
        "<response>\n",
        "<response>",
        "\n</response>\n",
        "\n</response>",
        "</response>",
        "</s>",
    ),
    quotable=True,
    tokens=frozenset({"<tool_call>", "</tool_call>", "<response>", "</response>"}),
    result_template="<tool_output>\n{content}\n</tool_output>",
    parsers=("ernie45",),
    patterns=("*ernie-4.5*thinking*", "*ernie-x1*"),
)

GRANITE_20B = TaggedJson(
    name="granite_20b",
    shape="J1",
    models="Granite 20B Function Calling, and fine-tunes that write <function_call> tags",
    source="vLLM tool_chat_template_granite_20b_fc.jinja",
    opens=("<function_call>",),
    inset=" ",
    call_separator="",
    # Fine-tunes close the tag; Granite does not.
    optional_closes=("</function_call>",),
    framing=("<|endoftext|>",),
    quotable=True,
    keys=CallKeys(no_call_names=frozenset({"no_function"})),
    result_template="<function_response> {content}",
    parsers=("granite-20b-fc",),
    patterns=("*granite-20b-functioncalling*", "*granite-20b-fc*"),
)

INTERNLM = TaggedJson(
    name="internlm",
    shape="J1",
    models="InternLM2, InternLM2.5, Intern-S1",
    source="InternLM chat format (chat/chat_format.md); vLLM internlm2_tool_parser",
    opens=("<|action_start|><|plugin|>", "<|action_start|> <|plugin|>", "<|action_start|>\n<|plugin|>"),
    closes=("<|action_end|>",),
    outset="",
    arguments_key="parameters",
    framing=("<|im_end|>",),
    quotable=True,
    tokens=frozenset({"<|action_start|>", "<|plugin|>", "<|action_end|>"}),
    result_template="{content}",
    parsers=("internlm", "interns1"),
    patterns=("*internlm2*", "*intern-s1*"),
)

GIGACHAT3 = TaggedJson(
    name="gigachat3",
    shape="J1",
    models="GigaChat 3 and 3.1, and fine-tunes that write <|function_call|>",
    source="chat templates of ai-sage/GigaChat3-10B-A1.8B and GigaChat3.1-10B-A1.8B",
    opens=(
        "<|function_call|>",
        "<|message_sep|>\n\nfunction call<|role_sep|>",
        "function call<|role_sep|>",
    ),
    inset="",
    call_separator="",
    framing=("<|message_sep|>\n\n", "<|message_sep|>", "</s>"),
    quotable=True,
    tokens=frozenset({"<|function_call|>", "<|message_sep|>", "<|role_sep|>"}),
    result_template="function result<|role_sep|>\n{content}<|message_sep|>\n\n",
    parsers=("gigachat3",),
    patterns=("*gigachat3*", "*gigachat-3*"),
)

MINIMAX_M1 = TaggedJson(
    name="minimax_m1",
    shape="J1",
    models="MiniMax-M1, MiniMax-Text-01",
    source="chat template of MiniMaxAI/MiniMax-M1-80k",
    opens=("<tool_calls>",),
    closes=("</tool_calls>",),
    layout="lines",
    framing=("<end_of_sentence>",),
    quotable=True,
    result_template="tool result: {content}\n\n",
    parsers=("minimax",),
    patterns=("*minimax-m1*", "*minimax-text-01*"),
)

DIALECTS: Sequence[Dialect] = (LONGCAT, ERNIE45, GRANITE_20B, INTERNLM, GIGACHAT3, MINIMAX_M1)
