"""J3: Functionary, whose calls are plain text, and whose Python is written raw.

    <function=get_weather>{"city": "Oslo", "days": 2}</function>        v3.1

    >>>all
    Let me look.>>>get_weather
    {"city": "Oslo", "days": 2}                                         v3.2

In v3.2 everything has a recipient; `all` is the reader. The prompt ends with the first `>>>`, so the
output may begin right with the recipient. Defined by the chat templates of
meetkai/functionary-medium-v3.1 and v3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from callwright.dialects.base import Dialect, open_call
from callwright.dialects.header_json import Head, HeaderJson
from callwright.schema import Schema
from callwright.text.source import ParseStep, Source, TextSink, compile_markers
from callwright.turn import Turn

__all__ = ["DIALECTS", "Functionary"]

PYTHON = "python"
_STRING = Schema({"type": "string"})


@dataclass(frozen=True, kw_only=True)
class Functionary(HeaderJson):
    """A version of Functionary."""

    code: str
    """What begins raw Python, up to the next call or the end of the turn."""
    header: str
    """How a call of a tool begins: a format string of {name}."""
    recipients: bool = False
    """Text has a recipient too, and the prompt has written the first marker."""

    @property
    def openers(self) -> tuple[str, ...]:
        return (self.call, self.code)

    @property
    def markers(self) -> tuple[str, ...]:
        return (*self.openers, *self.closes)

    def grammar(self, source: Source, turn: Turn) -> ParseStep[None]:
        if self.recipients:
            yield from self._begin(source, turn)
        yield from super().grammar(source, turn)

    def _begin(self, source: Source, turn: Turn) -> ParseStep[None]:
        """Read a recipient that stands at the beginning without its marker, if one does."""
        lines = {f"{name}\n": name for name in ("all", *turn.tools.names)}
        name = lines.get((yield from source.peek_marker(compile_markers(*lines))))
        if name == "all" or name == PYTHON:
            yield from source.accept_next(compile_markers(f"{name}\n"))
        if name == PYTHON:
            yield from self.attempt(source, turn, self.code, turn.add_text)
        elif name and name != "all":
            yield from self.attempt(source, turn, "", turn.add_text)

    def attempt(self, source: Source, turn: Turn, opener: str, emit: TextSink) -> ParseStep[bool]:
        while opener == ">>>" and (yield from source.peek()) == ">":
            # Text that ends in this character runs into the marker.
            emit(">")
            source.position += 1
        return (yield from super().attempt(source, turn, opener, emit))

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        if opener != self.code:
            return (yield from super().read_calls(source, turn, opener))
        if PYTHON not in turn.tools:
            return f"no tool {PYTHON!r} is offered"
        if (yield from source.peek_marker(compile_markers('{"code"'))):
            yield from source.skip_space()
            yield from self.read_arguments(source, turn, Head(PYTHON))
            return ""
        arguments = open_call(source, turn, PYTHON)
        parameter = arguments.start_parameter("code", _STRING)
        headers = (self.header.format(name=name) for name in ("all", *turn.tools.names))
        mark = yield from source.copy_until(compile_markers(*headers, self.code, *self.framing), parameter.write)
        source.position -= len(mark or "")
        parameter.end()
        arguments.close()
        return ""


FUNCTIONARY31 = Functionary(
    name="functionary31",
    shape="J3",
    models="Functionary v3.1",
    source="chat template of meetkai/functionary-medium-v3.1",
    call="<function=",
    separators=((">", "arguments"),),
    closes=("</function>",),
    code="<|python_tag|>",
    header="<function={name}>",
    form="<function={name}>{arguments}</function>",
    thinks=(),
    framing=("<|eom_id|>", "<|eot_id|>"),
    text_tags=True,
    tokens=frozenset({"<|python_tag|>", "<|eom_id|>", "<|eot_id|>"}),
    result="{content}",
    patterns=("*functionary*v3.1*",),
)

FUNCTIONARY32 = Functionary(
    name="functionary32",
    shape="J3",
    models="Functionary v3.2",
    source="chat template of meetkai/functionary-medium-v3.2",
    call=">>>",
    code=">>>python\n",
    header=">>>{name}\n",
    recipients=True,
    form=">>>{name}\n{arguments}",
    text_form=">>>all\n{text}",
    thinks=(),
    framing=(">>>all\n", "<|eom_id|>", "<|eot_id|>"),
    text_tags=True,
    tokens=frozenset({"<|eom_id|>", "<|eot_id|>"}),
    result="{content}",
    patterns=("*functionary*v3.2*",),
)

DIALECTS: Sequence[Dialect] = (FUNCTIONARY31, FUNCTIONARY32)
