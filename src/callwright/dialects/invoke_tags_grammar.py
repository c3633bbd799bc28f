"""The grammar of X3: a tag that names the tool, in it a tag for each parameter, values as raw text.

    <invoke name="get_weather">
    <parameter name="city">Oslo</parameter>
    </invoke>

`invoke_tags` and `xtml` provide the tags of each family. A family whose tags have several spellings in practice is read
in all of them, and written in the first.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from callwright.arguments import ArgumentsWriter, read_object
from callwright.dialects.base import Dialect, format_raw_value, open_call, truncate_call
from callwright.dialects.call_object import read_json_calls as read_json_calls
from callwright.dialects.tag_parts import (
    SPACE_GLYPHS,
    TagHeader,
    make_glyph_decoder,
    open_parameter,
    read_element_argument,
    read_tag_header,
    take_tag_text,
)
from callwright.model import ToolCall
from callwright.text.raw_values import RawValueRule
from callwright.text.source import MarkerSet, ParseStep, Source, TextSink, compile_markers, ignore
from callwright.turn import Turn

__all__ = ["InvokeTags", "TagPair", "TagSpelling"]

TagPair = tuple[str, str]

_CDATA = "<![CDATA["
_CDATA_END = "]]>"


@dataclass(frozen=True)
class TagSpelling:
    """One spelling of a family's tags: the beginning of each opening tag, and the closing tag."""

    call: TagPair
    value: TagPair


