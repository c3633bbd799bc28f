"""The grammar of X2: a tool's name, then alternating keys and values, each between tags, values as raw text.

    <tool_call>get_weather
    <arg_key>city</arg_key>
    <arg_value>Oslo</arg_value>
    </tool_call>

`arg_pairs` provides the tags of each family. Hunyuan's tags also end in a suffix that differs by checkpoint
(`<tool_call:opensource>`); it is read from the opening tag. A JSON body is read as JSON: after the tag it is a complete
call, after the name it is the arguments.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import ClassVar

from callwright.arguments import ArgumentsWriter, read_object
from callwright.dialects.base import Dialect, format_raw_value, open_call, truncate_call
from callwright.dialects.tag_section import TagSection, get_key_filter, read_closing_tag, read_json_section
from callwright.model import ToolCall
from callwright.schema import ANY_SCHEMA, Schema
from callwright.text.raw_values import RawValueRule
from callwright.text.source import MarkerSet, ParseStep, Source, compile_markers
from callwright.turn import Turn

__all__ = ["ArgPairs", "SuffixedPairs"]

_NAME = re.compile(r"[^<>\s\\{]*")
_KEY = re.compile(r"[^<>]*")
_SUFFIX = re.compile(r"[\w-]*")
_TAG_SUFFIX = re.compile(r"<\w+(:[\w-]*)")
_MAX_NAME_LENGTH = 256
# GLM-4.5 sometimes writes a newline between tags as backslash and n.
_LITERAL_NEWLINE = "\\n"


@dataclass(frozen=True)
class _PairTags:
    """The tags of one checkpoint."""

    section: TagSection
    close: str
    separator: str
    key: tuple[str, str]
    kind: tuple[str, str]
    value: tuple[str, str]

    @cached_property
    def body_marks(self) -> MarkerSet:
        """Markers after a call's name and after each value; the section's end counts if that of the call is missing."""
        return compile_markers(self.key[0], self.close, self.section.close)

    @cached_property
    def value_rule(self) -> RawValueRule:
        around = (self.close, _LITERAL_NEWLINE + self.close, self.section.close)
        call_tags = (self.section.open, self.section.call_opener, self.separator)
        return RawValueRule(
            self.value[1],
            around,
            (self.key[0], _LITERAL_NEWLINE + self.key[0]),
            is_inline=True,
            call_tags=call_tags,
            has_bare_names=True,
        )


@lru_cache(maxsize=256)
def _build_tags(call: str, section: str, prefix: str, suffix: str) -> _PairTags:
    def pair(word: str) -> tuple[str, str]:
        return f"<{word}{suffix}>", f"</{word}{suffix}>"

    begin, end = pair(call)
    opens, closes = pair(section or call)
    key, kind, value = (pair(f"{prefix}arg_{word}") for word in ("key", "type", "value"))
    return _PairTags(TagSection(opens, begin, closes), end, f"<tool_sep{suffix}>", key, kind, value)


@dataclass(frozen=True, kw_only=True)
class ArgPairs(Dialect):
    """A family that writes arguments as pairs of a key and a value."""

    raw_values: ClassVar[bool] = True
    quotable: bool = True
    call_tag: str = "tool_call"
    """The tag around a call."""
    section_tag: str = ""
    """The tag around all calls of a turn, if the family has one."""
    prefix: str = ""
    """The prefix of the tag names for keys and values."""
    suffix: str = ""
    """The suffix of every tag, in the checkpoint that `render_call` writes for."""
    has_separator: bool = False
    """Whether `<tool_sep>` follows the name."""
    inset: str = "\n"
    """The text after the name and after each tag inside a call."""
    call_separator: str = "\n"
    """The text between calls, and between calls and the section's tags."""

    @cached_property
    def _own_tags(self) -> _PairTags:
        return _build_tags(self.call_tag, self.section_tag, self.prefix, self.suffix)

    @property
    def openers(self) -> tuple[str, ...]:
        return tuple(f"<{word}>" for word in (self.section_tag, self.call_tag) if word)

    @property
    def markers(self) -> tuple[str, ...]:
        tags = self._own_tags
        section = (tags.section.open, tags.section.close) if self.section_tag else ()
        separator = (tags.separator,) if self.has_separator else ()
        return (*section, tags.section.call_opener, tags.close, *separator, *tags.key, *tags.value)

    # ── reading ────────────────────────────────────────────────────────────────────────────────

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        return (yield from self._read_after_tag(source, turn, opener[1:-1], ""))

    def _read_after_tag(self, source: Source, turn: Turn, word: str, suffix: str) -> ParseStep[str]:
        """Read the text after the tag of this name."""
        tags = _build_tags(self.call_tag, self.section_tag, self.prefix, suffix)
        if not self.section_tag:
            return (yield from self._read_call(source, turn, tags))
        is_opened = word == self.section_tag
        if is_opened:
            if (yield from source.skip_space()) in ("{", "["):
                return (yield from read_json_section(source, turn, tags.section.close))
            if not (yield from source.accept(compile_markers(tags.section.call_opener))):
                return f"no {tags.section.call_opener} follows"
        return (
            yield from tags.section.read_section(
                source, turn, lambda: self._read_call(source, turn, tags), is_opened=is_opened
            )
        )

    def _read_call(self, source: Source, turn: Turn, tags: _PairTags) -> ParseStep[str]:
        if (yield from source.skip_space()) in ("{", "["):
            return (yield from read_json_section(source, turn, tags.close))
        name = yield from source.take_while(_NAME, _MAX_NAME_LENGTH)
        literal = yield from _skip_gap(source)
        if (yield from source.accept(compile_markers(tags.separator))):
            yield from source.skip_space()
        tag = yield from source.accept(tags.body_marks)
        if not tag and (yield from source.peek()) != "{":
            return "no argument follows the name"
        if not turn.can_call(name):
            return f"unknown tool {name!r}"
        arguments = open_call(source, turn, name)
        if literal:
            _note_literal(arguments)
        if not tag:
            return (yield from self._read_object(source, turn, arguments, tags))
        while tag == tags.key[0] and (yield from self._read_pair(source, arguments, tags)):
            if (yield from _skip_gap(source)):
                _note_literal(arguments)
            tag = yield from tags.value_rule.accept_tag(source, tags.body_marks, arguments.call.add_repair)
        if tag == tags.section.close != tags.close:
            arguments.call.add_repair("missing_close", f"{tags.close} was missing after a call")
            source.position -= len(tag)
        if not tag and (yield from source.skip_space()):
            arguments.end_early(source, tags.close)
            return (yield from self._read_next_call(source, turn, tags))
        if tag not in (tags.close, tags.section.close):
            return (yield from truncate_call(source, turn, arguments))
        arguments.close()
        return ""

    def _read_next_call(self, source: Source, turn: Turn, tags: _PairTags) -> ParseStep[str]:
        """Read another call in the same tags, if the name of one of the tools follows."""
        names = compile_markers(*(f"{name}{end}" for name in turn.tools.names for end in ("\n", tags.key[0], " ", "<")))
        if len(turn.tools) and (yield from source.peek_marker(names)):
            source.start_capture()
            problem = yield from self._read_call(source, turn, tags)
            if problem:
                turn.add_text(source.end_capture())
        return ""

    def _read_object(self, source: Source, turn: Turn, arguments: ArgumentsWriter, tags: _PairTags) -> ParseStep[str]:
        """Read arguments that are one JSON object after the name."""
        if not (yield from read_object(source, arguments)):
            return (yield from truncate_call(source, turn, arguments))
        yield from read_closing_tag(source, turn, tags.close)
        return ""

    def _read_pair(self, source: Source, arguments: ArgumentsWriter, tags: _PairTags) -> ParseStep[bool]:
        """Read a key, whose tag is consumed, and its value. Return False if the text ended or the tags are broken."""
        source.start_capture()
        key = (yield from source.take_while(_KEY, _MAX_NAME_LENGTH)).strip()
        if not (yield from source.accept(compile_markers(tags.key[1]))):
            return False
        if (yield from _skip_gap(source)):
            _note_literal(arguments)
        kind = yield from _read_value_type(source, arguments, tags)
        if not (yield from source.accept(compile_markers(tags.value[0]))):
            return False
        source.drop_capture()
        parameter = arguments.start_parameter(key, kind)
        closed = yield from tags.value_rule.copy_value(
            source, parameter.write, get_key_filter(arguments), arguments.call.has_tool
        )
        if closed is None:
            return False
        parameter.end()
        if closed != tags.value[1]:
            arguments.call.add_repair("missing_close", f"{tags.value[1]} was missing after a value")
        return True

    # ── rendering ──────────────────────────────────────────────────────────────────────────────

    def render_call(self, *calls: ToolCall) -> str:
        tags = self._own_tags
        body = self.call_separator.join(self._render_one_call(call, tags) for call in calls)
        if not self.section_tag:
            return body
        return f"{tags.section.open}{self.call_separator}{body}{self.call_separator}{tags.section.close}"

    def _render_one_call(self, call: ToolCall, tags: _PairTags) -> str:
        members = "".join(
            f"{tags.key[0]}{key}{tags.key[1]}{self.inset}{tags.value[0]}{format_raw_value(value)}{tags.value[1]}{self.inset}"
            for key, value in json.loads(call.arguments).items()
        )
        separator = tags.separator if self.has_separator else ""
        return f"{tags.section.call_opener}{call.name}{separator}{self.inset}{members}{tags.close}"


