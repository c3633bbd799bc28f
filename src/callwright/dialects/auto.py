"""auto: one grammar that recognizes every family, for models whose dialect is not known.

Each opening marker is passed to the family that writes it; where several families share one, the text after it decides.
A call counts only if it names a tool of the request; without tools there are no calls. Fenced examples, back-quoted
tags, HTML and prose about markup stay text. The turn's `Finish` reports what was read as which dialect, and why.

Some forms have no marker. Bare JSON and Python lists count at the beginning of the answer. After text, JSON counts only
where the answer ends with it, fenced or not, and is held back until that is known. Python lists count at the beginning
of a line, and `tool_code` fences anywhere. None of these count where the text before calls them an example. Output that
begins with a token of only one family (Harmony's channels, Cohere's blocks) is read by that family's own grammar.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from callwright.dialects.base import FENCE, Dialect
from callwright.dialects.fences import has_only_calls, read_fenced_calls
from callwright.dialects.line_calls import copy_rest, has_call_key_first
from callwright.model import ToolCall
from callwright.schema import Toolbox
from callwright.text.lookahead import Lookahead
from callwright.text.source import MarkerSet, ParseStep, Source, TextBuffer, compile_markers
from callwright.turn import Turn

__all__ = ["TOKEN_PREFIXES", "TURN_END_TOKENS", "AutoDialect"]

TOKEN_PREFIXES = ("<|", "<｜", "]<]", ">>>")
"""Prefixes of markers that never occur in prose."""
_POSITIONAL_PREFIXES = ("\n", "`", ">>>")
"""Prefixes of openers that count only at the beginning of a line, a fence or the output."""
_PREFERRED_MEMBERS = {"<function=": "qwen3_coder", "<|python_tag|>": "python_tag"}
"""Openers that several families share, with the family that reads them for all."""
TURN_END_TOKENS = (
    *("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|eom|>", "<|end|>", "<|return|>", "<|end_of_msg|>"),
    *("<|endoftext|>", "<|end_of_text|>", "<｜end▁of▁sentence｜>", "</s>", "<end_of_turn>", "<turn|>", "<seed:eos>"),
)
"""Tokens that end a turn in some family."""
_LINE_LABELS = ("Action:",)
"""Openers that are ordinary words, and count only at the beginning of a line."""
_WRAPPERS = {
    f"<{tag}>{inset}": (f"\n</{tag}>\n", f"\n</{tag}>", f"</{tag}>")
    for tag in ("answer", "response")
    for inset in ("\n", "")
}
"""Tags that Hunyuan and ERNIE put around the answer after their reasoning."""
_CLOSING_WRAPPERS = frozenset(close for closes in _WRAPPERS.values() for close in closes)
_BARE_OPENERS = ("{", "[")
_BARE_LINES = ("\n{", "\n[")
_LINE_FENCE = f"\n{FENCE}"
_FENCE_INFO = re.compile(r"[^\n`]*")
_CALL_FENCES = ("", "json", "tool_call", "tool_calls")
_CODE_FENCE = "tool_code"
_EXAMPLE_WORDS = re.compile(
    r"example|e\.g\.|instance|looks? like|like this|format|sample|template|syntax", re.IGNORECASE
)
_TAIL_LENGTH = 200
"""How many characters before a call without markers are searched for words such as "example"."""
_PYTHON_CALL = re.compile(r"\s*\[\s*([\w.-]+)\s*\(").match
_MUSE_HEADER = re.compile(
    r"\s*(?:<\|start\|>assistant)?\s*to=(?:(?:self|user)<\|message\|>|[^<\s]+<\|message\|>\s*<atem:)"
).match
_HARMONY_HEADER = re.compile(
    r"\s*(?:<\|start\|>assistant)?\s*to=[^<\s]+\s*<\|(?:channel\|>|constrain\|>|message\|>\s*\{)"
).match
_MAX_HEADER_LENGTH = 300


@dataclass(frozen=True, kw_only=True)
class AutoDialect(Dialect):
    """Recognizes the calls of all its members. The first member renders."""

    members: tuple[Dialect, ...]

    # ── markers ────────────────────────────────────────────────────────────────────────────────

    @property
    def openers(self) -> tuple[str, ...]:
        return tuple(opener for opener in self._members_by_opener if not opener.startswith(_POSITIONAL_PREFIXES))

    @property
    def markers(self) -> tuple[str, ...]:
        return self.members[0].markers

    def list_openers(self, tools: Toolbox) -> tuple[str, ...]:
        return (
            *self.openers,
            *(opener for member in self._tool_named_members for opener in member.list_openers(tools)),
        )

    @cached_property
    def _members_by_opener(self) -> dict[str, tuple[Dialect, ...]]:
        """The families by opening marker, in the order of the registry."""
        openers = dict.fromkeys(opener for member in self.members for opener in member.openers)
        return {opener: tuple(one for one in self.members if opener in one.openers) for opener in openers}

    @cached_property
    def _tool_named_members(self) -> tuple[Dialect, ...]:
        """The families whose opening tags are tool names."""
        return tuple(member for member in self.members if not member.openers)

    @cached_property
    def _members_by_token(self) -> dict[str, Dialect]:
        """Tokens with which only one family begins its output."""
        owners: dict[str, list[Dialect]] = {}
        for member in self.members:
            for marker in {*member.openers, *member.framing, *(think.open for think in member.reasoning_tags)}:
                if marker.startswith(TOKEN_PREFIXES):
                    owners.setdefault(marker, []).append(member)
        sole = {marker: some[0] for marker, some in owners.items() if len(some) == 1}
        return sole | dict.fromkeys(("<|start|>", "<|channel|>"), self._get_member("harmony"))

    @cached_property
    def _bare_or_marker_marks(self) -> MarkerSet:
        return compile_markers(*_BARE_OPENERS, *self.openers, *self._reasoning_closers, *self._silent_markers)

    def _get_member(self, name: str) -> Dialect:
        return next(member for member in self.members if member.name == name)

    # ── reading ────────────────────────────────────────────────────────────────────────────────

    def grammar(self, source: Source, turn: Turn) -> ParseStep[None]:
        turn.accepts_unknown_tools = False
        turn.why = "no call of an offered tool was found" if len(turn.tools) else "no tools were offered"
        owner = yield from self._find_owner(source)
        if owner is not None:
            _record_decision(turn, owner, "the output begins with a token of this family")
            yield from owner.grammar(source, turn)
            return
        tail = _TextTail(turn)
        yield from self._read_unmarked_start(source, turn, tail)
        yield from self._read_to_end(source, turn, tail, (*self._build_marks(turn.tools).markers, *_BARE_LINES))

    def _read_to_end(self, source: Source, turn: Turn, tail: _TextTail, markers: tuple[str, ...]) -> ParseStep[None]:
        """Read to the end, looking for these markers."""
        while (marker := (yield from source.copy_until(compile_markers(*markers), tail.emit_text))) is not None:
            if marker in self._reasoning_closers:
                yield from self._read_reasoning(source, turn, self._reasoning_closers[marker])
                wrapper = yield from source.accept(compile_markers(*_WRAPPERS))
                markers = (*markers, *_WRAPPERS.get(wrapper, ()))
                yield from self._read_unmarked_start(source, turn, tail)
            elif marker in self._silent_markers:
                yield from self._drop_marker(source, turn, marker)
                if marker not in self.framing:
                    yield from self._read_unmarked_start(source, turn, tail)
            elif marker == _LINE_FENCE:
                yield from self._try_fenced_call(source, turn, marker, tail)
            elif marker in _BARE_LINES:
                yield from self._try_bare_line(source, turn, tail)
            elif marker[0] == "`":
                yield from self._copy_inline_code(source, marker, tail.emit_text)
            elif marker in _LINE_LABELS and not tail.at_line_start:
                tail.emit_text(marker)
            elif marker not in _CLOSING_WRAPPERS:
                yield from self.try_read_calls(source, turn, marker, tail.emit_text)

    def _drop_marker(self, source: Source, turn: Turn, marker: str) -> ParseStep[None]:
        """Drop an end-of-turn token; it counts only where the turn ends."""
        if marker in self.framing and (yield from Lookahead(source).skip_space()):
            turn.add_text(marker)
        else:
            yield from super()._drop_marker(source, turn, marker)

    def _find_owner(self, source: Source) -> ParseStep[Dialect | None]:
        """Return the only family whose output begins like this, if there is one."""
        if (yield from source.peek_marker(compile_markers("<|start|>", "to="))):
            # Muse frames messages like Harmony, but has no channels.
            while not (_MUSE_HEADER(source.text) or _HARMONY_HEADER(source.text)):
                if source.closed or len(source.text) > _MAX_HEADER_LENGTH:
                    break
                yield
            if _MUSE_HEADER(source.text):
                return self._get_member("atem")
            if _HARMONY_HEADER(source.text):
                return self._get_member("harmony")
        return self._members_by_token.get((yield from source.peek_marker(compile_markers(*self._members_by_token))))

    def read_calls(self, source: Source, turn: Turn, opener: str) -> ParseStep[str]:
        member = yield from self._choose_member(source, opener)
        problem = yield from member.read_calls(source, turn, opener)
        if not problem:
            _record_decision(turn, member, f"{opener!r} began a call of an offered tool")
            yield from self._skip_trailing_framing(source, turn, member)
        return problem

    def _skip_trailing_framing(self, source: Source, turn: Turn, member: Dialect) -> ParseStep[None]:
        """Skip the framing that a call's family writes after it, such as end-of-turn tokens. ReAct labels all that
        follows."""
        while member.framing and (yield from source.accept_next(compile_markers(*member.framing))):
            pass
        yield from member.drop_partial_marker(source, turn)
        if member.openers == _LINE_LABELS:
            yield from member.grammar(source, turn)

    def is_truncated_call(self, turn: Turn, opener: str, raw: str) -> bool:
        families = self._members_by_opener.get(opener, self._tool_named_members)
        return raw.strip() != opener.strip() and any(member.is_truncated_call(turn, opener, raw) for member in families)

    def should_report_malformed(self, turn: Turn, opener: str, raw: str) -> bool:
        """Whether rejected text is reported. The family is not known here, so a marker that people do not write, with
        the name of a tool, counts as an attempted call."""
        marked = any(not member.text_tags for member in self._members_by_opener.get(opener, ()))
        return marked and any(name in raw for name in turn.tools.names)

    def _choose_member(self, source: Source, opener: str) -> ParseStep[Dialect]:
        """Return the family that an opener belongs to, judged by the text after it."""
        if opener in _PREFERRED_MEMBERS:
            return self._get_member(_PREFERRED_MEMBERS[opener])
        candidates = self._members_by_opener.get(opener, self._tool_named_members)
        for member in candidates:
            if member.body_starts and (yield from source.peek_marker(compile_markers(*member.body_starts))):
                return member
        return next((member for member in candidates if not member.body_starts), candidates[0])

    # ── calls without markers ──────────────────────────────────────────────────────────────────

    def _read_unmarked_start(self, source: Source, turn: Turn, tail: _TextTail) -> ParseStep[None]:
        """Read the forms that count only at the beginning of an answer."""
        yield from self._try_bare_call(source, turn)
        if (yield from source.accept(compile_markers(FENCE))):
            yield from self._try_fenced_call(source, turn, FENCE, tail)

    def _try_bare_call(self, source: Source, turn: Turn) -> ParseStep[None]:
        """Read a call that is the answer itself: JSON objects, a list of them, or a Python list of calls."""
        if (yield from source.peek_marker(self._bare_or_marker_marks)) not in _BARE_OPENERS:
            return
        source.start_capture()
        member = yield from self._find_unmarked_member(source, turn.tools)
        bracket = yield from source.skip_space()
        problem = "no call follows"
        if member is not None:
            opener = "" if member.shape == "B" else bracket
            source.position += len(opener)
            problem = yield from member.read_calls(source, turn, opener)
        if problem:
            (member or self).reject_calls(source, turn, "", problem, turn.add_text)
        else:
            member = member or self
            _record_decision(turn, member, "a line begins with a call of an offered tool")
            yield from self._skip_trailing_framing(source, turn, member)

    def _find_unmarked_member(self, source: Source, tools: Toolbox) -> ParseStep[Dialect | None]:
        """Return the family that would write the text at the position as a call; nothing is consumed."""
        if (yield from has_call_key_first(source)):
            return self._get_member("llama3_json")
        while not source.closed and "(" not in source.text[source.position :][:_MAX_HEADER_LENGTH]:
            if len(source.text) - source.position > _MAX_HEADER_LENGTH:
                return None
            yield
        call = _PYTHON_CALL(source.text, source.position)
        return self._get_member("pythonic") if call and call[1] in tools else None

    def _try_bare_line(self, source: Source, turn: Turn, tail: _TextTail) -> ParseStep[None]:
        """Read a bracket at the start of a line, after text: as calls if the rest is nothing else, otherwise as
        text."""
        source.position -= 1
        member: Dialect | None = None
        marked = (yield from source.peek_marker(self._bare_or_marker_marks)) not in _BARE_OPENERS
        if not marked and not _EXAMPLE_WORDS.search(tail.last):
            member = yield from self._find_unmarked_member(source, turn.tools)
        if member is None:
            tail.emit_text("\n" if marked else f"\n{source.text[source.position]}")
            source.position += not marked
            return
        if member.shape == "P":
            tail.emit_text("\n")
            yield from self._try_bare_call(source, turn)
            return
        buffer = TextBuffer(source)
        yield from copy_rest(source, buffer.add)
        if (yield from has_only_calls(member, buffer.get_text(), turn.tools)):
            yield from member.grammar(Source.from_text(buffer.get_text()), turn)
            _record_decision(turn, member, "the answer ends with a call of an offered tool")
        else:
            tail.emit_text("\n")
            yield from self._read_to_end(
                Source.from_text(buffer.get_text()), turn, tail, self._build_marks(turn.tools).markers
            )

    def _try_fenced_call(self, source: Source, turn: Turn, fence: str, tail: _TextTail) -> ParseStep[None]:
        """Read a fenced block: as text, unless it is a call."""
        info = yield from source.take_while(_FENCE_INFO, _MAX_HEADER_LENGTH)
        kind = info.strip().lower()
        example = _EXAMPLE_WORDS.search(tail.last)
        if kind == _CODE_FENCE and not example:
            source.start_capture(fence + info)
            member = self._get_member(_CODE_FENCE)
            if (yield from member.read_calls(source, turn, member.openers[0])):
                yield from self._read_fenced_block(source, turn, source.end_capture())
            else:
                _record_decision(turn, member, "a fence with code began a call of an offered tool")
                yield from member.drop_partial_marker(source, turn)
            return
        if example or kind not in _CALL_FENCES or not (yield from has_call_key_first(source)):
            yield from self._read_fenced_block(source, turn, fence + info)
            return
        member = self._get_member("fenced")
        shown = yield from read_fenced_calls(source, turn, info, member)
        if shown:
            tail.emit_text(fence.removesuffix(FENCE) + shown)
        else:
            _record_decision(turn, member, "the answer ends with a fenced call of an offered tool")

    # ── rendering ──────────────────────────────────────────────────────────────────────────────

    def render_call(self, *calls: ToolCall) -> str:
        return self.members[0].render_call(*calls)


class _TextTail:
    """Writes text to the turn and remembers its last characters."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self.last = ""

    @property
    def at_line_start(self) -> bool:
        """Whether the current line has nothing but emphasis so far."""
        return not self.last.rpartition("\n")[2].strip(" \t*")

    def emit_text(self, text: str) -> None:
        self.last = (self.last + text)[-_TAIL_LENGTH:]
        self._turn.add_text(text)


def _record_decision(turn: Turn, member: Dialect, why: str) -> None:
    """Record the dialect that the turn was read as. The first one is kept; later ones are added to its reason."""
    if turn.dialect == "auto":
        turn.dialect, turn.why = member.name, why
    elif turn.dialect != member.name and f"then as {member.name}" not in turn.why:
        turn.why += f"; then as {member.name}: {why}"
