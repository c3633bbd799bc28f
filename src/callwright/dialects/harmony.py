"""Harmony, the format of gpt-oss: messages on channels; a message with a recipient is a call.

    <|channel|>analysis<|message|>Need weather.<|end|><|start|>assistant<|channel|>commentary
    to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo", "days": 2}<|call|>

(One line; the first `<|start|>assistant` is in the prompt.) Defined in the openai/harmony repository, docs/format.md.
The test vectors have the deviations that gpt-oss makes in practice, with the reports.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar

from callwright.arguments import ArgumentsWriter, read_object
from callwright.dialects.base import FENCE, Dialect, open_call, truncate_call
from callwright.dialects.call_object import accept_fence, emit_complete_call
from callwright.dialects.elements import ELEMENT
from callwright.dialects.framed_messages import FramedDialect
from callwright.dialects.message_header import ANALYSIS, CHANNEL, CHANNELS, CONSTRAIN, MESSAGE, START, MessageHeader
from callwright.dialects.named_parameters import NamedParameters
from callwright.dialects.typescript import render_namespace
from callwright.model import ToolCall, ToolSpec
from callwright.schema import Tool, Toolbox
from callwright.text.json_stream import copy_json
from callwright.text.source import MarkerSet, ParseStep, Source, compile_markers, ignore
from callwright.turn import Turn

__all__ = ["DIALECTS", "HARMONY", "Beam", "Harmony"]

CALL = "<|call|>"
END = "<|end|>"
RETURN = "<|return|>"

_NAMESPACE_PREFIX = re.compile(r"^(?:functions?|tools?)[.:/]")
_GLUED_SUFFIX = re.compile(rf"(?:json|code|xml|{'|'.join(CHANNELS)})$")
_FENCED_OBJECT = compile_markers(
    *(f"{FENCE}{info}{gap}{{" for info in ("", "json") for gap in ("", " ", "\n", "\r\n", "\n\n"))
)
_PARAMETER_TAGS = NamedParameters(
    "rfl:", (CALL, END, RETURN, START), (MESSAGE, START), (CALL,), "\n", ("assistant to=",)
)


@dataclass(frozen=True, kw_only=True)
class Harmony(FramedDialect):
    """Harmony framing with JSON bodies. Bodies of `rfl` tags are accepted too."""

    non_tool_recipients: ClassVar[Mapping[str, str]] = MappingProxyType(
        dict.fromkeys(("assistant", "user", "all", *CHANNELS), "")
    )

    channels: tuple[str, ...] = CHANNELS
    header_markers: tuple[str, ...] = (CHANNEL, CONSTRAIN)
    call_end_markers: tuple[str, ...] = (CALL,)
    text_end_markers: tuple[str, ...] = (END, RETURN)
    tokens: frozenset[str] = frozenset({START, CHANNEL, CONSTRAIN, MESSAGE, END, CALL, RETURN})
    call_channel: str = "commentary"
    # Under the prompts of agents such as Kilo Code, gpt-oss writes their tags into its answers: seed S4.
    tag_dialect: Dialect | None = ELEMENT

    @property
    def body_starts(self) -> tuple[str, ...]:
        return (*CHANNELS, f"assistant{CHANNEL}", f"assistant{MESSAGE}", "assistant to=functions.")

    @property
    def frame_indicators(self) -> tuple[str, ...]:
        return (START, CHANNEL, MESSAGE, *self.stripped_markers)

    @property
    def reasoning_prefill(self) -> str:
        return f"{START}assistant{CHANNEL}{ANALYSIS}{MESSAGE}"

    def find_recipient_tool(self, turn: Turn, recipient: str) -> str:
        bare = _NAMESPACE_PREFIX.sub("", recipient)
        return self.resolve_tool_name(recipient, turn.tools) or (bare if turn.can_call(bare) else "")

    def resolve_tool_name(self, name: str, tools: Toolbox) -> str:
        for candidate in (name, _NAMESPACE_PREFIX.sub("", name)):
            while candidate:
                if candidate in tools:
                    return candidate
                candidate, glued = _GLUED_SUFFIX.subn("", candidate)
                if not glued:
                    break
        return ""

    def read_body(self, source: Source, turn: Turn, header: MessageHeader) -> ParseStep[str]:
        if not header.tool:
            return f"unknown tool {header.recipient!r}"
        char = yield from source.skip_space()
        follows = yield from source.peek_marker(self._plain_body_marks)
        if char == "{":
            return (yield from self._read_object(source, turn, header))
        if (yield from source.peek_marker(_FENCED_OBJECT)):
            return (yield from self._read_fenced_object(source, turn, header))
        if not char or follows:
            arguments = self._open_call(source, turn, header)
            complete = yield from _PARAMETER_TAGS.read_parameters(source, arguments)
            if complete and ((yield from source.peek_marker(self._plain_body_marks)) or arguments.has_all_parameters):
                arguments.close()
                return ""
            if complete and (yield from source.peek()):
                arguments.end_early(source, CALL)
                return ""
            return (yield from truncate_call(source, turn, arguments))
        return (yield from self._read_raw_body(source, turn, header))

    def skip_body(self, source: Source) -> ParseStep[None]:
        yield from super().skip_body(source)
        yield from _PARAMETER_TAGS.skip_parameters(source)

    @cached_property
    def _plain_body_marks(self) -> MarkerSet:
        """The beginnings of a body without JSON, and what follows an empty body."""
        return compile_markers(*self.message_markers, *self.framing, _PARAMETER_TAGS.open)

    def _read_object(self, source: Source, turn: Turn, header: MessageHeader) -> ParseStep[str]:
        yield from self._read_arguments(source, turn, self._open_call(source, turn, header))
        return ""

    def _read_fenced_object(self, source: Source, turn: Turn, header: MessageHeader) -> ParseStep[str]:
        notes: dict[str, str] = {}
        yield from accept_fence(source, notes.__setitem__)
        arguments = self._open_call(source, turn, header)
        for kind, detail in notes.items():
            arguments.call.add_repair(kind, detail)
        if (yield from self._read_arguments(source, turn, arguments)):
            yield from source.accept_next(compile_markers(FENCE))
        return ""

    def _read_arguments(self, source: Source, turn: Turn, arguments: ArgumentsWriter) -> ParseStep[bool]:
        """Read the JSON object at the position, and end the call. Return False if the object is broken: the rest of it
        is reported, up to the marker that ends the message."""
        if (yield from read_object(source, arguments)):
            return True
        yield from copy_json(source, ignore, arguments.call.add_repair, depth=1)
        yield from truncate_call(source, turn, arguments)
        return False

    def _read_raw_body(self, source: Source, turn: Turn, header: MessageHeader) -> ParseStep[str]:
        """Read a body that is not an object: JSON in a string, or bare text for a tool's only argument, such as
        code."""
        key = _find_only_string(turn.tools.get(header.tool))
        ends = compile_markers(*self.message_markers, *self.framing)
        if key and (yield from source.peek()) != '"':
            arguments = self._open_call(source, turn, header)
            parameter = arguments.start_parameter(key)
            ended = yield from source.copy_until(ends, parameter.write)
            if ended is None:
                arguments.call.end_truncated()
                return ""
            parameter.end()
            self._close_bare_argument(arguments, key)
            source.position -= len(ended)
            return ""
        raw, ended = yield from source.take_to(ends)
        if ended is None:
            self._open_call(source, turn, header).call.end_truncated(raw)
            return ""
        source.position -= len(ended)
        problem = yield from emit_complete_call(source, turn, header.tool, raw, notes=self._build_notes(header))
        if problem and key:
            arguments = self._open_call(source, turn, header)
            arguments.write_text(key, raw, arguments.call.schema.get_member(key))
            self._close_bare_argument(arguments, key)
            return ""
        return problem

    def _close_bare_argument(self, arguments: ArgumentsWriter, key: str) -> None:
        arguments.call.add_repair("bare_argument", f"the body was used as {key!r}")
        arguments.close()

    def _open_call(self, source: Source, turn: Turn, header: MessageHeader) -> ArgumentsWriter:
        arguments = open_call(source, turn, header.tool)
        for kind, detail in self._build_notes(header).items():
            arguments.call.add_repair(kind, detail)
        return arguments

    def _build_notes(self, header: MessageHeader) -> dict[str, str]:
        notes = {"odd_header": ", ".join(header.oddities)} if header.oddities else {}
        if header.tool not in (header.recipient, _NAMESPACE_PREFIX.sub("", header.recipient)):
            notes["renamed_tool"] = f"{header.recipient!r} became {header.tool!r}"
        if header.channel == ANALYSIS != self.call_channel:
            notes["call_in_reasoning"] = "the call was on the analysis channel"
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
        return f"# Tools\n\n## functions\n\n{render_namespace('functions', tools)}\n\n{self.describe_call_format()}"

    def describe_call_format(self) -> str:
        return "Calls to these tools must go to the commentary channel: 'functions'."


@dataclass(frozen=True, kw_only=True)
class Beam(Harmony):
    """Harmony framing with tags in the bodies."""

    raw_values: ClassVar[bool] = True

    call_end_markers: tuple[str, ...] = (CALL, END)
    call_channel: str = ANALYSIS

    @property
    def markers(self) -> tuple[str, ...]:
        return (*self.message_markers, _PARAMETER_TAGS.open, _PARAMETER_TAGS.close)

    def render_call(self, *calls: ToolCall) -> str:
        return "".join(
            f"{START}assistant to={call.name}{CHANNEL}{self.call_channel} {CONSTRAIN}xml{MESSAGE}"
            + "\n".join(_PARAMETER_TAGS.render_parameters(call.arguments))
            + CALL
            for call in calls
        )

    def render_tools(self, tools: Sequence[ToolSpec]) -> str:
        return Dialect.render_tools(self, tools)

    def describe_call_format(self) -> str:
        return Dialect.describe_call_format(self)


def _find_only_string(tool: Tool | None) -> str:
    """Return the parameter of a tool that takes one string and nothing else."""
    names = [name for name, schema in tool.schema.properties.items() if schema.is_string] if tool else []
    return names[0] if tool and len(names) == len(tool.schema.properties) == 1 else ""


HARMONY = Harmony(
    name="harmony",
    shape="J3",
    models="gpt-oss-20b, gpt-oss-120b, gpt-oss-safeguard and their fine-tunes",
    source="openai/harmony docs/format.md, chat template of openai/gpt-oss-120b",
    result_template=f"{START}functions.{{name}} to=assistant{CHANNEL}commentary{MESSAGE}{{content}}{END}",
    parsers=("openai", "gpt-oss"),
    patterns=("*gpt-oss*", "*gpt_oss*"),
)

BEAM = Beam(
    name="beam",
    shape="J3",
    models="Beam",
    source="response template in Hugging Face form, as tested by the Shepherd model gateway",
    result_template=f"{START}{{name}} to=assistant{CHANNEL}commentary{MESSAGE}{{content}}{END}",
    patterns=("*/beam-*", "beam-*"),
)

DIALECTS: Sequence[Dialect] = (HARMONY, BEAM)
