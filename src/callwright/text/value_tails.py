"""Tails of raw values: what follows a closing tag, and whether it continues the structure around the value."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

from callwright.input_limits import MAX_CLOSING_TAGS, MAX_SPACE_LENGTH
from callwright.text.source import ParseStep, Source

if TYPE_CHECKING:
    from callwright.text.raw_values import RawValueRule

__all__ = ["SPACE", "KeyFilter", "TailScanner", "ValueTail", "has_tag_end"]

KeyFilter = Callable[[str], bool]
SPACE = re.compile(rf"\s{{0,{MAX_SPACE_LENGTH}}}")
"""White space before a tag, as much as may be there."""

_KEY = re.compile(r"""\s*["']?([^<>"'=\s]+)["'<>\s]""")
_MAX_KEY_LENGTH = 256
_MAX_TAG_LENGTH = 64
_ELEMENT = re.compile(rf"<([A-Za-z_][\w.-]{{0,{_MAX_KEY_LENGTH}}})>")
_PARTIAL_ELEMENT = re.compile(rf"<(?:[A-Za-z_][\w.-]{{0,{_MAX_KEY_LENGTH}}})?\Z")
_NAME = re.compile(r"\s*[^][<>\s]*\s*")


class ValueTail(NamedTuple):
    """What follows a closing tag: more closing tags, by their level, and then something else."""

    levels: tuple[int, ...]
    """0 closes a value, 1 what encloses it, and so on; -1 closes nothing of this family."""
    exact: bool
    """Whether one of them closes what encloses the value, and is spelt right."""
    after: Literal["value", "call", "text", "line", "end"]
    """The next value or call, text on the same line or on the next, or the end of the text."""
    offset: int
    """Where that begins, from the position."""
    is_prose: bool = False
    """Whether the tags stand in a line of text, with spaces between them: no model writes real tags so."""
    has_inset: bool = False
    """Whether the first of them closes a value and stands on a new line."""
    starts: bool = False
    """Whether the next message begins, which no value's own end precedes by chance."""

    @property
    def reopens(self) -> bool:
        """Whether the value's own closing tag comes after one that closes more."""
        outside = next((at for at, level in enumerate(self.levels) if level > 0), len(self.levels))
        return 0 in self.levels[outside:]

    @property
    def closes_call(self) -> bool:
        return any(level > 0 for level in self.levels)


