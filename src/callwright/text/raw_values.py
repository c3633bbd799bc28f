"""Raw values between tags: they have no escaping, so only the position of a closing tag tells it from data.

A closing tag counts if the tags after it continue the structure in order: the next value opens, or the enclosing tags
close from the inside out, or the text ends. A tag that a value quotes is followed by other text, or by tags that close
something already closed.

A value may quote a complete call. From the opening tag of that call on, tags are paired, and those that close the
quoted call are data. A value that quotes only the beginning of a call would take the real closing tags for those of
the quoted call. Where they are followed by what may follow the real ones, the value is held back from there; if only
complete calls and no other end follow, the value ended there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from callwright.text.source import MarkerSet, ParseStep, Source, TextSink, compile_markers, ignore

__all__ = ["RawValueRule"]

_KEY = re.compile(r"""\s*["']?([^<>"'=\s]+)["'<>\s]""")
_MAX_KEY_LENGTH = 256
_ELEMENT = re.compile(rf"<([A-Za-z_][\w.-]{{0,{_MAX_KEY_LENGTH}}})>")
_PARTIAL_ELEMENT = re.compile(rf"<(?:[A-Za-z_][\w.-]{{0,{_MAX_KEY_LENGTH}}})?\Z")
_NAME = re.compile(r"\s*[^][<>\s]*\s*")


@dataclass(frozen=True)
class RawValueRule:
    """How a raw value ends.

    `close_tag` ends it, framed by `inset` (a newline in some families). `enclosing_tags` close what encloses it, from
    the inside out. `value_tags` open the next value; in an `is_inline` family they need no line of their own to end a
    value whose closing tag is missing. `call_tags` open a call; `call_closers` end one, if that is not the innermost of
    `enclosing_tags`. `own_value_tags` are those of `value_tags` whose values end like this one, if not all do.
    `loose_close_tag` is the closing tag without its prefix, for models that forget it. `tag_end` ends an opening tag
    with attributes. With `allows_other_elements`, complete elements of any name may stand between the value and the
    next tag. An `is_guarded` value has a mark of its own inside its tags, like CDATA: until that mark ends, text after
    the call is still part of the value.
    """

    close_tag: str
    enclosing_tags: tuple[str, ...] = ()
    value_tags: tuple[str, ...] = ()
    inset: str = ""
    is_inline: bool = False
    call_tags: tuple[str, ...] = ()
    call_closers: tuple[str, ...] = ()
    own_value_tags: tuple[str, ...] = ()
    loose_close_tag: str = ""
    tag_end: str = ">"
    allows_other_elements: bool = False
    is_guarded: bool = False

    def copy_value(
        self, source: Source, emit: TextSink, expects: Callable[[str], bool] | None = None
    ) -> ParseStep[str | None]:
        """Emit the value and return the tag that ended it, or None if the text ended first.

        The value's own closing tag is consumed. If it is missing, an enclosing tag on a line of its own ends the value,
        or the opening of a next value whose key `expects` accepts; these tags are not consumed.
        """
        quoted = _QuotedCalls(self)
        write = emit
        while True:
            text, position = source.text, source.position
            start, end = self._end_markers.find_first(text, position, source.closed)
            if start > position:
                write(text[position:start])
                source.position = start
            if end > start:
                tag = text[start:end]
                role = yield from self._classify_tag(source, tag, quoted, expects)
                if role == "end":
                    emit(source.end_capture() if quoted.doubtful_tag else "")
                    return self._end_value(source, tag)
                if role == "doubt":
                    source.start_capture()
                    quoted.doubtful_tag, write = tag, ignore
                # The real end may follow the newline of what looked like an implied end.
                size = 1 if role == "words" and tag[0] == "\n" else len(tag)
                write(tag[:size])
                source.position += size
            elif not source.closed:
                yield
            elif quoted.doubtful_tag and not quoted.open_calls and not self._end_markers.has_partial_end(text):
                source.rewind()
                return self._end_value(source, quoted.doubtful_tag)
            else:
                emit(source.end_capture() if quoted.doubtful_tag else "")
                return None

    def _classify_tag(
        self, source: Source, tag: str, quoted: _QuotedCalls, expects: Callable[[str], bool] | None
    ) -> ParseStep[Literal["end", "doubt", "tag", "words"]]:
        """Classify the tag at the position: the end of the value, a possible end, a quoted tag, or plain words."""
        bare = tag.lstrip("\n")
        if source.is_literal(bare, source.position + len(tag) - len(bare)):
            return "words"
        if bare in self.call_tags:
            quoted.open_calls += yield from self._is_call_start(source, tag)
            return "tag"
        if quoted.open_calls and tag[0] == "\n" and not self._is_closing_tag(tag):
            return "words"
        if quoted.track_tag(tag):
            return "tag"
        if not (quoted.open_values and self._is_closing_tag(tag)):
            return (
                "end"
                if (yield from self._is_structural(source, tag, expects))
                else "tag"
                if self._is_closing_tag(tag)
                else "words"
            )
        quoted.open_values -= 1
        if quoted.doubtful_tag or not (
            yield from self._has_valid_continuation(source, len(tag), 0, expects, sure=False)
        ):
            return "tag"
        return "end" if source.is_rewound or source.is_capturing else "doubt"

    def _end_value(self, source: Source, tag: str) -> str:
        if self._is_closing_tag(tag):
            source.position += len(tag)
        return tag

    @cached_property
    def _end_markers(self) -> MarkerSet:
        implied = (f"\n{tag}" for tag in (*self.enclosing_tags[:1], *self.value_tags))
        opens = self.value_tags if self.is_inline or self.call_tags else ()
        own = (self.close_tag, self.inset + self.close_tag, self.loose_close_tag or self.close_tag)
        quoted = (*self.call_tags, *self.own_value_tags, *self.call_end_tags) if self.call_tags else ()
        return compile_markers(*own, *implied, *opens, *quoted)

    @property
    def call_end_tags(self) -> tuple[str, ...]:
        """The tags that end a call."""
        return self.call_closers or self.enclosing_tags[self.is_guarded :][:1]

    def _is_call_start(self, source: Source, tag: str) -> ParseStep[bool]:
        """Whether a name, and then the inside of a call or its end, follows a tag that opens a call."""
        header = _NAME if tag.endswith(self.tag_end) else self._header_pattern
        while True:
            start = source.position + len(tag)
            match = header.match(source.text, start)
            if match and not self._inner_markers.is_prefix_at(source.text, match.end()):
                return self._inner_markers.match_at(source.text, match.end()) >= 0
            if source.closed or len(source.text) - start > _MAX_KEY_LENGTH:
                return source.closed and (bool(match) or "<" not in source.text[start:])
            yield

    @cached_property
    def _header_pattern(self) -> re.Pattern[str]:
        return re.compile(rf"[^<>]*{re.escape(self.tag_end)}\s*")

    @cached_property
    def _inner_markers(self) -> MarkerSet:
        return compile_markers(*self.value_tags, *self.own_value_tags, *self.call_end_tags)

    def _is_closing_tag(self, tag: str) -> bool:
        return tag.endswith(self.close_tag) or tag == self.loose_close_tag

    @cached_property
    def _closing_levels(self) -> dict[str, int]:
        return {tag: level for level, tag in reversed(tuple(enumerate((self.close_tag, *self.enclosing_tags))))}

    @cached_property
    def _structure_markers(self) -> MarkerSet:
        return compile_markers(*self._closing_levels, *self.value_tags, *self.call_tags)

    def _is_structural(self, source: Source, tag: str, expects: Callable[[str], bool] | None) -> ParseStep[bool]:
        """Whether the tag at the position is structure rather than data."""
        if self._is_closing_tag(tag):
            return (yield from self._has_valid_continuation(source, len(tag), 0, None))
        if tag.lstrip("\n") in self.value_tags:
            apart = self.is_inline or tag[0] == "\n"
            return apart and expects is not None and (yield from self._has_expected_key(source, len(tag), expects))
        if tag[0] != "\n":
            return False
        if self.call_tags:
            # The call closes without its value, and the next call of the same block begins.
            at = yield from self._find_next_tag(source, len(tag))
            if compile_markers(*self.call_tags).match_at(source.text, at) >= 0:
                return True
        return (yield from self._has_valid_continuation(source, len(tag), 1, None, sure=not self.is_guarded))

    def _has_valid_continuation(
        self, source: Source, ahead: int, level: int, expects: Callable[[str], bool] | None, *, sure: bool = True
    ) -> ParseStep[bool]:
        """Whether the tags from `ahead` on continue the structure outward from `level`; text may follow only if
        `sure`."""
        outermost = len(self.enclosing_tags)
        first = True
        before = ""
        while True:
            at = yield from self._find_next_tag(source, ahead)
            end = self._structure_markers.match_at(source.text, at)
            tag = source.text[at:end] if end >= 0 else ""
            ahead = end - source.position
            if tag in self.value_tags:
                return expects is None or (yield from self._has_expected_key(source, ahead, expects))
            if (
                not tag
                and self.allows_other_elements
                and (size := (yield from self._find_element_end(source, at - source.position)))
            ):
                ahead = size
                continue
            if tag not in self._closing_levels:
                # Another call, text, or the end: valid after the outermost tag, or where nothing follows at all.
                if at == len(source.text):
                    return True
                has_begun = bool(tag) or before in self.call_tags
                return (not first or level == outermost) and (has_begun or sure)
            if self._closing_levels[tag] <= level:
                return False
            level = self._closing_levels[tag]
            before = tag
            first = False

    def _find_element_end(self, source: Source, ahead: int) -> ParseStep[int]:
        """Return the end of the element that opens at offset `ahead`, relative to the position; 0 if there is none."""
        searched = 0
        while True:
            start = source.position + ahead
            opening = _ELEMENT.match(source.text, start)
            if opening:
                close = f"</{opening.group(1)}>"
                end = source.text.find(close, max(start + searched, opening.end()))
                if end >= 0:
                    return end + len(close) - source.position
                searched = max(len(source.text) - start - len(close), 0)
            if source.closed or (not opening and not _PARTIAL_ELEMENT.match(source.text, start)):
                return 0
            yield

    def _find_next_tag(self, source: Source, ahead: int) -> ParseStep[int]:
        """Return the position of the next non-space text from `ahead` on, once it is clear which tag it is, if any."""
        while True:
            at = source.position + ahead
            while at < len(source.text) and source.text[at].isspace():
                at += 1
            if source.closed or not self._structure_markers.is_prefix_at(source.text, at):
                return at
            yield

    def _has_expected_key(self, source: Source, ahead: int, expects: Callable[[str], bool]) -> ParseStep[bool]:
        """Whether the tag that opens here has an expected key."""
        while True:
            key = _KEY.match(source.text, source.position + ahead)
            if key:
                return expects(key.group(1))
            if source.closed or len(source.text) - source.position - ahead > _MAX_KEY_LENGTH:
                return False
            yield


class _QuotedCalls:
    """The calls that a value quotes: how many calls, and values inside them, are open at the current position."""

    __slots__ = ("_rule", "doubtful_tag", "open_calls", "open_values")

    def __init__(self, rule: RawValueRule) -> None:
        self._rule = rule
        self.open_calls = 0
        self.open_values = 0
        self.doubtful_tag = ""
        """The tag where the value ended, if it quotes only half a call."""

    def track_tag(self, tag: str) -> bool:
        """Update the state for a tag. Whether it belongs to a quoted call, other than as the end of a value."""
        rule = self._rule
        if not self.open_calls or not (
            tag in rule.value_tags or tag in rule.own_value_tags or tag in rule.call_end_tags
        ):
            return False
        if tag in rule.call_end_tags:
            self.open_calls -= 1
        elif tag in (rule.own_value_tags or rule.value_tags):
            self.open_values += 1
        self.open_values = min(self.open_values, self.open_calls)
        return True
