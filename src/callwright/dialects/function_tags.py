"""X1: `<function=NAME>` with `<parameter=KEY>` inside, values as raw text.

    <tool_call>
    <function=get_weather>
    <parameter=city>
    Oslo
    </parameter>
    </function>
    </tool_call>

Defined by the chat templates named in `source` below. Some frame each value with newlines, others do not. Sometimes a
model falls back to the JSON of its predecessor: that is read too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from callwright.arguments import ArgumentsWriter
from callwright.dialects.base import Dialect, ReasoningTags, format_raw_value, open_call, truncate_call
from callwright.dialects.call_object import read_json_arguments
from callwright.dialects.tag_section import TagSection, get_key_filter, read_closing_tag, read_json_section
from callwright.model import ToolCall
from callwright.text.raw_values import RawValueRule
from callwright.text.source import MarkerSet, ParseStep, Source, compile_markers
from callwright.turn import Turn

__all__ = ["DIALECTS", "FunctionTags"]

_FUNCTION_OPENER = "<function="
_PARAMETER_NAME = re.compile(r"[^<>\n]*")
_TOOL_NAME = re.compile(r"[^<>\n{]*")
_MAX_NAME_LENGTH = 256


@dataclass(frozen=True, kw_only=True)
class FunctionTags(Dialect):
    """A family of `<function=…>` tags; `inset` is the newline that frames each value, if the family has one."""

    raw_values: ClassVar[bool] = True
    quotable: bool = True
    wrapper: tuple[str, str] = ("<tool_call>", "</tool_call>")
    inset: str = "\n"
    python_values: bool = False
    """Whether the template prints values other than strings like Python: True, None, single quotes."""

    @property
    def openers(self) -> tuple[str, ...]:
        return (self.wrapper[0], _FUNCTION_OPENER)

    @property
    def body_starts(self) -> tuple[str, ...]:
        return (_FUNCTION_OPENER,)

    @property
    def markers(self) -> tuple[str, ...]:
        return (*self.wrapper, _FUNCTION_OPENER, "</function>", "<parameter=", "</parameter>")

    @cached_property
    def _section(self) -> TagSection:
        return TagSection(self.wrapper[0], _FUNCTION_OPENER, self.wrapper[1])

    @cached_property
    def _body_marks(self) -> MarkerSet:
        return compile_markers("<parameter=", "</function>", self.wrapper[1])

    @cached_property
    def _value_rules(self) -> dict[str, RawValueRule]:
        """How a value ends, by the newline that it begins with."""
        around = ("</function>", self.wrapper[1])
        insets = {"": self.inset, "\n": "\n", "\r\n": "\r\n"}
        return {
            begin: RawValueRule("</parameter>", around, ("<parameter=",), inset, call_tags=self.openers)
            for begin, inset in insets.items()
        }

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        is_opened = opener != _FUNCTION_OPENER
        if is_opened:
            if (yield from source.skip_space()) in ("{", "["):
                return (yield from read_json_section(source, turn, self.wrapper[1]))
            if not (yield from source.accept(compile_markers(_FUNCTION_OPENER))):
                return f"no {_FUNCTION_OPENER}…> follows"
        return (
            yield from self._section.read_section(
                source, turn, lambda: self._read_call(source, turn), is_opened=is_opened
            )
        )

    def _read_call(self, source: Source, turn: Turn) -> ParseStep[str]:
        name = (yield from source.take_while(_TOOL_NAME, _MAX_NAME_LENGTH)).strip()
        closed = yield from source.accept(compile_markers(">"))
        if not closed and (yield from source.peek()) != "{":
            return "the tag of the function is not closed"
        if closed and name.endswith("/") and turn.can_call(name[:-1].rstrip()):
            open_call(source, turn, name[:-1].rstrip()).close_empty()
            return ""
        if not turn.can_call(name):
            return f"unknown tool {name!r}"
        body = compile_markers(*self._body_marks.markers, "{")
        if not (yield from source.peek_marker(body)) and not source.is_truncated_at(body):
            return "no parameter follows"
        arguments = open_call(source, turn, name)
        if (yield from source.skip_space()) == "{":
            # Functionary's form of the same tags, and similar mistakes; Llama on Groq omits `>`: freellmapi #291.
            if not closed:
                arguments.call.add_repair("missing_close", "> was missing after the name of a function")
            yield from read_json_arguments(source, turn, arguments)
            yield from read_closing_tag(source, turn, "</function>")
            return ""
        rule = self._value_rules[""]
        while True:
            tag = yield from rule.accept_tag(source, self._body_marks, arguments.call.add_repair)
            if tag == self.wrapper[1]:
                arguments.call.add_repair("missing_close", "</function> was missing after a call")
                source.position -= len(tag)
            if tag in ("</function>", self.wrapper[1]):
                arguments.close()
                return ""
            if not tag and (yield from source.skip_space()):
                arguments.end_early(source, "</function>")
                return ""
            if not tag or not (yield from self._read_parameter(source, arguments)):
                return (yield from truncate_call(source, turn, arguments))

    def _read_parameter(self, source: Source, arguments: ArgumentsWriter) -> ParseStep[bool]:
        source.start_capture()
        key = (yield from source.take_while(_PARAMETER_NAME, _MAX_NAME_LENGTH)).strip()
        if not (yield from source.accept(compile_markers(">"))):
            return False
        source.drop_capture()
        newline = (yield from source.accept(compile_markers("\r\n", "\n"))) if self.inset else ""
        parameter = arguments.start_parameter(key)
        closed = yield from self._value_rules[newline].copy_value(
            source, parameter.write, get_key_filter(arguments), arguments.call.has_tool
        )
        if closed is None:
            return False
        parameter.end()
        if not closed.endswith("</parameter>"):
            arguments.call.add_repair("missing_close", "</parameter> was missing after a value")
        return True

    def render_call(self, *calls: ToolCall) -> str:
        return "\n".join(self._render_one_call(call) for call in calls)

    def _render_one_call(self, call: ToolCall) -> str:
        members = "".join(
            f"<parameter={key}>{self.inset}{self._format_value(value)}{self.inset}</parameter>\n"
            for key, value in json.loads(call.arguments).items()
        )
        return f"{self.wrapper[0]}\n{_FUNCTION_OPENER}{call.name}>\n{members}</function>\n{self.wrapper[1]}"

    def _format_value(self, value: Any) -> str:
        return str(value) if self.python_values else format_raw_value(value)


QWEN3_CODER = FunctionTags(
    name="qwen3_coder",
    shape="X1",
    models="Qwen3-Coder, Qwen3.5 to 3.8, Nemotron 3, Step-3.5-Flash, Granite 4.2, Nanbeige, K-EXAONE 2",
    source="chat templates of Qwen/Qwen3-Coder-30B-A3B-Instruct, Qwen/Qwen3.5-4B, stepfun-ai/Step-3.5-Flash",
    framing=("<|im_end|>",),
    tokens=frozenset({"<tool_call>", "</tool_call>"}),
    parsers=("qwen3_coder", "qwen3_xml", "step3p5", "nanbeige"),
    patterns=(
        "*qwen3-coder*",
        "*qwen3.[5-8]*",
        "*nemotron-3*",
        "*step-3.5*",
        "*granite-4.2*",
        "*nanbeige*",
        "*k-exaone-2*",
    ),
)

SEED_OSS = FunctionTags(
    name="seed_oss",
    shape="X1",
    models="Seed-OSS",
    source="chat template of ByteDance-Seed/Seed-OSS-36B-Instruct",
    wrapper=("<seed:tool_call>", "</seed:tool_call>"),
    inset="",
    python_values=True,
    reasoning_tags=(ReasoningTags("<seed:think>", "</seed:think>"),),
    framing=("<seed:eos>",),
    tokens=frozenset(
        {"<seed:tool_call>", "</seed:tool_call>", "<seed:think>", "</seed:think>", "<seed:eos>"},
    ),
    result_template="{content}",
    parsers=("seed_oss",),
    patterns=("*seed-oss*",),
)

MIMO = FunctionTags(
    name="mimo",
    shape="X1",
    models="MiMo-V2 and 2.5",
    source="the MiMo parsers of vLLM and SGLang, which cite XiaomiMiMo/MiMo-V2.5",
    inset="",
    tokens=frozenset({"<tool_call>", "</tool_call>"}),
    parsers=("mimo",),
    patterns=("*mimo-v2*",),
)

DIALECTS: Sequence[Dialect] = (QWEN3_CODER, SEED_OSS, MIMO)
