"""X1: `<function=NAME>` with `<parameter=KEY>` inside, values as raw text.

<tool_call>
<function=get_weather>
<parameter=city>
Oslo
</parameter>
</function>
</tool_call>
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from callwright.arguments import Arguments
from callwright.dialects.base import Dialect, open_call, raw_text
from callwright.model import ToolCall
from callwright.text.source import Reading, Source, marks
from callwright.text.tags import RawValue
from callwright.turn import Turn

__all__ = ["DIALECTS", "FunctionTags"]

_NAME = re.compile(r"[^<>\n]*")
_LONGEST_NAME = 256


@dataclass(frozen=True, kw_only=True)
class FunctionTags(Dialect):
    """A family of `<function=…>` tags; `inset` is the newline that frames each value, if it has one."""

    raw_values: ClassVar[bool] = True
    wrapper: tuple[str, str] = ("<tool_call>", "</tool_call>")
    inset: str = "\n"

    @property
    def openers(self) -> tuple[str, ...]:
        return (self.wrapper[0], "<function=")

    @property
    def starts(self) -> tuple[str, ...]:
        return ("<function=",)

    def read_calls(self, source: Source, turn: Turn, opener: str) -> Reading[str]:
        if opener != "<function=":
            yield from source.skip_space()
            if not (yield from source.accept(marks("<function="))):
                return "no <function=…> follows"
        while True:
            problem = yield from self._read_call(source, turn)
            if problem:
                return problem
            if opener == "<function=" or turn.was_cut:
                return ""
            yield from source.skip_space()
            if (yield from source.accept(marks(self.wrapper[1]))):
                return ""
            if not (yield from source.accept(marks("<function="))):
                turn.note("missing_close", f"{self.wrapper[1]} was missing after a call")
                return ""
            source.keep()

    def _read_call(self, source: Source, turn: Turn) -> Reading[str]:
        name = (yield from source.take_while(_NAME, _LONGEST_NAME)).strip()
        if not (yield from source.accept(marks(">"))):
            return "the tag of the function does not close"
        if not turn.accepts(name):
            return f"unknown tool {name!r}"
        arguments = open_call(source, turn, name)
        while True:
            yield from source.skip_space()
            tag = yield from source.accept(marks("<parameter=", "</function>"))
            if tag == "</function>":
                arguments.close()
                return ""
            if not tag or not (yield from self._read_parameter(source, arguments)):
                arguments.call.cut()
                return ""

    def _read_parameter(self, source: Source, arguments: Arguments) -> Reading[bool]:
        key = (yield from source.take_while(_NAME, _LONGEST_NAME)).strip()
        if not (yield from source.accept(marks(">"))):
            return False
        yield from source.skip_newlines(len(self.inset))
        parameter = arguments.parameter(key)
        closed = yield from self._value.copy(source, parameter.write, arguments.misses)
        if closed is None:
            return False
        parameter.end()
        if not closed.endswith("</parameter>"):
            arguments.call.note("missing_close", "</parameter> was missing after a value")
        return True

    @cached_property
    def _value(self) -> RawValue:
        return RawValue("</parameter>", ("</function>", self.wrapper[1]), ("<parameter=",), self.inset)

    @property
    def markers(self) -> tuple[str, ...]:
        return (*self.wrapper, "<function=", "</function>", "<parameter=", "</parameter>")

    def render_call(self, *calls: ToolCall) -> str:
        return "\n".join(self._rendered(call) for call in calls)

    def _rendered(self, call: ToolCall) -> str:
        members = "".join(
            f"<parameter={key}>{self.inset}{raw_text(value)}{self.inset}</parameter>\n"
            for key, value in json.loads(call.arguments).items()
        )
        return f"{self.wrapper[0]}\n<function={call.name}>\n{members}</function>\n{self.wrapper[1]}"


QWEN3_CODER = FunctionTags(
    name="qwen3_coder",
    shape="X1",
    models="Qwen3-Coder, Qwen3.5 to 3.8, Nemotron 3, Step-3.5-Flash, Granite 4.2",
    source="chat template of Qwen/Qwen3-Coder-30B-A3B-Instruct",
    tokens=frozenset({"<tool_call>", "</tool_call>"}),
    parsers=("qwen3_coder", "qwen3_xml", "step3p5"),
    patterns=("*qwen3-coder*", "*qwen3.[5-8]*", "*nemotron-3*", "*step-3.5*", "*granite-4.2*"),
)

DIALECTS: Sequence[Dialect] = (QWEN3_CODER,)
