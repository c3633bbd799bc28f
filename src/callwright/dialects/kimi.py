"""J3: Kimi K2, whose header is the id of the call and the only place that names the tool.

    <|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>
    {"city": "Oslo", "days": 2}<|tool_call_end|><|tool_calls_section_end|>

Defined by the chat templates of moonshotai/Kimi-K2-Instruct and Kimi-K2-Thinking.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from callwright.dialects.base import THINK, Dialect, Think
from callwright.dialects.call_object import read_held
from callwright.dialects.header_json import Head, HeaderJson
from callwright.model import ToolCall
from callwright.schema import Toolbox
from callwright.text.json_stream import take_json
from callwright.text.repair import parse_json, repair_json
from callwright.text.source import ParseStep, Source, ignore
from callwright.turn import Turn

__all__ = ["DIALECTS", "Kimi"]

_COUNTED = re.compile(r"(.+):\d+").fullmatch
_CLEANED = re.compile(r"functions_(.+)_\d+").fullmatch
_NAMELESS = re.compile(r":?[0-9]{1,9}|call_\w+").fullmatch


class Kimi(HeaderJson):
    """Reads `functions.NAME:COUNTER` in every form seen.

    Newer templates print ids as the client sends them, and models copy what they saw there:
    `functions_NAME_3` (exo issue 2281), `call_…` (vLLM pull request 32146), a bare counter.
    """

    def identify(self, name: str, call_id: str, turn: Turn) -> Head:
        header, name = name, name.removeprefix("functions.")
        odd = f"{header!r} is not of the form functions.NAME:COUNTER"
        if _NAMELESS(name) and name not in turn.tools:
            return self._only(header, turn)
        if counted := _COUNTED(name):
            return Head(counted[1], header, odd if name == header else "")
        if (cleaned := _CLEANED(header)) and not turn.can_call(name):
            return Head(cleaned[1], header, odd)
        return Head(name, header, odd)

    def _only(self, header: str, turn: Turn) -> Head:
        """A header that names no tool means the tool that is offered alone."""
        if len(turn.tools) != 1:
            return Head("", header)
        name = turn.tools.names[0]
        return Head(name, self._id(name, header), f"{header!r} names no tool; only {name!r} is offered")

    def _id(self, name: str, header: str) -> str:
        counter = header.removeprefix("functions.").strip(":")
        return self.make_id(name, int(counter)) if counter.isdecimal() else header

    def read_nameless(self, source: Source, turn: Turn, head: Head) -> ParseStep[str]:
        """Of several tools, a header that names none means the only one that takes arguments of these names."""
        raw = ""
        if head.id and not head.name and (yield from source.peek()) == "{":
            raw = (yield from take_json(source, ignore)) or ""
        name = _fitting(turn.tools, raw)
        if not name:
            return (yield from super().read_nameless(source, turn, head))
        notes = {"mended_header": f"{head.id!r} names no tool; only {name!r} takes these arguments"}
        return (yield from read_held(source, turn, name, raw, self._id(name, head.id), notes))

    def render_call(self, *calls: ToolCall) -> str:
        """Ids of other forms are replaced: a call is named by its id alone."""
        return super().render_call(
            *(
                call
                if call.id.startswith(f"functions.{call.name}:")
                else msgspec.structs.replace(call, id=self.make_id(call.name, index))
                for index, call in enumerate(calls)
            )
        )


def _fitting(tools: Toolbox, raw: str) -> str:
    """The one tool that declares all the names in this object and requires no other."""
    mended = repair_json(raw)
    value = parse_json(mended.text) if mended else None
    if not value or not isinstance(value, dict):
        return ""
    schemas = ((tool.name, tool.schema) for tool in tools)
    fits = [name for name, schema in schemas if set(schema.required) <= value.keys() <= schema.properties.keys()]
    return fits[0] if len(fits) == 1 else ""


KIMI_K2 = Kimi(
    name="kimi_k2",
    shape="J3",
    models="Kimi K2, K2-Thinking, K2.5 to K2.7, Kimi-Linear",
    source="chat templates of moonshotai/Kimi-K2-Instruct and moonshotai/Kimi-K2-Thinking",
    # The singular forms are slips of the model, seen often enough that vLLM and llama.cpp read them.
    sections=("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"),
    call="<|tool_call_begin|>",
    separators=(("<|tool_call_argument_begin|>", "arguments"),),
    closes=("<|tool_call_end|>",),
    ends=("<|tool_calls_section_end|>", "<|tool_call_section_end|>"),
    form="<|tool_call_begin|>{id}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>",
    id_form="functions.{name}:{index}",
    thinks=(THINK, Think("◁think▷", "◁/think▷")),
    framing=("<|im_end|>",),
    tokens=frozenset(
        {
            "<|tool_calls_section_begin|>",
            "<|tool_call_begin|>",
            "<|tool_call_argument_begin|>",
            "<|tool_call_end|>",
            "<|tool_calls_section_end|>",
            "<|im_end|>",
        }
    ),
    result="## Return of {id}\n{content}",
    parsers=("kimi_k2",),
    patterns=("*kimi-k2*", "*kimi_k2*", "*kimi-linear*"),
)

DIALECTS: Sequence[Dialect] = (KIMI_K2,)
