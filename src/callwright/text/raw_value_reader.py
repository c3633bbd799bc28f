"""Read one raw value: hold back what is doubtful, and judge every tag inside it. `raw_values` has the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from callwright.text.boundaries import has_tool_name
from callwright.text.source import ParseStep, Source, TextSink
from callwright.text.value_tails import KeyFilter, TailScanner, ValueTail, has_tag_end

if TYPE_CHECKING:
    from callwright.text.raw_values import RawValueRule

__all__ = ["RawValueReader"]


class _Candidate(NamedTuple):
    """A place where the value may have ended: `offset` characters after the text that is held back begins."""

    offset: int
    tag: str
    opens: Literal["", "quoted", "value", "call"]
    """What stands there: a closing tag, one that may belong to a quoted call, or the opening of a value or a call."""


class RawValueReader:
    """Reads one value."""

    def __init__(
        self, rule: RawValueRule, source: Source, emit: TextSink, expects: KeyFilter | None, offers: KeyFilter | None
    ) -> None:
        self._rule = rule
        self._source = source
        self._emit = emit
        self._expects = expects
        self._offers = offers
        self._tails = TailScanner(rule, source, expects, offers)
        self._quoted = _QuotedCalls(rule)
        self._candidates: list[_Candidate] = []
        self._held = 0
        self._after_inline_call = False
        self._has_text = False
        self._own_openers = 0
        """How many elements of the value's own name are open inside it."""

    def read(self) -> ParseStep[str | None]:
        source, rule = self._source, self._rule
        while True:
            text, position = source.text, source.position
            start, end = rule.stops.find_first(text, position, source.closed)
            if start > position:
                self._after_inline_call = self._after_inline_call and text[position:start].isspace()
                self._take(start - position)
            if end == start:
                if not source.closed:
                    yield
                    continue
                return self._end_of_text()
            tag = text[start:end]
            verdict, size = yield from self._judge(tag)
            if verdict == "end" and self._candidates and self._candidates[0].opens == "value":
                return self._go_back(self._candidates[0])
            if verdict == "end" and not rule.is_closing_tag(tag) and self._is_doubtful_end():
                return self._go_back(self._candidates[0])
            if verdict == "end":
                self._flush()
                return self._end_value(tag, size)
            if verdict == "data" and rule.is_closing_tag(tag) and self._candidates:
                self._drop_value_candidate()
            if verdict != "data":
                if verdict == "call" and self._candidates and not self._candidates[0].opens:
                    return self._go_back(self._candidates[0])
                if verdict == "call" and source.is_rewound:
                    # Text is read a second time at most, so that reading stays linear.
                    return None
                self._hold(
                    _Candidate(self._held if self._candidates else 0, tag, "" if verdict == "doubt" else verdict)
                )
            self._take(size)

    def _is_doubtful_end(self) -> bool:
        """Whether the value's own closing tag was seen, but not in a certain place."""
        return (
            bool(self._candidates)
            and not self._candidates[0].opens
            and self._rule.is_closing_tag(self._candidates[0].tag)
        )

    def _take(self, size: int) -> None:
        """Take text as data: emit it, or hold it back."""
        source = self._source
        piece = source.text[source.position : source.position + size]
        source.position += size
        self._has_text = True
        if self._candidates:
            self._held += size
        else:
            self._emit(piece)

    def _hold(self, candidate: _Candidate) -> None:
        if not self._candidates:
            self._source.start_hold()
            self._held = 0
        self._candidates.append(candidate)

    def _drop_value_candidate(self) -> None:
        """Take the next value that seemed to open for data, since its end is data."""
        if self._candidates[0].opens == "value":
            self._emit(self._source.end_hold())
            self._candidates.clear()

    def _flush(self) -> None:
        """Emit what was held back: it is data."""
        if self._candidates:
            self._emit(self._source.end_hold())

    def _go_back(self, candidate: _Candidate) -> str | None:
        """End the value where the doubt began, and read what follows once more."""
        source = self._source
        source.rewind()
        self._emit(source.text[: candidate.offset])
        source.position = candidate.offset
        if candidate.opens == "call":
            return None
        is_own = candidate.opens != "value" and self._rule.is_closing_tag(candidate.tag)
        return self._end_value(candidate.tag, len(candidate.tag) if is_own else 0)

    def _end_value(self, tag: str, size: int) -> str:
        self._source.position += size
        return tag

    def _end_of_text(self) -> str | None:
        source = self._source
        if self._candidates and not source.is_cut:
            candidate = self._candidates[0]
            is_inline = not candidate.tag.startswith(("\r", "\n"))
            if not candidate.opens and is_inline and not self._rule.is_closing_tag(candidate.tag):
                # A tag that closes what encloses the value stands in its last line: the output may be cut off.
                candidate = candidate if source.is_finished else candidate._replace(opens="call")
            return self._go_back(candidate)
        self._flush()
        return None

    def _judge(self, tag: str) -> ParseStep[tuple[Literal["end", "doubt", "quoted", "value", "call", "data"], int]]:
        """Judge the tag at the position. The number is the size of what is data, or of the tag that ends the value."""
        rule, source, quoted = self._rule, self._source, self._quoted
        bare = tag.lstrip("\r\n")
        apart = tag != bare
        if source.is_literal(bare, source.position + len(tag) - len(bare)):
            return "data", len(tag)
        if bare in (rule.lead, rule.headless_tag):
            return (yield from self._judge_near_tag(tag, bare))
        if bare in rule.call_tags:
            return (yield from self._judge_call_tag(tag, bare, apart=apart))
        is_own = rule.is_closing_tag(tag)
        if quoted.open_calls and apart and not is_own:
            return "data", len(tag) - len(bare)
        if quoted.track_tag(bare if not is_own else tag):
            return "data", len(tag)
        if is_own and quoted.open_values:
            quoted.open_values -= 1
            return ("quoted" if (yield from self._may_quote_half_a_call(tag)) else "data"), len(tag)
        if rule.names_parameters and bare in rule.own_value_tags:
            self._own_openers += 1
            return "data", len(tag)
        if bare in rule.value_tags:
            return (yield from self._judge_value_tag(tag, bare))
        if not is_own and (quoted.has_calls or bare not in rule.closing_levels):
            return "data", len(tag)
        return (yield from self._judge_closing_tag(tag, bare))

    def _may_quote_half_a_call(self, tag: str) -> ParseStep[bool]:
        """Whether half a call is quoted, and this tag is the real end, if nothing else ends the value."""
        tail = yield from self._tails.scan(len(tag))
        if tail.after == "value":
            is_half = yield from self._tails.has_expected_key(tail.offset, skip_tag=True)
        else:
            is_half = tail.closes_call and tail.after in ("end", "call")
        return is_half and not self._candidates

    def _judge_value_tag(self, tag: str, bare: str) -> ParseStep[tuple[Literal["end", "value", "data"], int]]:
        """Judge a tag that opens a value: this one ended before it if the tool still expects that parameter."""
        gap = len(tag) - len(bare)
        if self._expects is None or not (yield from self._tails.has_expected_key(len(tag))):
            return "data", gap or len(tag)
        if self._rule.is_inline or gap:
            return "end", 0
        return ("data" if self._candidates or self._quoted.open_calls else "value"), len(tag)

    def _judge_closing_tag(self, tag: str, bare: str) -> ParseStep[tuple[Literal["end", "doubt", "data"], int]]:
        """Judge a tag that closes the value or what encloses it."""
        rule, quoted = self._rule, self._quoted
        is_own, apart = rule.is_closing_tag(tag), tag != bare
        tail = yield from self._tails.scan(len(tag))
        level = 0 if is_own else rule.closing_levels[bare]
        if quoted.has_calls and tail.after == "value" and self._expects is not None:
            expected = yield from self._tails.has_expected_key(tail.offset, skip_tag=True)
            return ("end" if expected else "data"), len(tag)
        verdict = self._judge_tail(tail, level, apart=apart, is_loose=tag == rule.loose_close_tag)
        if verdict == "data":
            # The real end may follow the newline of what looked like an end.
            return verdict, len(tag) if is_own or not apart else len(tag) - len(bare)
        return verdict, len(tag) if is_own else 0 if verdict == "end" else len(tag)

    def _judge_tail(
        self, tail: ValueTail, level: int, *, apart: bool, is_loose: bool
    ) -> Literal["end", "doubt", "data"]:
        """Judge a closing tag of this level by what follows it."""
        rule = self._rule
        outermost = level == len(rule.enclosing_tags)
        if not rule.enclosing_tags and tail.levels[:1] != (0,):
            return "end"
        if rule.is_guarded and level > 0 and tail.after in ("text", "line"):
            return "data"
        if level == 0 and tail.after == "value":
            return "end"
        if tail.is_prose or tail.reopens or (level > 0 and tail.levels[:1] == (0,)):
            # The value's own closing tag is still to come.
            return "data"
        if level == 0 and tail.levels[:1] == (0,):
            # Twice: the value ends with its own closing tag, or one is too many.
            is_data = (rule.inset and not apart and tail.has_inset) or self._own_openers > 0
            if is_data or self._quoted.has_calls or not (self._has_text and rule.enclosing_tags) or is_loose:
                self._own_openers -= self._own_openers > 0
                return "data"
        if level > 0 and not apart and tail.after == "text":
            return "data"
        if (tail.closes_call and (level == 0 or tail.exact)) or (tail.starts and level == 0):
            return "end"
        if tail.after == "end":
            return "end" if level == 0 or apart else "doubt"
        if outermost and not rule.is_guarded and (level == 0 or apart) and tail.after != "text":
            return "end" if level == 0 else "doubt"
        if tail.after == "text":
            return "data"
        return "doubt"

    def _judge_near_tag(self, tag: str, bare: str) -> ParseStep[tuple[Literal["end", "doubt", "data"], int]]:
        """Judge a tag that closes nothing of this family, but may be a misspelling of one that does."""
        rule, source = self._rule, self._source
        gap = len(tag) - len(bare)
        while (
            bare == rule.lead
            and not source.closed
            and not has_tag_end(source.text, source.position + len(tag), rule.tag_end)
        ):
            yield
        near: tuple[int, int] | None = (0, source.position + len(tag))
        if bare == rule.lead:
            near = rule.find_near_tag(source, source.position + gap)
        if near is None or near[0] > 0 or self._quoted.open_calls:
            return "data", len(tag)
        size = near[1] - source.position
        tail = yield from self._tails.scan(size)
        if tail.after == "value" and self._expects is not None:
            if (yield from self._tails.has_expected_key(tail.offset, skip_tag=True)):
                return "end", size
        elif tail.exact and tail.levels[:1] != (0,):
            return "end", size
        return "data", len(tag)

    def _judge_call_tag(
        self, tag: str, bare: str, *, apart: bool
    ) -> ParseStep[tuple[Literal["end", "doubt", "call", "data"], int]]:
        """Judge a tag that opens a call: quoted, unless a call of a tool that the request has begins on a new line."""
        quoted = self._quoted
        apart = apart and not self._after_inline_call
        self._after_inline_call = not apart
        is_call = yield from self._tails.is_call_start(tag)
        named = apart and self._offers is not None and (yield from self._names_tool(tag))
        if is_call:
            quoted.open_calls += 1
            quoted.has_calls = True
        if named and not self._candidates_have_call() and quoted.open_calls <= is_call:
            return "call", len(tag)
        if apart and not is_call and bare in self._rule.closing_levels and not quoted.open_calls:
            # A message that is no call begins; the value cannot go on after it, unless it quotes that message.
            return "doubt", len(tag)
        return "data", len(tag) if is_call or not apart else len(tag) - len(bare)

    def _candidates_have_call(self) -> bool:
        return any(candidate.opens == "call" for candidate in self._candidates)

    def _names_tool(self, tag: str) -> ParseStep[bool]:
        """Whether the tag, or one of the first words after it, is the name of a tool that the request has."""
        source = self._source
        if self._offers is None or self._offers(tag.strip("<>\r\n")):
            return self._offers is not None
        return (yield from has_tool_name(source, len(tag), self._offers))


class _QuotedCalls:
    """The calls that a value quotes: how many calls, and values inside them, are open at the current position."""

    __slots__ = ("_rule", "has_calls", "open_calls", "open_values")

    def __init__(self, rule: RawValueRule) -> None:
        self._rule = rule
        self.has_calls = False
        self.open_calls = 0
        self.open_values = 0

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
