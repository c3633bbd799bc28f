"""Raw values between tags: they have no escaping, so what follows a closing tag tells it from data.

A closing tag ends a value for certain if the next value opens after it, or what encloses the value closes after it:
in order, but perhaps with tags that are missing, doubled or misspelt. A closing tag before other text on the same line
is data.

In between there is doubt: a closing tag at the end of a line, with nothing but text after it; or a line that opens
another call. The value is then held back, and what follows decides. If a certain end follows, all that was held back
is data: the value quotes markup. If another call opens, or the text ends, the value ended where the doubt began.

A value may quote a complete call. From the opening tag of that call on, tags are paired, and those that close the
quoted call are data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from callwright.text.closing_tags import FOREIGN_CLOSERS, MAX_MISTAKES, count_mistakes, find_near_token
from callwright.text.json_stream import RepairSink
from callwright.text.raw_value_reader import RawValueReader
from callwright.text.source import MarkerSet, ParseStep, Source, TextSink, compile_markers
from callwright.text.value_tails import SPACE, KeyFilter, has_tag_end

__all__ = ["RawValueRule"]

_MAX_TAG_LENGTH = 64


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
    the call is still part of the value. If a tag `names_parameters`, values may hold any tag: none is a misspelling.
    With `has_bare_names`, a call may begin with the bare name of its tool.
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
    names_parameters: bool = False
    follow_tags: tuple[str, ...] = ()
    has_bare_names: bool = False

    def copy_value(
        self,
        source: Source,
        emit: TextSink,
        expects: KeyFilter | None = None,
        offers: KeyFilter | None = None,
    ) -> ParseStep[str | None]:
        """Emit the value and return the tag that ended it, or None if the value is incomplete.

        The value's own closing tag is consumed, and so is a misspelt one. If it is missing, a tag that closes what
        encloses the value ends it, or the opening of a next value whose key `expects` accepts; these tags are not
        consumed. A value is incomplete if the text ended first, or where the call of a tool that `offers` accepts
        begins instead of its end.
        """
        value = RawValueReader(self, source, emit, expects, offers)
        return (yield from value.read())

    def accept_tag(self, source: Source, marks: MarkerSet, note: RepairSink) -> ParseStep[str]:
        """Consume the next tag of these marks and return it; empty if something else follows.

        A misspelt tag counts as the real one. Closing tags that close nothing are consumed too.
        """
        while True:
            if tag := (yield from source.accept_next(marks)):
                return tag
            found = yield from self._peek_closing_tag(source)
            if found is None:
                return ""
            level, end = found
            raw = source.text[source.position : end].strip()
            source.position = end
            real = self.enclosing_tags[level - 1] if level > 0 else ""
            if real in marks.markers:
                note("misspelt_tag", f"{raw} was written instead of {real}")
                return real
            note("stray_marker", f"{raw} closed nothing")

    def _peek_closing_tag(self, source: Source) -> ParseStep[tuple[int, int] | None]:
        """Return level and end of the closing tag after white space: the value's own, a misspelt or a foreign one."""
        own = compile_markers(self.close_tag, self.loose_close_tag or self.close_tag, self.lead or self.close_tag)
        tag = yield from source.peek_marker(own)
        while True:
            at = SPACE.match(source.text, source.position).end()  # type: ignore[union-attr]  # it may be empty
            if not tag or tag != self.lead:
                return (0, at + len(tag)) if tag else None
            if source.closed or has_tag_end(source.text, at + len(tag), self.tag_end):
                return self.find_near_tag(source, at)
            yield

    # ── the tags ───────────────────────────────────────────────────────────────────────────────

    @cached_property
    def stops(self) -> MarkerSet:
        """Every tag that means something inside a value."""
        implied = (f"\n{tag}" for tag in (*self.enclosing_tags, *self.value_tags))
        opens = self.value_tags
        own = (self.close_tag, self.inset + self.close_tag, self.loose_close_tag or self.close_tag)
        quoted = (*self.call_tags, *(f"\n{tag}" for tag in self.call_tags), *self.own_value_tags, *self.call_end_tags)
        near = [inset + tag for tag in (self.lead, self.headless_tag) if tag for inset in ("", self.inset)]
        return compile_markers(*own, *implied, *self.enclosing_tags, *opens, *(quoted if self.call_tags else ()), *near)

    @cached_property
    def lead(self) -> str:
        """How every closing tag of the family begins; empty if they have nothing in common."""
        if "</" in self.close_tag:
            return self.close_tag[: self.close_tag.index("</") + 2]
        other = self.enclosing_tags[0] if self.enclosing_tags else ""
        size = next((at for at, pair in enumerate(zip(self.close_tag, other, strict=False)) if len({*pair}) > 1), 0)
        return self.close_tag[:size] if size > 1 else ""

    @cached_property
    def headless_tag(self) -> str:
        """The closing tag without its first angle bracket."""
        return self.close_tag[1:] if self.close_tag.startswith("</") else ""

    @property
    def call_end_tags(self) -> tuple[str, ...]:
        """The tags that end a call."""
        return self.call_closers or self.enclosing_tags[self.is_guarded :][:1]

    @cached_property
    def header_pattern(self) -> re.Pattern[str]:
        return re.compile(rf"[^<>]*{re.escape(self.tag_end)}\s*")

    @cached_property
    def inner_markers(self) -> MarkerSet:
        return compile_markers(*self.value_tags, *self.own_value_tags, *self.call_end_tags)

    def is_closing_tag(self, tag: str) -> bool:
        """Whether a tag closes the value itself."""
        return tag.endswith(self.close_tag) or (bool(tag) and tag == self.loose_close_tag)

    @cached_property
    def closing_levels(self) -> dict[str, int]:
        """The closing tags by their level: 0 for the value's own."""
        return {tag: level for level, tag in reversed(tuple(enumerate((self.close_tag, *self.enclosing_tags))))}

    @cached_property
    def structure_markers(self) -> MarkerSet:
        return compile_markers(*self.closing_levels, *self.value_tags, *self.call_tags, *self.follow_tags)

    @cached_property
    def _near_pattern(self) -> re.Pattern[str]:
        end = re.escape(self.tag_end)
        return re.compile(
            rf"{re.escape(self.lead)}[^<>\n{re.escape(self.lead[0])}]{{0,{_MAX_TAG_LENGTH}}}(?:{end}|{re.escape(self.tag_end[:-1])})?"
        )

    def find_near_tag(self, source: Source, at: int) -> tuple[int, int] | None:
        """Return level and end of the misspelt or foreign closing tag at this place; None if there is none."""
        text = source.text
        tag = self._near_pattern.match(text, at).group().rstrip()  # type: ignore[union-attr]  # it begins with the lead
        reals = self.closing_levels
        if source.may_be_cut and at + len(tag) == len(text.rstrip()) and any(real.startswith(tag) for real in reals):
            return None
        if self.names_parameters:
            return (0, at + len(tag)) if tag and tag == self.close_tag[: len(tag)] and tag != self.lead else None
        mistakes, level = min((count_mistakes(tag, real), level) for real, level in reals.items())
        if mistakes <= MAX_MISTAKES:
            return level, at + len(tag)
        return (-1, at + len(tag)) if tag in FOREIGN_CLOSERS else None

    @cached_property
    def token_lead(self) -> str:
        """How the tokens begin that close a call whose values are closed by tags; empty if there are none."""
        has_tokens = any(tag.startswith("<|") for tag in self.enclosing_tags)
        return "<|" if has_tokens and not self.close_tag.startswith("<|") else ""

    def find_near_token(self, source: Source, at: int) -> tuple[int, int] | None:
        """Return level and end of the misspelt or cut closing token at this place; None if there is none."""
        token = find_near_token(source, at, tuple(tag for tag in self.enclosing_tags if tag not in self.call_tags))
        return (self.closing_levels[token[0]], token[1]) if token else None
