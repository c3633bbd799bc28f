"""J1 and J2: a marker, then JSON that names the tool: one object, several, or an array of them.

    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}
    </tool_call>

The shape is the same for two dozen families; tags, key names and layout are data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from callwright.dialects.base import Dialect
from callwright.dialects.call_object import KEYS, Keys, read_calls
from callwright.model import ToolCall
from callwright.text.json_stream import escape
from callwright.text.source import Reading, Source, marks
from callwright.turn import Turn

__all__ = ["DIALECTS", "TaggedJson", "call_json"]


@dataclass(frozen=True, kw_only=True)
class TaggedJson(Dialect):
    """A family that wraps JSON calls in markers."""

    opens: tuple[str, ...]
    """Opening markers, the one to write first."""
    closes: tuple[str, ...] = ()
    """Closing markers, the one to write first; none when the calls just end."""
    layout: Literal["each", "array", "lines"] = "each"
    """One call per pair of markers, one array, or one object per line."""
    inset: str = "\n"
    """What stands between a marker and the JSON."""
    between: str = "\n"
    """What stands between two pairs of markers."""
    keys: Keys = KEYS
    name_key: str = "name"
    arguments_key: str = "arguments"
    id_key: str = ""
    """The key that carries the call's id, if the family writes one."""

    @property
    def openers(self) -> tuple[str, ...]:
        return self.opens

    @property
    def markers(self) -> tuple[str, ...]:
        return (*self.opens, *self.closes)

    @property
    def starts(self) -> tuple[str, ...]:
        return ("{", "[")

    def read_calls(self, source: Source, turn: Turn, opener: str) -> Reading[str]:
        problem = yield from read_calls(source, turn, self.keys)
        while not problem:
            char = yield from source.skip_space()
            if self.closes and (yield from source.accept(marks(*self.closes))):
                return ""
            if char and char in "}]":
                source.position += 1
                turn.note("extra_bracket", f"{char!r} stood after a call")
            elif char and char in ",;":
                source.position += 1
            elif char == "{" and self.closes:
                source.keep()
                refused = yield from read_calls(source, turn, self.keys)
                if refused:
                    turn.malformed(source.kept(), refused)
            else:
                if self.closes:
                    turn.note("missing_close", f"{self.closes[0]} was missing after a call")
                return ""
        return problem

    def render_call(self, *calls: ToolCall) -> str:
        bodies = [call_json(call, self.name_key, self.arguments_key, self.id_key) for call in calls]
        if self.layout == "each":
            return self.between.join(self._wrapped(body) for body in bodies)
        return self._wrapped("[" + ", ".join(bodies) + "]" if self.layout == "array" else "\n".join(bodies))

    def _wrapped(self, body: str) -> str:
        close = f"{self.inset}{self.closes[0]}" if self.closes else ""
        return f"{self.opens[0]}{self.inset}{body}{close}"


def call_json(call: ToolCall, name_key: str = "name", arguments_key: str = "arguments", id_key: str = "") -> str:
    """A call as a JSON object, its arguments verbatim."""
    lead = f'"{id_key}": "{escape(call.id)}", ' if id_key else ""
    return f'{{{lead}"{name_key}": "{escape(call.name)}", "{arguments_key}": {call.arguments}}}'


HERMES = TaggedJson(
    name="hermes",
    shape="J1",
    models="Hermes 2 Pro to 4, Qwen2.5, QwQ, Qwen3, Granite 4.0 and 4.1, SmolLM3, Bielik 3",
    source="chat templates of Qwen/Qwen3-0.6B and NousResearch/Hermes-2-Pro-Llama-3-8B",
    opens=("<tool_call>",),
    closes=("</tool_call>",),
    tokens=frozenset({"<tool_call>", "</tool_call>"}),
    parsers=("hermes", "qwen", "qwen25"),
    patterns=("*hermes*", "*qwen2.5*", "*qwq*", "*qwen3*", "*smollm3*", "*granite-4.[01]*", "*bielik*"),
)

DIALECTS: Sequence[Dialect] = (HERMES,)
