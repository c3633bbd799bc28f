"""Harmony, the format of gpt-oss: messages on channels; a message with a recipient is a call.

    <|channel|>analysis<|message|>Need weather.<|end|><|start|>assistant<|channel|>commentary
    to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo", "days": 2}<|call|>

(One line; the first `<|start|>assistant` is in the prompt.) Defined in the openai/harmony repository,
docs/format.md. What gpt-oss makes of it in the wild, and the reports, are in the vectors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar

from callwright.arguments import ArgumentsWriter, read_object
from callwright.dialects.base import Dialect, break_off, open_call
from callwright.dialects.call_object import read_held
from callwright.dialects.elements import ELEMENT
from callwright.dialects.message_header import ANALYSIS, CHANNEL, CHANNELS, CONSTRAIN, MESSAGE, START, Header
from callwright.dialects.messages import Framed
from callwright.dialects.named_parameters import NamedParameters
from callwright.dialects.typescript import namespace
from callwright.model import ToolCall, ToolSpec
from callwright.schema import Tool, Toolbox
from callwright.text.json_stream import copy_json
from callwright.text.source import MarkerSet, ParseStep, Source, compile_markers, ignore
from callwright.turn import Turn

__all__ = ["DIALECTS", "HARMONY", "Beam", "Harmony"]

CALL = "<|call|>"
END = "<|end|>"
RETURN = "<|return|>"

_SPACE_OF_NAMES = re.compile(r"^(?:functions?|tools?)[.:/]")
_GLUED = re.compile(rf"(?:json|code|xml|{'|'.join(CHANNELS)})$")
_PARAMETERS = NamedParameters("rfl:", (CALL, END, RETURN, START), (MESSAGE, START), (CALL,), inset="\n")


@dataclass(frozen=True, kw_only=True)
class Harmony(Framed):
    """Harmony framing with JSON bodies. Bodies of `rfl` tags are read wherever they turn up."""

    addresses: ClassVar[Mapping[str, str]] = MappingProxyType(
        dict.fromkeys(("assistant", "user", "all", *CHANNELS), "")
    )

    channels: tuple[str, ...] = CHANNELS
    sections: tuple[str, ...] = (CHANNEL, CONSTRAIN)
    ends_call: tuple[str, ...] = (CALL,)
    ends_text: tuple[str, ...] = (END, RETURN)
    tokens: frozenset[str] = frozenset({START, CHANNEL, CONSTRAIN, MESSAGE, END, CALL, RETURN})
    call_channel: str = "commentary"
    # Under the prompts of agents such as Kilo Code gpt-oss writes their tags into its answers: seed S4.
    tags: Dialect | None = ELEMENT

    @property
    def starts(self) -> tuple[str, ...]:
        return (*CHANNELS, f"assistant{CHANNEL}", f"assistant{MESSAGE}", "assistant to=functions.")

    @property
    def frames(self) -> tuple[str, ...]:
        return (START, CHANNEL, MESSAGE, *self.begins)

    @property
    def thought_prefill(self) -> str:
        return f"{START}assistant{CHANNEL}{ANALYSIS}{MESSAGE}"

    def tool_of(self, turn: Turn, recipient: str) -> str:
        bare = _SPACE_OF_NAMES.sub("", recipient)
        return self.meant(recipient, turn.tools) or (bare if turn.can_call(bare) else "")

    def meant(self, name: str, tools: Toolbox) -> str:
        for left in (name, _SPACE_OF_NAMES.sub("", name)):
            while left:
                if left in tools:
                    return left
                left, glued = _GLUED.subn("", left)
                if not glued:
                    break
        return ""

    def read_body(self, source: Source, turn: Turn, header: Header) -> ParseStep[str]:
        if not header.tool:
            return f"unknown tool {header.recipient!r}"
        char = yield from source.skip_space()
        follows = yield from source.peek_marker(self._bodies)
        if char == "{":
            return (yield from self._read_object(source, turn, header))
        if not char or follows:
            arguments = self._open(source, turn, header)
            whole = yield from _PARAMETERS.read(source, arguments)
            if whole and ((yield from source.peek_marker(self._bodies)) or arguments.has_all_parameters):
                arguments.close()
                return ""
            return (yield from break_off(source, turn, arguments))
        return (yield from self._read_raw(source, turn, header))

    def skip_body(self, source: Source) -> ParseStep[None]:
        yield from super().skip_body(source)
        yield from _PARAMETERS.skip(source)

    @cached_property
    def _bodies(self) -> MarkerSet:
        """What a body without JSON begins with, or an empty one is followed by."""
        return compile_markers(*self.frame, *self.framing, _PARAMETERS.open)

    def _read_object(self, source: Source, turn: Turn, header: Header) -> ParseStep[str]:
        arguments = self._open(source, turn, header)
        if (yield from read_object(source, arguments)):
            return ""
        if (yield from source.peek_marker(self._bodies)):
            arguments.call.add_repair("missing_brace", "'}' was missing after the arguments")
            arguments.close()
            return ""
        yield from copy_json(source, ignore, arguments.call.add_repair, depth=1)
        return (yield from break_off(source, turn, arguments))

    def _read_raw(self, source: Source, turn: Turn, header: Header) -> ParseStep[str]:
        """A body that is no object: JSON in a string, or the bare text of a tool's only argument, such as code."""
        key = _only_string(turn.tools.get(header.tool))
        ends = compile_markers(*self.frame, *self.framing)
        if key and (yield from source.peek()) != '"':
            arguments = self._open(source, turn, header)
            parameter = arguments.start_parameter(key)
            ended = yield from source.copy_until(ends, parameter.write)
            if ended is None:
                arguments.call.end_truncated()
                return ""
            parameter.end()
            self._close_bare(arguments, key)
            source.position -= len(ended)
            return ""
        raw, ended = yield from source.take_to(ends)
        if ended is None:
            self._open(source, turn, header).call.end_truncated(raw)
            return ""
        source.position -= len(ended)
        problem = yield from read_held(source, turn, header.tool, raw, notes=self._notes(header))
        if problem and key:
            arguments = self._open(source, turn, header)
            arguments.write_text(key, raw, arguments.call.schema.get_member(key))
            self._close_bare(arguments, key)
            return ""
        return problem

    def _close_bare(self, arguments: ArgumentsWriter, key: str) -> None:
        arguments.call.add_repair("bare_argument", f"the body is taken as {key!r}")
        arguments.close()

    def _open(self, source: Source, turn: Turn, header: Header) -> ArgumentsWriter:
        arguments = open_call(source, turn, header.tool)
        for kind, detail in self._notes(header).items():
            arguments.call.add_repair(kind, detail)
        return arguments

    def _notes(self, header: Header) -> dict[str, str]:
        notes = {"odd_header": ", ".join(header.odd)} if header.odd else {}
        if header.tool not in (header.recipient, _SPACE_OF_NAMES.sub("", header.recipient)):
            notes["renamed_tool"] = f"{header.recipient!r} became {header.tool!r}"
        if header.channel == ANALYSIS != self.call_channel:
            notes["call_in_reasoning"] = "the call stood on the analysis channel"
        return notes

    def render_call(self, *calls: ToolCall) -> str:
        return "".join(
            f"{START}assistant{CHANNEL}{self.call_channel} to=functions.{call.name} {CONSTRAIN}json{MESSAGE}"
            f"{call.arguments}{CALL}"
            for call in calls
        )

    def render_text(self, text: str) -> str:
        return f"{START}assistant{CHANNEL}commentary{MESSAGE}{text}{END}" if text else ""

    def render_tools(self, tools: Sequence[ToolSpec]) -> str:
        return f"# Tools\n\n## functions\n\n{namespace('functions', tools)}\n\n{self.how_to_call()}"

    def how_to_call(self) -> str:
        return "Calls to these tools must go to the commentary channel: 'functions'."


