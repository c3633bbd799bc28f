"""J3: Functionary, whose calls are plain text, and whose Python code is raw.

    <function=get_weather>{"city": "Oslo", "days": 2}</function>        v3.1

    >>>all
    Let me look.>>>get_weather
    {"city": "Oslo", "days": 2}                                         v3.2

In v3.2 all output has a recipient; `all` is the user. The prompt ends with the first `>>>`, so the output may begin
with the recipient. Defined by the chat templates of meetkai/functionary-medium-v3.1 and v3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from callwright.dialects.base import Dialect, open_call
from callwright.dialects.header_json import HeaderJson, JsonCallHeader
from callwright.schema import Schema
from callwright.text.source import ParseStep, Source, TextSink, compile_markers
from callwright.turn import Turn

__all__ = ["DIALECTS", "Functionary"]

PYTHON_TOOL = "python"
_STRING_SCHEMA = Schema({"type": "string"})


@dataclass(frozen=True, kw_only=True)
class Functionary(HeaderJson):
    """A version of Functionary."""

    code_marker: str
    """The marker before raw Python code, which ends at the next call or the end of the turn."""
    call_header: str
    """The beginning of a call: a format string with {name}."""
    has_recipients: bool = False
    """Whether text has a recipient too, and the prompt ends with the first marker."""

    @property
    def openers(self) -> tuple[str, ...]:
        return (self.call_marker, self.code_marker)

    @property
    def markers(self) -> tuple[str, ...]:
        return (*self.openers, *self.closes)

    def grammar(self, source: Source, turn: Turn) -> ParseStep[None]:
        if self.has_recipients:
            yield from self._read_first_recipient(source, turn)
        yield from super().grammar(source, turn)

    def _read_first_recipient(self, source: Source, turn: Turn) -> ParseStep[None]:
        """Read a recipient at the beginning of the output without its marker, if there is one."""
        lines = {f"{name}\n": name for name in ("all", *turn.tools.names)}
        name = lines.get((yield from source.peek_marker(compile_markers(*lines))))
        if name == "all" or name == PYTHON_TOOL:
            yield from source.accept_next(compile_markers(f"{name}\n"))
        if name == PYTHON_TOOL:
            yield from self.try_read_calls(source, turn, self.code_marker, turn.add_text)
        elif name and name != "all":
            yield from self.try_read_calls(source, turn, "", turn.add_text)

    def try_read_calls(self, source: Source, turn: Turn, opener: str, emit: TextSink) -> ParseStep[bool]:
        while opener == ">>>" and (yield from source.peek()) == ">":
            # Text that ends in this character runs into the marker.
            emit(">")
            source.position += 1
        return (yield from super().try_read_calls(source, turn, opener, emit))

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        if opener != self.code_marker:
            return (yield from super().read_calls(source, turn, opener))
        if PYTHON_TOOL not in turn.tools:
            return f"the request has no tool {PYTHON_TOOL!r}"
        if (yield from source.peek_marker(compile_markers('{"code"'))):
            yield from source.skip_space()
            yield from self.read_arguments(source, turn, JsonCallHeader(PYTHON_TOOL))
            return ""
        arguments = open_call(source, turn, PYTHON_TOOL)
        parameter = arguments.start_parameter("code", _STRING_SCHEMA)
        headers = (self.call_header.format(name=name) for name in ("all", *turn.tools.names))
        mark = yield from source.copy_until(compile_markers(*headers, self.code_marker, *self.framing), parameter.write)
        source.position -= len(mark or "")
        parameter.end()
        arguments.close()
        return ""


FUNCTIONARY31 = Functionary(
    name="functionary31",
    shape="J3",
    models="Functionary v3.1",
    source="chat template of meetkai/functionary-medium-v3.1",
    call_marker="<function=",
    separators=((">", "arguments"),),
    closes=("</function>",),
    code_marker="<|python_tag|>",
    call_header="<function={name}>",
    call_template="<function={name}>{arguments}</function>",
    reasoning_tags=(),
    framing=("<|eom_id|>", "<|eot_id|>"),
    text_tags=True,
    tokens=frozenset({"<|python_tag|>", "<|eom_id|>", "<|eot_id|>"}),
    result_template="{content}",
    patterns=("*functionary*v3.1*",),
)

FUNCTIONARY32 = Functionary(
    name="functionary32",
    shape="J3",
    models="Functionary v3.2",
    source="chat template of meetkai/functionary-medium-v3.2",
    call_marker=">>>",
    code_marker=">>>python\n",
    call_header=">>>{name}\n",
    has_recipients=True,
    call_template=">>>{name}\n{arguments}",
    text_template=">>>all\n{text}",
    reasoning_tags=(),
    framing=(">>>all\n", "<|eom_id|>", "<|eot_id|>"),
    text_tags=True,
    tokens=frozenset({"<|eom_id|>", "<|eot_id|>"}),
    result_template="{content}",
    patterns=("*functionary*v3.2*",),
)

DIALECTS: Sequence[Dialect] = (FUNCTIONARY31, FUNCTIONARY32)
