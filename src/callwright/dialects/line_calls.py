"""Calls without a marker of their own: they begin at the start of a line.

    Let me look.
    {"name": "get_weather", "parameters": {"city": "Oslo"}}

Position, structure and name distinguish such a call from an example: it is at the start of a line, it is an object (or
a label) of the right form, and it names a known tool. Everything else is text, unchanged. Reasoning is never searched:
models draft JSON there.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

from callwright.dialects.base import Dialect
from callwright.dialects.call_object import DEFAULT_CALL_KEYS, CallKeys
from callwright.text.source import MarkerSet, ParseStep, Source, TextSink, compile_markers
from callwright.turn import Turn

__all__ = ["PROMPT_CALL_KEYS", "LineCalls", "copy_rest", "has_call_key_first"]

PROMPT_CALL_KEYS = CallKeys(
    name=DEFAULT_CALL_KEYS.name | {"action", "function_name"},
    arguments=DEFAULT_CALL_KEYS.arguments | {"action_input", "tool_input", "input"},
)
"""The keys that prompts use; `action` and `action_input` are those of LangChain's structured chat."""

_KEY_ALTERNATIVES = "|".join(
    sorted(
        PROMPT_CALL_KEYS.name
        | PROMPT_CALL_KEYS.arguments
        | PROMPT_CALL_KEYS.id
        | PROMPT_CALL_KEYS.ignored
        | PROMPT_CALL_KEYS.calls
    )
)
_FIRST_KEY = re.compile(rf"\s*(?:\[\s*)?\{{\s*[\"']?(?:{_KEY_ALTERNATIVES})[\"']?\s*:").match
_UNDECIDED = re.compile(r"\s*(?:\[\s*)?(?:\{\s*(?:[\"']\w{0,16}[\"']?\s*|\w{1,16}\s*)?)?\Z").match


@dataclass(frozen=True, kw_only=True)
class LineCalls(Dialect):
    """A family whose calls begin at the start of a line."""

    @abstractmethod
    def read_line(self, source: Source, turn: Turn, lead: str, emit: TextSink) -> ParseStep[TextSink]:
        """Read what only the start of a line can begin, if it stands here.

        `lead` is the text that was consumed to get here and not emitted yet: a newline, a marker that may precede a
        call, or nothing. Return the sink for the text that follows.
        """

    def grammar(self, source: Source, turn: Turn) -> ParseStep[None]:
        emit: TextSink = turn.add_text
        lead = ""
        while True:
            emit = yield from self.read_line(source, turn, lead, emit)
            marker = yield from source.copy_until(self._break_marks, emit)
            if marker is None:
                return
            lead = ""
            if marker in self._reasoning_closers:
                yield from self._read_reasoning(source, turn, self._reasoning_closers[marker])
                emit = turn.add_text
            elif marker in self._silent_markers:
                yield from self._drop_marker(source, turn, marker)
            else:
                lead = marker

    @property
    def call_prefixes(self) -> tuple[str, ...]:
        """Markers that may precede a call, besides a newline."""
        return ()

    @cached_property
    def _break_marks(self) -> MarkerSet:
        tags = (*self._reasoning_closers, *self._silent_markers)
        return compile_markers("\n", *self.call_prefixes, *tags, *(f"`{tag}" for tag in tags))

    def _copy_reasoning(self, source: Source, turn: Turn, closers: tuple[str, ...]) -> ParseStep[str | None]:
        return (yield from source.copy_until(compile_markers(*closers), turn.add_reasoning))

    def render_text(self, text: str) -> str:
        return f"{text}\n"


def has_call_key_first(source: Source) -> ParseStep[bool]:
    """Whether an object or a list begins here whose first key may be that of a call. Nothing is consumed. The first key
    distinguishes a JSON answer from a call, so the answer need not wait for its end."""
    while not source.closed and _UNDECIDED(source.text, source.position):
        yield
    return bool(_FIRST_KEY(source.text, source.position))


def copy_rest(source: Source, emit: TextSink) -> ParseStep[None]:
    """Emit all text that is still to come."""
    while True:
        if source.position < len(source.text):
            emit(source.text[source.position :])
            source.position = len(source.text)
        if source.closed:
            return
        yield