@dataclass(frozen=True, kw_only=True)
class Beam(Harmony):
    """Harmony framing with tags in the bodies."""

    raw_values: ClassVar[bool] = True

    ends_call: tuple[str, ...] = (CALL, END)
    call_channel: str = ANALYSIS

    @property
    def markers(self) -> tuple[str, ...]:
        return (*self.frame, _PARAMETERS.open, _PARAMETERS.close)

    def render_call(self, *calls: ToolCall) -> str:
        return "".join(
            f"{START}assistant to={call.name}{CHANNEL}{self.call_channel} {CONSTRAIN}xml{MESSAGE}"
            + "\n".join(_PARAMETERS.render(call.arguments))
            + CALL
            for call in calls
        )

    def render_tools(self, tools: Sequence[ToolSpec]) -> str:
        return Dialect.render_tools(self, tools)

    def how_to_call(self) -> str:
        return Dialect.how_to_call(self)


def _only_string(tool: Tool | None) -> str:
    """The parameter of a tool that takes one string and nothing else."""
    names = [name for name, schema in tool.schema.properties.items() if schema.is_string] if tool else []
    return names[0] if tool and len(names) == len(tool.schema.properties) == 1 else ""


HARMONY = Harmony(
    name="harmony",
    shape="J3",
    models="gpt-oss-20b, gpt-oss-120b, gpt-oss-safeguard and their fine-tunes",
    source="openai/harmony docs/format.md, chat template of openai/gpt-oss-120b",
    result=f"{START}functions.{{name}} to=assistant{CHANNEL}commentary{MESSAGE}{{content}}{END}",
    parsers=("openai", "gpt-oss"),
    patterns=("*gpt-oss*", "*gpt_oss*"),
)

BEAM = Beam(
    name="beam",
    shape="J3",
    models="Beam",
    source="response template in Hugging Face form, as tested by the Shepherd model gateway",
    result=f"{START}{{name}} to=assistant{CHANNEL}commentary{MESSAGE}{{content}}{END}",
    patterns=("*/beam-*", "beam-*"),
)

DIALECTS: Sequence[Dialect] = (HARMONY, BEAM)