class TailScanner:
    """Looks ahead from the position of a value, without consuming anything."""

    def __init__(self, rule: RawValueRule, source: Source, expects: KeyFilter | None, offers: KeyFilter | None) -> None:
        self._rule = rule
        self._source = source
        self._expects = expects
        self._offers = offers

    def is_call_start(self, tag: str) -> ParseStep[bool]:
        """Whether a name, and then the inside of a call or its end, follows a tag that opens a call."""
        rule, source = self._rule, self._source
        header = _NAME if tag.endswith(rule.tag_end) else rule.header_pattern
        while True:
            start = source.position + len(tag)
            match = header.match(source.text, start)
            if match and not rule.inner_markers.is_prefix_at(source.text, match.end()):
                return rule.inner_markers.match_at(source.text, match.end()) >= 0
            if source.closed or len(source.text) - start > _MAX_KEY_LENGTH:
                return source.closed and (bool(match) or "<" not in source.text[start:])
            yield

    def scan(self, ahead: int) -> ParseStep[ValueTail]:
        """Scan the closing tags from `ahead` on, and what follows them."""
        rule, source = self._rule, self._source
        levels: list[int] = []
        exact = is_spaced = has_inset = False
        while True:
            if len(levels) == MAX_CLOSING_TAGS:
                return ValueTail(tuple(levels), exact, "text", ahead, has_inset=has_inset)
            offset = (yield from self._find_next_tag(ahead)) - source.position
            gap = source.text[source.position + ahead : source.position + offset]
            tag = self._match_structure(offset)
            is_spaced = is_spaced or bool(tag and gap and "\n" not in gap)
            has_inset = has_inset or (not levels and "\n" in gap and tag == rule.close_tag)
            if tag in rule.follow_tags or (tag in rule.closing_levels and tag in rule.call_tags):
                return ValueTail(tuple(levels), exact, "call", offset, has_inset=has_inset, starts=True)
            if tag in rule.closing_levels:
                level = rule.closing_levels[tag]
                levels.append(level)
                exact = exact or level > 0
                ahead = offset + len(tag)
                continue
            if tag:
                after: Literal["value", "call"] = "value" if tag in rule.value_tags else "call"
                return ValueTail(tuple(levels), exact, after, offset, has_inset=has_inset)
            if near := (yield from self._find_near_tag(offset)):
                levels.append(near[0])
                ahead = near[1]
                continue
            if rule.allows_other_elements and (size := (yield from self._find_element_end(offset))):
                ahead = size
                continue
            if source.position + offset >= len(source.text):
                return ValueTail(tuple(levels), exact, "end", offset, has_inset=has_inset)
            if rule.has_bare_names and (yield from self._is_bare_call(offset)):
                return ValueTail((*levels, 1), exact, "call", offset)
            on_line = "\n" in gap
            is_prose = is_spaced and not on_line
            return ValueTail(tuple(levels), exact, "line" if on_line else "text", offset, is_prose, has_inset)

    def _match_structure(self, offset: int) -> str:
        """Return the structural tag at this offset; empty if there is none."""
        source = self._source
        start = source.position + offset
        end = self._rule.structure_markers.match_at(source.text, start)
        return source.text[start:end] if end >= 0 else ""

    def _find_near_tag(self, offset: int) -> ParseStep[tuple[int, int] | None]:
        """Return level and end of the misspelt or foreign closing tag at this offset; None if there is none."""
        source, rule = self._source, self._rule
        at = source.position + offset
        lead = next((lead for lead in (rule.lead, rule.token_lead) if lead and source.text.startswith(lead, at)), "")
        if not lead:
            return None
        tag_end = rule.tag_end if lead == rule.lead else ">"
        while not source.closed and not has_tag_end(source.text, source.position + offset + len(lead), tag_end):
            yield
        find = rule.find_near_tag if lead == rule.lead else rule.find_near_token
        near = find(source, source.position + offset)
        return (near[0], near[1] - source.position) if near else None

    def _is_bare_call(self, ahead: int) -> ParseStep[bool]:
        """Whether the name of a tool that the request has stands here, and a value opens after it."""
        source, rule = self._source, self._rule
        while True:
            match = _NAME.match(source.text, source.position + ahead)
            end = match.end() if match else 0
            if end < len(source.text) and not rule.inner_markers.is_prefix_at(source.text, end):
                name = match.group().strip() if match else ""
                return bool(self._offers and self._offers(name)) and rule.inner_markers.match_at(source.text, end) >= 0
            if source.closed or len(source.text) - source.position - ahead > _MAX_KEY_LENGTH:
                return False
            yield

    def _find_element_end(self, ahead: int) -> ParseStep[int]:
        """Return the end of the element that opens at offset `ahead`, relative to the position; 0 if there is none."""
        source = self._source
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

    def _find_next_tag(self, ahead: int) -> ParseStep[int]:
        """Return the position of the next non-space text from `ahead` on, once it is clear which tag it is, if any."""
        source, rule = self._source, self._rule
        while True:
            at = SPACE.match(source.text, source.position + ahead).end()  # type: ignore[union-attr]  # it may be empty
            if source.closed or not rule.structure_markers.is_prefix_at(source.text, at):
                return at
            yield

    def has_expected_key(self, ahead: int, *, skip_tag: bool = False) -> ParseStep[bool]:
        """Whether the tag that opens here has an expected key."""
        source, rule = self._source, self._rule
        while True:
            start = source.position + ahead
            if skip_tag:
                start = max(rule.structure_markers.match_at(source.text, start), start)
            key = _KEY.match(source.text, start)
            if key:
                return self._expects is None or self._expects(key.group(1))
            if source.closed or len(source.text) - start > _MAX_KEY_LENGTH:
                return False
            yield


def has_tag_end(text: str, at: int, tag_end: str) -> bool:
    """Whether enough of a tag has arrived to know where it ends."""
    rest = text[at : at + _MAX_TAG_LENGTH]
    if len(rest) == _MAX_TAG_LENGTH or tag_end in rest or "\n" in rest:
        return True
    return "<" in rest and not tag_end.startswith(rest[rest.index("<") :])