@dataclass(frozen=True, kw_only=True)
class SuffixedPairs(ArgPairs):
    """A family whose tags end in a suffix that is known only after the first tag is read."""

    @property
    def openers(self) -> tuple[str, ...]:
        return tuple(f"{opener[:-1]}{end}" for opener in super().openers for end in ">:")

    @cached_property
    def _reasoning_closers(self) -> dict[str, str]:
        return {**super()._reasoning_closers, "<think:": "</think:"}

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        suffix = ""
        if opener.endswith(":"):
            suffix = ":" + (yield from source.take_while(_SUFFIX, _MAX_NAME_LENGTH))
            if not (yield from source.accept(compile_markers(">"))):
                return "the tag is not closed"
        return (yield from self._read_after_tag(source, turn, opener[1:-1], suffix))

    def is_truncated_call(self, turn: Turn, opener: str, raw: str) -> bool:
        suffix = _TAG_SUFFIX.match(raw)
        return ArgPairs.is_truncated_call(replace(self, suffix=suffix.group(1) if suffix else ""), turn, opener, raw)

    def _read_reasoning(self, source: Source, turn: Turn, close: str) -> ParseStep[None]:
        if close.endswith(":"):
            suffix = yield from source.take_while(_SUFFIX, _MAX_NAME_LENGTH)
            if not (yield from source.accept(compile_markers(">"))):
                turn.add_text(f"<think:{suffix}")
                return
            close += f"{suffix}>"
            turn.add_repair("variant_marker", f"<think:{suffix}> was written instead of {self.reasoning_tags[0].open}")
        yield from super()._read_reasoning(source, turn, close)


def _skip_gap(source: Source) -> ParseStep[bool]:
    """Skip the text between two tags. Return whether a newline was written as backslash and n."""
    literal = False
    while (yield from source.skip_space()) == "\\" and (yield from source.accept(compile_markers(_LITERAL_NEWLINE))):
        literal = True
    return literal


def _note_literal(arguments: ArgumentsWriter) -> None:
    arguments.call.add_repair("literal_newline", "a newline between tags was written as backslash and n")


def _read_value_type(source: Source, arguments: ArgumentsWriter, tags: _PairTags) -> ParseStep[Schema]:
    """Read the type that the model itself writes before a value, if it does."""
    if not (yield from source.accept(compile_markers(tags.kind[0]))):
        return ANY_SCHEMA
    kind = yield from source.take_while(_KEY, _MAX_NAME_LENGTH)
    yield from source.accept(compile_markers(tags.kind[1]))
    yield from source.skip_space()
    # K2 Horizon's template prints the item type of an array in brackets: array[string].
    schemas = [Schema({"type": word}) for word in kind.strip().rstrip("]").split("[")]
    if not all(schema.types for schema in schemas):
        arguments.call.add_repair("unknown_type", kind)
    return schemas[0]
