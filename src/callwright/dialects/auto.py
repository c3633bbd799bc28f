"""auto: for a model whose dialect nobody knows, one grammar that listens for every family.

Each opening marker is handed to the family that writes it, told apart by what follows where several
share one. A call counts only if it names an offered tool; with no tools offered there are no calls.
Fenced examples, back-quoted tags, HTML and prose about markup stay text. What was taken for what,
and why, is on the turn's `Finish`.

Some forms have no marker. Bare JSON and Python lists count where the answer begins. A fenced JSON
object counts when nothing but other calls follows it and the words before it do not call it an
example; text like that is held to its end. An output that begins with a token of one family only
(Harmony's channels, Cohere's blocks) is read by that family's own grammar to the end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import count

from callwright.dialects.base import FENCE, Dialect
from callwright.dialects.call_object import read_calls
from callwright.dialects.lines import TAUGHT, names_tool_first
from callwright.events import Malformed
from callwright.model import ToolCall
from callwright.schema import Toolbox
from callwright.text.source import Reading, Source, marks
from callwright.turn import Turn

__all__ = ["Auto"]

_TOKEN = ("<|", "<｜", "]<]", "◁", "[THINK]", ">>>")
"""How markers begin that no prose begins with."""
_NO_OPENERS = ("\n", "`", ">>>")
"""How openers begin that only count at the start of the answer or of a fence."""
_BARE = marks("{", "[")
_LINE_FENCE = marks(f"\n{FENCE}")
_INFO = re.compile(r"[^\n`]*")
_CALL_FENCES = ("", "json", "tool_call", "tool_calls")
_EXAMPLE = re.compile(
    r"example|e\.g\.|instance|look(?:s|ed)? like|like this|format|sample|template|syntax", re.IGNORECASE
)
_REMEMBERED = 200
"""Characters before a fence that are searched for words such as "example"."""


@dataclass(frozen=True, kw_only=True)
class Auto(Dialect):
    """Listens for all of its members. The first of them writes."""

    members: tuple[Dialect, ...]

    # ── what is listened for ───────────────────────────────────────────────────────────────────

    @property
    def openers(self) -> tuple[str, ...]:
        return tuple(opener for opener in self._families if not opener.startswith(_NO_OPENERS))

    @property
    def markers(self) -> tuple[str, ...]:
        return self.members[0].markers

    def openers_for(self, tools: Toolbox) -> tuple[str, ...]:
        named = (opener for member in self._by_name for opener in member.openers_for(tools))
        return (*self.openers, *named)

    @cached_property
    def _families(self) -> dict[str, tuple[Dialect, ...]]:
        """Which families begin calls with which marker, in the order of the table."""
        openers = dict.fromkeys(opener for member in self.members for opener in member.openers)
        return {opener: tuple(one for one in self.members if opener in one.openers) for opener in openers}

    @cached_property
    def _by_name(self) -> tuple[Dialect, ...]:
        """The families whose opening tags are the names of tools."""
        return tuple(member for member in self.members if not member.openers)

    @cached_property
    def _sole(self) -> dict[str, Dialect]:
        """Tokens that only one family begins an output with."""
        owners: dict[str, list[Dialect]] = {}
        for member in self.members:
            beginnings = (*member.openers, *member.framing, *(think.open for think in member.thinks))
            for marker in dict.fromkeys(beginnings):
                if marker.startswith(_TOKEN):
                    owners.setdefault(marker, []).append(member)
        return {marker: some[0] for marker, some in owners.items() if len({one.shape for one in some}) == 1}

    # ── reading ────────────────────────────────────────────────────────────────────────────────

    def grammar(self, source: Source, turn: Turn) -> Reading[None]:
        turn.takes_any = False
        turn.why = "no call of an offered tool was found" if len(turn.tools) else "no tools were offered"
        if token := (yield from source.looking_at(marks(*self._sole))):
            member = self._sole[token]
            _decide(turn, member, f"the output begins with {token!r}")
            yield from member.grammar(source, turn)
            return
        tail = _Tail(turn)
        yield from self._begin(source, turn)
        if (yield from source.accept(marks(FENCE))):
            yield from self._fence(source, turn, FENCE, tail)
        listen = self._listen(turn.tools)
        while (marker := (yield from source.copy_until(listen, tail.text))) is not None:
            if marker in self._closers:
                yield from self._think(source, turn, self._closers[marker])
                yield from self._begin(source, turn)
            elif marker in self._silent:
                yield from self._drop(source, turn, marker)
            elif marker == f"\n{FENCE}":
                yield from self._fence(source, turn, marker, tail)
            elif marker[0] == "`":
                tail.text(marker)
            else:
                yield from self.attempt(source, turn, marker, tail.text)

    def read_calls(self, source: Source, turn: Turn, opener: str) -> Reading[str]:
        member = yield from self._member(source, turn, opener)
        problem = yield from member.read_calls(source, turn, opener)
        if not problem:
            _decide(turn, member, f"{opener!r} began a call of an offered tool")
        return problem

    def _member(self, source: Source, turn: Turn, opener: str) -> Reading[Dialect]:
        """The family that an opener belongs to here, by what follows it."""
        candidates = self._families.get(opener, self._by_name)
        for member in candidates:
            if member.starts and (yield from source.looking_at(marks(*member.starts))):
                return member
        return next((member for member in candidates if not member.starts), candidates[0])

    def _begin(self, source: Source, turn: Turn) -> Reading[None]:
        """A call that is the answer itself: a JSON object, a list of them, or a Python list of calls."""
        if not (yield from source.looking_at(_BARE)):
            return
        if (yield from names_tool_first(source)):
            member, opener = self._named("llama3_json"), ""
            source.keep()
        else:
            member, opener = self._named("pythonic"), "["
            before, _ = yield from source.take_until(_BARE)
            source.keep(before + opener)
        problem = yield from member.read_calls(source, turn, opener)
        if problem:
            turn.text(source.kept())
        else:
            _decide(turn, member, "the answer begins with a call of an offered tool")

    def _named(self, name: str) -> Dialect:
        return next(member for member in self.members if member.name == name)

    # ── fences ─────────────────────────────────────────────────────────────────────────────────

    def _fence(self, source: Source, turn: Turn, fence: str, tail: _Tail) -> Reading[None]:
        """A fenced block: text, unless it is a call that ends the answer."""
        info = yield from source.take_while(_INFO, 40)
        if info.strip() == "tool_code":
            member = self._named("tool_code")
            source.keep(fence + info)
            problem = yield from member.read_calls(source, turn, f"{FENCE}{info.strip()}")
            if not problem:
                _decide(turn, member, "a tool_code fence called an offered tool")
                return
            yield from self._fenced(source, turn, source.kept())
            return
        sample = info.strip().lower() not in _CALL_FENCES or _EXAMPLE.search(tail.last)
        if sample or not (yield from names_tool_first(source)):
            yield from self._fenced(source, turn, fence + info)
            return
        body, close = yield from source.take_until(_LINE_FENCE)
        if close and (yield from _is_call(body, turn.tools)) and (yield from self._ends(source)):
            yield from read_calls(Source.of(body), turn, TAUGHT)
            _decide(turn, self._named("fenced"), "the answer ends in a fenced call of an offered tool")
        else:
            tail.text(fence + info + body + (close or ""))

    def _ends(self, source: Source) -> Reading[bool]:
        """Whether nothing follows but white space and other fences."""
        if (yield from source.looking_at(marks(FENCE))):
            return True
        return source.closed and not source.text[source.position :].strip()

    # ── rendering ──────────────────────────────────────────────────────────────────────────────

    def render_call(self, *calls: ToolCall) -> str:
        return self.members[0].render_call(*calls)


class _Tail:
    """Says text and remembers the end of it."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self.last = ""

    def text(self, text: str) -> None:
        self.last = (self.last + text)[-_REMEMBERED:]
        self._turn.text(text)


def _decide(turn: Turn, member: Dialect, why: str) -> None:
    """Report what the turn was read as; the first finding stands, others are added to its reason."""
    if turn.dialect == "auto":
        turn.dialect, turn.why = member.name, why
    elif turn.dialect != member.name and f"then as {member.name}" not in turn.why:
        turn.why += f"; then as {member.name}: {why}"


def _is_call(body: str, tools: Toolbox) -> Reading[bool]:
    """Whether a whole text is JSON calls of offered tools and nothing else."""
    numbers = count()
    trial = Turn(tools, lambda: str(next(numbers)))
    trial.takes_any = False
    source = Source.of(body)
    problem = yield from read_calls(source, trial, TAUGHT)
    malformed = any(isinstance(event, Malformed) for event in trial.drain())
    return not problem and not malformed and not source.text[source.position :].strip()
