"""Differences between families that write one JSON array of calls: the layout of objects, and the text around calls.

    <|tool_call|>[{"name": "get_weather", "arguments": {"city": "Oslo"}}, {"name": "ping", "arguments": {}}]

`tagged_json` reads the array. A call's object is a template here; the subclasses handle reasoning in plain words,
answers that name their speaker, citations, calls inside reasoning, and arrays without a marker. `json_array` has the
data of the families.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from callwright.dialects.base import FENCE
from callwright.dialects.call_object import read_call_array
from callwright.dialects.tagged_json import TaggedJson
from callwright.model import ToolCall, ToolResult
from callwright.text.json_stream import escape_json
from callwright.text.source import ParseStep, Source, TextSink, compile_markers
from callwright.turn import Turn

__all__ = [
    "CITATION_TAGS",
    "RESPONSE_SENTENCES",
    "SPEAKER_PREFIX",
    "Apertus",
    "Cohere",
    "CohereR",
    "Granite3",
    "Hunyuan",
    "JsonArray",
    "MistralOld",
    "Xlam",
]

_ITEM_FIELD = re.compile("ID|NAME|ARGUMENTS")


@dataclass(frozen=True, kw_only=True)
class JsonArray(TaggedJson):
    """A family that writes all calls of a turn as one array."""

    shape: str = "J2"
    inset: str = ""
    item_template: str = '{"name": "NAME", "arguments": ARGUMENTS}'
    """The form of a call's object; ID, NAME and ARGUMENTS are filled in."""
    array_frame: tuple[str, str, str] = ("[", ", ", "]")
    """The text before, between and after the objects."""

    def render_call(self, *calls: ToolCall) -> str:
        first, between, last = self.array_frame
        return self._wrap_body(first + between.join(map(self._render_one_call, calls)) + last)

    def _render_one_call(self, call: ToolCall) -> str:
        fields = {"ID": escape_json(call.id), "NAME": escape_json(call.name), "ARGUMENTS": call.arguments}
        return _ITEM_FIELD.sub(lambda match: fields[match.group()], self.item_template)


class MistralOld(JsonArray):
    """Ids are nine letters and digits and come last, when the call was already emitted with an id of ours."""

    late_ids: ClassVar[bool] = True

    def make_call_id(self, name: str, index: int) -> str:
        return f"call{index:05}"


RESPONSE_SENTENCES = ("Here is my response:", "Here's my response:")
_RESPONSE_ENDS = tuple(space + words for words in RESPONSE_SENTENCES for space in ("\n\n", "\n", " ", ""))


class Granite3(JsonArray):
    """Reasoning begins and ends with a sentence: white space around it is framing, and either spelling ends it."""

    def _copy_reasoning(self, source: Source, turn: Turn, closers: tuple[str, ...]) -> ParseStep[str | None]:
        if closers[-1] not in RESPONSE_SENTENCES:
            return (yield from super()._copy_reasoning(source, turn, closers))
        yield from source.skip_space()
        ended = yield from super()._copy_reasoning(source, turn, _RESPONSE_ENDS)
        if ended:
            yield from source.skip_space()
        return ended


SPEAKER_PREFIX = "助手："


class Hunyuan(JsonArray):
    """The prompt requires answers to begin with the speaker's name, which is not part of them."""

    def _read_answer_start(self, source: Source, turn: Turn) -> ParseStep[None]:
        yield from source.accept(compile_markers(SPEAKER_PREFIX))
        yield from super()._read_answer_start(source, turn)


class Apertus(JsonArray):
    """Calls are inside the reasoning, which continues after them."""

    def _copy_reasoning(self, source: Source, turn: Turn, closers: tuple[str, ...]) -> ParseStep[str | None]:
        while (ended := (yield from super()._copy_reasoning(source, turn, closers))) == "":
            pass
        return ended


CITATION_TAGS = ("<co>", "<co:", "</co:", "</co>")
_CITATION_SOURCES = re.compile(r"[\d ,:\[\]]*")


class CitedJsonArray(JsonArray):
    """Spans of text and reasoning are cited, `<co>span</co: 0:[1,2]>`: the tags are framing, the span is text."""

    def _drop_marker(self, source: Source, turn: Turn, marker: str) -> ParseStep[None]:
        if marker in CITATION_TAGS:
            yield from _skip_sources(source, turn.add_text, marker)
        else:
            yield from super()._drop_marker(source, turn, marker)

    def _copy_reasoning(self, source: Source, turn: Turn, closers: tuple[str, ...]) -> ParseStep[str | None]:
        markers = (*closers, *CITATION_TAGS)
        while (ended := (yield from super()._copy_reasoning(source, turn, markers))) in CITATION_TAGS:
            yield from _skip_sources(source, turn.add_reasoning, str(ended))
        return ended


def _skip_sources(source: Source, emit: TextSink, tag: str) -> ParseStep[None]:
    """Skip the sources that a tag lists; without a list of sources it was no tag."""
    if tag.endswith(":"):
        sources = yield from source.take_while(_CITATION_SOURCES, 256)
        if not (yield from source.accept(compile_markers(">"))):
            emit(tag + sources)


class Cohere(CitedJsonArray):
    """Ids count the calls of a conversation from 0."""

    def make_call_id(self, name: str, index: int) -> str:
        return str(index)

    def render_result(self, result: ToolResult) -> str:
        content = json.dumps(result.content, ensure_ascii=False)
        return super().render_result(msgspec.structs.replace(result, content=content))


class CohereR(CitedJsonArray):
    """The array is in a fence, as the prompt shows it."""

    @property
    def body_starts(self) -> tuple[str, ...]:
        return (FENCE, "[")

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        yield from source.skip_space()
        yield from source.accept(compile_markers(f"{FENCE}json", FENCE))
        return (yield from super().read_calls(source, turn, opener))


_LINE_LIST = "\n["


class Xlam(JsonArray):
    """No marker: an array at the start of a line, in a fence or after `</think>` counts if it contains calls."""

    @property
    def openers(self) -> tuple[str, ...]:
        return (*self.opens, _LINE_LIST)

    def _read_answer_start(self, source: Source, turn: Turn) -> ParseStep[None]:
        # At the beginning of an answer there is no line break.
        if (yield from source.peek_marker(compile_markers("[", *self.opens))) == "[":
            yield from self.try_read_calls(source, turn, "", turn.add_text)
        else:
            yield from super()._read_answer_start(source, turn)

    def _copy_reasoning(self, source: Source, turn: Turn, closers: tuple[str, ...]) -> ParseStep[str | None]:
        # A list in reasoning is a draft of a call, not a call.
        return (yield from source.copy_until(compile_markers(*closers), turn.add_reasoning))

    def _read_fenced_block(self, source: Source, turn: Turn, fence: str) -> ParseStep[None]:
        if not (yield from self.try_read_calls(source, turn, fence, turn.add_text)):
            yield from super()._read_fenced_block(source, turn, "")

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        fenced = opener.endswith(FENCE)
        if fenced:
            yield from source.accept(compile_markers("json"))
        if opener != _LINE_LIST:
            if not (yield from source.peek_marker(compile_markers("["))):
                return "no list follows"
            yield from source.skip_space()
            source.position += 1
        problem = yield from read_call_array(source, turn, self.keys)
        return (yield from self.read_remaining_calls(source, turn, problem)) if fenced else problem

    def render_call(self, *calls: ToolCall) -> str:
        return super().render_call(*calls).removeprefix(self.opens[0]).removesuffix(self.closes[0])

    def render_text(self, text: str) -> str:
        return text if text.endswith("\n") or not text else f"{text}\n"