@dataclass(frozen=True, kw_only=True)
class InvokeTags(Dialect):
    """A family of invoke tags. Where data has several spellings, the first one is written."""

    raw_values: ClassVar[bool] = True
    name_attribute: ClassVar[str] = "name"
    key_attribute: ClassVar[str] = "name"
    tag_end: ClassVar[str] = ">"
    shape: str = "X3"
    spellings: tuple[TagSpelling, ...]
    sections: tuple[TagPair, ...] = ()
    """The tags around all calls of a turn; empty where calls stand alone."""
    call_wrapper: TagPair = ("", "")
    """The tags around each call inside a section."""
    ignored_between: tuple[str, ...] = ()
    """Other tags that may stand between calls and are ignored."""
    ignored_inside: tuple[str, ...] = ()
    """Tags that may stand between parameters and are ignored."""
    layout: str = "\n"
    """The text after each tag."""
    empty_body: str = ""
    """The text of a call without arguments."""
    has_string_attribute: bool = False
    """Whether each parameter says by `string="true"` or `"false"` whether its value is text or JSON."""
    uses_cdata: bool = False
    """Whether text with `<`, `&` or newlines stands in CDATA; other values are then written like Python prints them."""

    # ── the tags ───────────────────────────────────────────────────────────────────────────────

    @property
    def openers(self) -> tuple[str, ...]:
        return (*(opening for opening, _ in self.sections), *self._call_tags)

    @property
    def body_starts(self) -> tuple[str, ...]:
        # A section tag is followed by a call, the opening of a call by its name.
        return (*self._call_tags, *self._between_tags, "{", "[", f"{self.name_attribute}=", self.tag_end)

    @property
    def markers(self) -> tuple[str, ...]:
        pairs = [*self.sections, *(spelling.call for spelling in self.spellings)]
        pairs += [spelling.value for spelling in reversed(self.spellings)]
        inside = (marker for marker in self.ignored_inside if marker not in SPACE_GLYPHS)
        return (*self._between_tags, *inside, *(tag for pair in pairs for tag in pair))

    @cached_property
    def _call_tags(self) -> dict[str, str]:
        return dict(spelling.call for spelling in self.spellings)

    @cached_property
    def _call_end_marks(self) -> MarkerSet:
        return compile_markers(*self._call_tags.values())

    @cached_property
    def _section_ends(self) -> tuple[str, ...]:
        return tuple(closing for _, closing in self.sections)

    @cached_property
    def _section_marks(self) -> MarkerSet:
        section_tags = (opening for opening, _ in self.sections)
        return compile_markers(*self._call_tags, *self._between_tags, *section_tags, *self._section_ends, "{", "[")

    @cached_property
    def _call_marks(self) -> MarkerSet:
        values = (spelling.value[0] for spelling in self.spellings)
        return compile_markers(*values, *self._call_tags.values(), *self._section_ends, *self.ignored_inside, "{")

    @cached_property
    def _between_tags(self) -> tuple[str, ...]:
        return (*filter(None, self.call_wrapper), *self.ignored_between)

    @cached_property
    def _value_rules(self) -> dict[str, RawValueRule]:
        """How a value ends, by the opening tag of its parameter."""
        # The outermost one ends a call that a value quotes; use the one that the family writes.
        outside = (*filter(None, self.call_wrapper[1:]), *reversed(self._section_ends))
        value_tags = [tag for spelling in self.spellings for tag in self._list_value_starts(spelling)]
        return {
            spelling.value[0]: RawValueRule(
                spelling.value[1],
                (spelling.call[1], *self._call_tags.values(), *outside),
                (*value_tags, *self.ignored_inside),
                call_tags=(
                    *(opening for opening, _ in self.sections),
                    *self._call_tags,
                    *filter(None, self.call_wrapper[:1]),
                    *self.ignored_between,
                ),
                own_value_tags=tuple(value_tags),
                tag_end=self.tag_end,
            )
            for spelling in self.spellings
        }

    def _list_value_starts(self, spelling: TagSpelling) -> TagPair:
        return f"{spelling.value[0]} {self.key_attribute}=", spelling.value[0]

    # ── reading ────────────────────────────────────────────────────────────────────────────────

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        if opener not in self._call_tags:
            return (yield from self._read_section(source, turn))
        problem = yield from self._read_call(source, turn)
        if not problem and self.sections:
            turn.add_repair("missing_open", f"{self.sections[0][0]} was missing before a call")
            while (yield from source.accept_next(compile_markers(*self._section_ends, *self._between_tags))):
                pass
        return problem

    def _read_section(self, source: Source, turn: Turn) -> ParseStep[str]:
        has_calls = False
        while tag := (yield from source.accept_next(self._section_marks)):
            if tag in self._section_ends:
                return "" if has_calls else "there is no call between the tags"
            if tag in self._call_tags or tag in "{[":
                if has_calls:
                    source.start_capture()
                problem = yield from self._read_call_or_json(source, turn, tag)
                if problem and not has_calls:
                    return problem
                if problem:
                    yield from self._report_malformed(source, turn, tag + source.end_capture(), problem)
                has_calls = True
        if not has_calls:
            return "no call follows"
        if not turn.is_truncated:
            turn.add_repair("missing_close", f"{self.sections[0][1]} was missing after a call")
        return ""

    def _read_call_or_json(self, source: Source, turn: Turn, tag: str) -> ParseStep[str]:
        """Read the call that a tag opened, or calls that are written as JSON there."""
        if tag in self._call_tags:
            return (yield from self._read_call(source, turn))
        source.position -= 1
        problem = yield from read_json_calls(source, turn)
        if not problem:
            turn.add_repair("json_body", "a call was written as JSON")
        return problem

    def _report_malformed(self, source: Source, turn: Turn, raw: str, reason: str) -> ParseStep[None]:
        """Report the rest of a broken call as malformed: up to its end, or to where something else begins."""
        source.start_capture()
        stop = yield from source.copy_until(
            compile_markers(*self._call_end_marks.markers, *self._call_tags, *self._section_ends), ignore
        )
        if stop and stop not in self._call_end_marks.markers:
            source.position -= len(stop)
        raw += source.end_capture()
        if raw.strip():
            turn.add_malformed(raw, reason)

    def _truncate_call(self, source: Source, turn: Turn, arguments: ArgumentsWriter) -> ParseStep[None]:
        """End a call that is incomplete, and report the rest of it as malformed unless the text ended there."""
        if not (yield from source.peek()):
            yield from truncate_call(source, turn, arguments)
            return
        raw = source.end_capture()
        arguments.call.end_truncated()
        yield from self._report_malformed(source, turn, raw, "the call is incomplete")

    def _read_call(self, source: Source, turn: Turn) -> ParseStep[str]:
        """Read the call whose opening tag has started. It counts if its name is known and its body begins."""
        header = yield from self._read_header(source)
        if header is None:
            return "the tag of the call is not closed"
        if not header.attributes:
            return (yield from self._read_elements(source, turn))
        name = header.attributes.get(self.name_attribute, "").strip()
        if not turn.can_call(name):
            return f"unknown tool {name!r}"
        if header.is_empty:
            open_call(source, turn, name).close_empty()
            return ""
        if not (yield from source.peek_marker(self._call_marks)) and (yield from source.skip_space()):
            return "no parameter follows"
        arguments = open_call(source, turn, name)
        self._note_header(arguments, header)
        if not (yield from self._read_body(source, turn, arguments)):
            yield from self._truncate_call(source, turn, arguments)
        return ""

    def _read_header(self, source: Source) -> ParseStep[TagHeader | None]:
        return (yield from read_tag_header(source, self.tag_end))

    def _note_header(self, arguments: ArgumentsWriter, header: TagHeader) -> None:
        if header.is_damaged:
            arguments.call.add_repair("damaged_tag", "white space was missing inside a tag")
        if unknown := header.format_unknown_attributes(self.name_attribute, self.key_attribute):
            arguments.call.add_repair("dropped_attribute", unknown)

    def _read_body(self, source: Source, turn: Turn, arguments: ArgumentsWriter) -> ParseStep[bool]:
        """Read a call's parameters and its closing tag; return False if that is missing."""
        rule = self._value_rules[self.spellings[0].value[0]]
        note = arguments.call.add_repair
        while tag := (yield from rule.accept_tag(source, self._call_marks, note)):
            if tag in self._section_ends:
                arguments.call.add_repair("missing_close", f"{self.spellings[0].call[1]} was missing after a call")
                source.position -= len(tag)
            if tag in self._call_end_marks.markers or tag in self._section_ends:
                arguments.close()
                return True
            if tag == "{":
                return (yield from self._read_json_arguments(source, turn, arguments))
            if tag in self._value_rules and not (yield from self._read_parameter(source, arguments, tag)):
                return False
        if (yield from source.skip_space()):
            arguments.end_early(source, self.spellings[0].call[1])
            return True
        return False

    def _read_json_arguments(self, source: Source, turn: Turn, arguments: ArgumentsWriter) -> ParseStep[bool]:
        """Read the arguments as a JSON object in place of parameters."""
        source.position -= 1
        arguments.call.add_repair("json_body", "the arguments were written as JSON")
        if not (yield from read_object(source, arguments)):
            return False
        while (tag := (yield from source.accept_next(self._call_marks))) in self.ignored_inside:
            pass
        if tag not in self._call_end_marks.markers:
            source.position -= len(tag)
            turn.add_repair("missing_close", f"{self.spellings[0].call[1]} was missing after a call")
        return True

    def _read_parameter(self, source: Source, arguments: ArgumentsWriter, tag: str) -> ParseStep[bool]:
        source.start_capture()
        header = yield from self._read_header(source)
        key = header.attributes.get(self.key_attribute) if header else None
        if not header or not key:
            return False
        source.drop_capture()
        value, goal = self._value_rules[tag], open_parameter(arguments, key, header.attributes)
        write: TextSink = make_glyph_decoder(goal.write) if header.is_damaged else goal.write
        self._note_header(arguments, header)
        wrapped = self.uses_cdata and (yield from source.accept_next(compile_markers(_CDATA)))
        if wrapped:
            around = (value.close_tag, *value.enclosing_tags)
            value = RawValueRule(
                _CDATA_END,
                around,
                value.value_tags,
                call_tags=value.call_tags,
                own_value_tags=(_CDATA,),
                is_guarded=True,
            )
        closed = yield from value.copy_value(source, write, arguments.is_missing, arguments.call.has_tool)
        if closed is None:
            return False
        goal.end()
        if closed != value.close_tag:
            arguments.call.add_repair("missing_close", f"{value.close_tag} was missing after a value")
        if wrapped:
            yield from source.accept_next(compile_markers(value.enclosing_tags[0]))
        return True

    def _read_elements(self, source: Source, turn: Turn) -> ParseStep[str]:
        """Read Claude 2's form: `<invoke><tool_name>N</tool_name><parameters><K>V</K></parameters></invoke>`."""
        if not (yield from source.accept_next(compile_markers("<tool_name>", "<toolname>"))):
            return "the call has no name"
        name = yield from take_tag_text(source)
        if not (yield from source.accept(compile_markers("</tool_name>", "</toolname>"))) or not turn.can_call(name):
            return f"unknown tool {name!r}"
        arguments = open_call(source, turn, name)
        while True:
            tag = yield from source.accept_next(
                compile_markers("<parameters>", "</parameters>", *self._call_end_marks.markers)
            )
            if tag in self._call_end_marks.markers:
                arguments.close()
                return ""
            if not tag and not (yield from read_element_argument(source, arguments)):
                yield from self._truncate_call(source, turn, arguments)
                return ""

    def is_truncated_call(self, turn: Turn, opener: str, raw: str) -> bool:
        sections = tuple(section for section in self.sections if section[0] == opener)
        spelled = (replace(self, spellings=(spelling,), sections=sections) for spelling in self.spellings)
        return any(Dialect.is_truncated_call(variant, turn, opener, raw) for variant in spelled)

    # ── rendering ──────────────────────────────────────────────────────────────────────────────

    def render_call(self, *calls: ToolCall) -> str:
        bodies = [
            f"{self.call_wrapper[0]}{self._render_one_call(call, at)}{self.call_wrapper[1]}"
            for at, call in enumerate(calls)
        ]
        if not self.sections:
            return "\n".join(bodies)
        opening, closing = self.sections[0]
        return opening + self.layout + "".join(body + self.layout for body in bodies) + closing

    def _render_one_call(self, call: ToolCall, index: int) -> str:
        spelling, arguments = self.spellings[0], json.loads(call.arguments).items()
        members = "".join(
            f"{self._format_value_tag(key, value)}{self._format_value(value)}{spelling.value[1]}{self.layout}"
            for key, value in arguments
        )
        return f"{self._format_call_tag(call, index)}{self.layout}{members or self.empty_body}{spelling.call[1]}"

    def _format_call_tag(self, call: ToolCall, index: int) -> str:
        return f'{self.spellings[0].call[0]} name="{call.name}">'

    def _format_value_tag(self, key: str, value: Any) -> str:
        kind = f' string="{"true" if isinstance(value, str) else "false"}"' if self.has_string_attribute else ""
        return f'{self.spellings[0].value[0]} name="{key}"{kind}>'

    def _format_value(self, value: Any) -> str:
        if not self.uses_cdata:
            return format_raw_value(value)
        text = str(value)
        return f"{_CDATA}{text}{_CDATA_END}" if isinstance(value, str) and set(text) & set("<&\n") else text
