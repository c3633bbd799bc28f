"""J3: Kimi K2, whose header is the call's id, and the only text that names the tool.

    <|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>
    {"city": "Oslo", "days": 2}<|tool_call_end|><|tool_calls_section_end|>

Defined by the chat templates of moonshotai/Kimi-K2-Instruct and Kimi-K2-Thinking.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from callwright.dialects.base import THINK_TAGS, Dialect, ReasoningTags
from callwright.dialects.call_object import emit_complete_call
from callwright.dialects.header_json import HeaderJson, JsonCallHeader
from callwright.model import ToolCall
from callwright.schema import Toolbox
from callwright.text.json_stream import take_json
from callwright.text.repair import parse_json, repair_json
from callwright.text.source import ParseStep, Source, ignore
from callwright.turn import Turn

__all__ = ["DIALECTS", "Kimi"]

_COUNTED_ID = re.compile(r"(.+):\d+").fullmatch
_CLEANED_ID = re.compile(r"functions_(.+)_\d+").fullmatch
_NAMELESS_ID = re.compile(r":?[0-9]{1,9}|call_\w+").fullmatch


class Kimi(HeaderJson):
    """Reads `functions.NAME:COUNTER` in every form seen in practice.

    Newer templates print ids as the client sends them, and models copy those: `functions_NAME_3` (exo issue 2281),
    `call_…` (vLLM pull request 32146), a bare counter.
    """

    def identify_call(self, name: str, call_id: str, turn: Turn) -> JsonCallHeader:
        header, name = name, name.removeprefix("functions.")
        detail = f"{header!r} is not of the form functions.NAME:COUNTER"
        if _NAMELESS_ID(name) and name not in turn.tools:
            return self._identify_only_tool(header, turn)
        if counted := _COUNTED_ID(name):
            return JsonCallHeader(counted[1], header, detail if name == header else "")
        if (cleaned := _CLEANED_ID(header)) and not turn.can_call(name):
            return JsonCallHeader(cleaned[1], header, detail)
        return JsonCallHeader(name, header, detail)

    def _identify_only_tool(self, header: str, turn: Turn) -> JsonCallHeader:
        """Resolve a header that names no tool: if the request has only one tool, it is meant."""
        if len(turn.tools) != 1:
            return JsonCallHeader("", header)
        name = turn.tools.names[0]
        return JsonCallHeader(
            name, self._build_call_id(name, header), f"{header!r} names no tool; {name!r} is the only one"
        )

    def _build_call_id(self, name: str, header: str) -> str:
        counter = header.removeprefix("functions.").strip(":")
        return self.make_call_id(name, int(counter)) if counter.isdecimal() else header

    def read_nameless_call(self, source: Source, turn: Turn, head: JsonCallHeader) -> ParseStep[str]:
        """Resolve a header that names no tool: it means the only tool that accepts these argument names."""
        raw = ""
        if head.id and not head.name and (yield from source.peek()) == "{":
            raw = (yield from take_json(source, ignore)) or ""
        name = _find_fitting_tool(turn.tools, raw)
        if not name:
            return (yield from super().read_nameless_call(source, turn, head))
        notes = {"repaired_header": f"{head.id!r} names no tool; only {name!r} accepts these arguments"}
        return (yield from emit_complete_call(source, turn, name, raw, self._build_call_id(name, head.id), notes))

    def render_call(self, *calls: ToolCall) -> str:
        """Render calls. Ids of other forms are replaced, because only the id names the tool."""
        return super().render_call(
            *(
                call
                if call.id.startswith(f"functions.{call.name}:")
                else msgspec.structs.replace(call, id=self.make_call_id(call.name, index))
                for index, call in enumerate(calls)
            )
        )


def _find_fitting_tool(tools: Toolbox, raw: str) -> str:
    """Return the only tool that declares all the names in this object and requires no other."""
    repaired = repair_json(raw)
    value = parse_json(repaired.text) if repaired else None
    if not value or not isinstance(value, dict):
        return ""
    schemas = ((tool.name, tool.schema) for tool in tools)
    candidates = [name for name, schema in schemas if set(schema.required) <= value.keys() <= schema.properties.keys()]
    return candidates[0] if len(candidates) == 1 else ""


KIMI_K2 = Kimi(
    name="kimi_k2",
    shape="J3",
    models="Kimi K2, K2-Thinking, K2.5 to K2.7, Kimi-Linear",
    source="chat templates of moonshotai/Kimi-K2-Instruct and moonshotai/Kimi-K2-Thinking",
    # The singular forms are mistakes of the model, frequent enough that vLLM and llama.cpp read them.
    sections=("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"),
    call_marker="<|tool_call_begin|>",
    separators=(("<|tool_call_argument_begin|>", "arguments"),),
    closes=("<|tool_call_end|>",),
    section_ends=("<|tool_calls_section_end|>", "<|tool_call_section_end|>"),
    call_template="<|tool_call_begin|>{id}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>",
    id_template="functions.{name}:{index}",
    reasoning_tags=(THINK_TAGS, ReasoningTags("◁think▷", "◁/think▷")),
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
    result_template="## Return of {id}\n{content}",
    parsers=("kimi_k2",),
    patterns=("*kimi-k2*", "*kimi_k2*", "*kimi-linear*"),
)

DIALECTS: Sequence[Dialect] = (KIMI_K2,)
