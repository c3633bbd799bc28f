"""Raw values between tags: written with no escaping, so that only position tells a closing tag from data.

A closing tag counts when the tags after it continue the structure in order: the next value opens,
or what encloses it closes, outward and never inward again, or the text ends. A tag quoted inside a
value is followed by other text, or by tags that close what would be closed already.

A value may quote a whole call. From the opening of a call in it on, the tags are paired: those that
close what the quoted call opened are data. A value that quotes only the beginning of a call takes the
real closing tags for those of the quoted one; where these are followed by what may follow the real
ones, nothing more is said, and when whole calls come after that and no other end, the value ended there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from callwright.text.source import Emit, Marks, Reading, Source, ignore, marks

__all__ = ["RawValue"]

_KEY = re.compile(r"""\s*["']?([^<>"'=\s]+)["'<>\s]""")
_LONGEST_KEY = 256
_ELEMENT = re.compile(rf"<([A-Za-z_][\w.-]{{0,{_LONGEST_KEY}}})>")
_UNDECIDED = re.compile(rf"<(?:[A-Za-z_][\w.-]{{0,{_LONGEST_KEY}}})?\Z")
_NAME = re.compile(r"\s*[^][<>\s]*\s*")


@dataclass(frozen=True)
class RawValue:
    """How a raw value ends.

    `close` ends it, framed by `inset` (a newline for some families). `around` are the tags that close
    what encloses it, from the inside out. `opens` are those that open the next value; in an `inline`
    family they need no line of their own to end a value whose closing tag is missing. `begins` are
    those that open a call, `over` those that end one, if not the innermost of `around` does, and `own`
    those of `opens` whose value ends as this one does, if not all of them. `loose` is its closing tag
    without the prefix that belongs there, for the models that forget it. `tag_end` ends an opening tag
    with attributes. With `others`, whole elements of any name may stand between it and the next tag. A
    `guarded` value stands in a mark of its own inside its tags, as CDATA does: without the end of that,
    text after the call is still the value.
    """

    close: str
    around: tuple[str, ...] = ()
    opens: tuple[str, ...] = ()
    inset: str = ""
    inline: bool = False
    begins: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    loose: str = ""
    tag_end: str = ">"
    others: bool = False
    guarded: bool = False

    def copy(self, source: Source, emit: Emit, expects: Callable[[str], bool] | None = None) -> Reading[str | None]:
        """Emit the value and return the tag that ended it; None when the text ended first.

        Its own closing tag is consumed. Where that is missing, an enclosing tag on a line of its own
        ends the value too, or the opening of a next one whose key `expects` accepts; these are left.
        """
        quoted = _Quoted(self)
        say = emit
        while True:
            text, position = source.text, source.position
            start, end = self._ends.find(text, position, source.closed)
            if start > position:
                say(text[position:start])
                source.position = start
            if end > start:
                tag = text[start:end]
                role = yield from self._role(source, tag, quoted, expects)
                if role == "end":
                    emit(source.kept() if quoted.doubt else "")
                    return self._end(source, tag)
                if role == "doubt":
                    source.keep()
                    quoted.doubt, say = tag, ignore
                # After the newline of what would have been an implied end, the real one may stand.
                size = 1 if role == "words" and tag[0] == "\n" else len(tag)
                say(tag[:size])
                source.position += size
            elif not source.closed:
                yield
            elif quoted.doubt and not quoted.calls and not self._ends.cut(text):
                source.rewind()
                return self._end(source, quoted.doubt)
            else:
                emit(source.kept() if quoted.doubt else "")
                return None

    def _role(
        self, source: Source, tag: str, quoted: _Quoted, expects: Callable[[str], bool] | None
    ) -> Reading[Literal["end", "doubt", "tag", "words"]]:
        """What the tag at the source's position is: the end of the value, or maybe so, a quoted tag, or words."""
        bare = tag.lstrip("\n")
        if source.is_literal(bare, source.position + len(tag) - len(bare)):
            return "words"
        if bare in self.begins:
            quoted.calls += yield from self._begins(source, tag)
            return "tag"
        if quoted.calls and tag[0] == "\n" and not self._is_own(tag):
            return "words"
        if quoted.follow(tag):
            return "tag"
        if not (quoted.values and self._is_own(tag)):
            return "end" if (yield from self._counts(source, tag, expects)) else "tag" if self._is_own(tag) else "words"
        quoted.values -= 1
        if quoted.doubt or not (yield from self._continues(source, len(tag), 0, expects, sure=False)):
            return "tag"
        return "end" if source.rewound or source.keeping else "doubt"

    def _end(self, source: Source, tag: str) -> str:
        if self._is_own(tag):
            source.position += len(tag)
        return tag

    @cached_property
    def _ends(self) -> Marks:
        implied = (f"\n{tag}" for tag in (*self.around[:1], *self.opens))
        opens = self.opens if self.inline or self.begins else ()
        own = (self.close, self.inset + self.close, self.loose or self.close)
        quoted = (*self.begins, *self.own, *self.call_ends) if self.begins else ()
        return marks(*own, *implied, *opens, *quoted)

    @property
    def call_ends(self) -> tuple[str, ...]:
        """The tags that end a call."""
        return self.over or self.around[self.guarded :][:1]

    def _begins(self, source: Source, tag: str) -> Reading[bool]:
        """Whether a name, and then the inside of a call or its end, follows a tag that begins one."""
        header = _NAME if tag.endswith(self.tag_end) else self._header
        while True:
            start = source.position + len(tag)
            hit = header.match(source.text, start)
            if hit and not self._inside.undecided(source.text, hit.end()):
                return self._inside.at(source.text, hit.end()) >= 0
            if source.closed or len(source.text) - start > _LONGEST_KEY:
                return source.closed and (bool(hit) or "<" not in source.text[start:])
            yield

    @cached_property
    def _header(self) -> re.Pattern[str]:
        return re.compile(rf"[^<>]*{re.escape(self.tag_end)}\s*")

    @cached_property
    def _inside(self) -> Marks:
        return marks(*self.opens, *self.own, *self.call_ends)

    def _is_own(self, tag: str) -> bool:
        return tag.endswith(self.close) or tag == self.loose

    @cached_property
    def _chain(self) -> dict[str, int]:
        return {tag: level for level, tag in reversed(tuple(enumerate((self.close, *self.around))))}

    @cached_property
    def _structure(self) -> Marks:
        return marks(*self._chain, *self.opens, *self.begins)

    def _counts(self, source: Source, tag: str, expects: Callable[[str], bool] | None) -> Reading[bool]:
        """Whether the tag at the source's position is structure rather than data."""
        if self._is_own(tag):
            return (yield from self._continues(source, len(tag), 0, None))
        if tag.lstrip("\n") in self.opens:
            apart = self.inline or tag[0] == "\n"
            return apart and expects is not None and (yield from self._opens(source, len(tag), expects))
        if tag[0] != "\n":
            return False
        if self.begins:
            # The call closes without its value, and the next call of the same block begins.
            at = yield from self._look(source, len(tag))
            if marks(*self.begins).at(source.text, at) >= 0:
                return True
        return (yield from self._continues(source, len(tag), 1, None, sure=not self.guarded))

    def _continues(
        self, source: Source, ahead: int, level: int, expects: Callable[[str], bool] | None, *, sure: bool = True
    ) -> Reading[bool]:
        """Whether the tags from `ahead` on continue the structure outward from `level`, to text only if `sure`."""
        outermost = len(self.around)
        first = True
        before = ""
        while True:
            at = yield from self._look(source, ahead)
            end = self._structure.at(source.text, at)
            tag = source.text[at:end] if end >= 0 else ""
            ahead = end - source.position
            if tag in self.opens:
                return expects is None or (yield from self._opens(source, ahead, expects))
            if not tag and self.others and (size := (yield from self._other(source, at - source.position))):
                ahead = size
                continue
            if tag not in self._chain:
                # Another call, text, or the end: fine after the outermost tag, or where nothing comes at all.
                if at == len(source.text):
                    return True
                begun = bool(tag) or before in self.begins
                return (not first or level == outermost) and (begun or sure)
            if self._chain[tag] <= level:
                return False
            level = self._chain[tag]
            before = tag
            first = False

    def _other(self, source: Source, ahead: int) -> Reading[int]:
        """Where the element that opens `ahead` of here ends, counted from here; 0 when none does."""
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
            if source.closed or (not opening and not _UNDECIDED.match(source.text, start)):
                return 0
            yield

    def _look(self, source: Source, ahead: int) -> Reading[int]:
        """The position of the next word from `ahead` on, once it is clear which tag it is, if any."""
        while True:
            at = source.position + ahead
            while at < len(source.text) and source.text[at].isspace():
                at += 1
            if source.closed or not self._structure.undecided(source.text, at):
                return at
            yield

    def _opens(self, source: Source, ahead: int, expects: Callable[[str], bool]) -> Reading[bool]:
        """Whether the tag that opens here carries a key that is expected."""
        while True:
            key = _KEY.match(source.text, source.position + ahead)
            if key:
                return expects(key.group(1))
            if source.closed or len(source.text) - source.position - ahead > _LONGEST_KEY:
                return False
            yield


class _Quoted:
    """What a value quotes of a call: how many calls, and values in them, are open where it has come to."""

    __slots__ = ("_rule", "calls", "doubt", "values")

    def __init__(self, rule: RawValue) -> None:
        self._rule = rule
        self.calls = 0
        self.values = 0
        self.doubt = ""
        """The tag at which the value ended, if it quotes only half a call."""

    def follow(self, tag: str) -> bool:
        """Whether a tag is one inside a quoted call, or its end, other than the end of a value."""
        rule = self._rule
        if not self.calls or not (tag in rule.opens or tag in rule.own or tag in rule.call_ends):
            return False
        if tag in rule.call_ends:
            self.calls -= 1
        elif tag in (rule.own or rule.opens):
            self.values += 1
        self.values = min(self.values, self.calls)
        return True
