"""Prepares the model's answer for display while it is written: at a steady pace, and without control signals.

Updates are shown at most every 32 ms, and text not before it has eight word characters, so that no lone `**` flashes
up. `[TASK_COMPLETE]`, in any case, is a signal for the loop and never shown, nor is the beginning of one. While a call
is written there is no text, only its progress. Pure: the time is a parameter.
"""

from __future__ import annotations

import re

from callwright.agent.session_events import CallProgress, TextAppended, ThinkingAppended, ThinkingEnded
from callwright.events import CallDelta, CallEnd, CallStart, Event, ReasoningDelta, TextDelta

__all__ = [
    "COMPLETION_SIGNAL",
    "FLUSH_INTERVAL_S",
    "AnswerStream",
    "DisplayEvent",
    "has_completion_signal",
    "strip_completion_signal",
]

FLUSH_INTERVAL_S = 0.032
"""Seconds between two updates."""
_PROGRESS_INTERVAL_S = 0.25
"""Progress of a call is shown less often, since it changes little."""
_MIN_WORD_CHARS = 8
_MAX_BUFFERED_CHARS = 200
"""This many characters are shown in any case."""
_MAX_NESTED_SIGNALS = 8
"""How many partial signals may be nested."""

COMPLETION_SIGNAL = "[TASK_COMPLETE]"
_SIGNAL_PATTERN = re.compile(re.escape(COMPLETION_SIGNAL), re.IGNORECASE)
_WORD_CHAR = re.compile(r"\w")

DisplayEvent = TextAppended | ThinkingAppended | ThinkingEnded | CallProgress


def has_completion_signal(text: str) -> bool:
    """Return whether the model reports that it is done."""
    return _SIGNAL_PATTERN.search(text) is not None


def strip_completion_signal(text: str) -> str:
    """Return the whole text without the signal, for display."""
    return _strip_partial_signal(text)


def _split_partial_signal(text: str) -> tuple[str, str]:
    """Split text into what may be shown, and an end that may yet become the signal."""
    while _SIGNAL_PATTERN.search(text):
        text = _SIGNAL_PATTERN.sub("", text)  # repeatedly: the remaining parts may join to another one
    end = len(text)
    for _ in range(_MAX_NESTED_SIGNALS):
        start = text.rfind("[", max(0, end - len(COMPLETION_SIGNAL)), end)
        if start < 0 or not COMPLETION_SIGNAL.startswith(text[start:end].upper()):
            break
        end = start
    return text[:end], text[end:]


def _strip_partial_signal(text: str) -> str:
    """Return what is shown of a text that is complete: a partial signal at its end is dropped as well."""
    visible, rest = _split_partial_signal(text)
    return visible + rest[: rest.rfind("[")] if rest else visible


class AnswerStream:
    """Converts the events of an answer to events for display."""

    def __init__(self, content: str = "") -> None:
        self._content = content
        """The name of the file that the answer's text becomes; if set, none of the text is shown."""
        self._flushed_at = float("-inf")
        self._progress_at = float("-inf")
        self._pending: list[DisplayEvent] = []
        self._text = ""
        self._thinking = ""
        self._has_text = False
        self._thinking_since: float | None = None
        self._thinking_until = 0.0
        self._writing = ""
        self._characters = 0
        self._reported_characters = 0

    def feed(self, event: Event, now: float) -> list[DisplayEvent]:
        """Process an event of the model's answer and return what to show now."""
        match event:
            case ReasoningDelta():
                if self._thinking_since is None:
                    self._thinking_since = now
                self._thinking_until = now
                self._thinking += event.text
                self._queue_thinking()
            case TextDelta() if self._content:
                self._end_thinking()
                self._writing = self._content
                self._characters += len(event.text)
            case TextDelta():
                self._end_thinking()
                self._text += event.text
                self._queue_text()
            case CallStart():
                self._end_thinking()
                self._end_text()
                self._writing, self._characters, self._reported_characters = event.name, 0, 0
            case CallDelta():
                self._characters += len(event.text)
            case CallEnd():
                self._writing = ""
            case _:
                pass
        return self.tick(now)

    def tick(self, now: float) -> list[DisplayEvent]:
        """Return what to show now."""
        if now - self._flushed_at < FLUSH_INTERVAL_S:
            return []
        self._queue_progress(now)
        return self._flush(now)

    @property
    def next_flush_at(self) -> float | None:
        """When `tick` will have something to show, if no event comes first."""
        return self._flushed_at + FLUSH_INTERVAL_S if self._pending else None

    def close(self, now: float) -> list[DisplayEvent]:
        """Finish the answer and return what remains to be shown."""
        self._end_thinking()
        self._end_text()
        return self._flush(now)

    def _flush(self, now: float) -> list[DisplayEvent]:
        events, self._pending = self._pending, []
        if events:
            self._flushed_at = now
        return events

    def _queue_thinking(self) -> None:
        visible, self._thinking = _split_partial_signal(self._thinking)
        if visible:
            self._queue_delta(ThinkingAppended, visible)

    def _end_thinking(self) -> None:
        if visible := _strip_partial_signal(self._thinking):
            self._queue_delta(ThinkingAppended, visible)
        if self._thinking_since is not None:
            self._pending.append(ThinkingEnded(round(self._thinking_until - self._thinking_since, 3)))
        self._thinking_since, self._thinking = None, ""

    def _queue_text(self) -> None:
        visible, rest = _split_partial_signal(self._text)
        needed = 1 if self._has_text else _MIN_WORD_CHARS
        if len(_WORD_CHAR.findall(visible)) < needed and len(visible) < _MAX_BUFFERED_CHARS:
            self._text = visible + rest
            return
        self._has_text, self._text = True, rest
        self._queue_delta(TextAppended, visible)

    def _end_text(self) -> None:
        visible, self._text = _strip_partial_signal(self._text), ""
        if visible.strip():
            self._has_text = True
            self._queue_delta(TextAppended, visible)

    def _queue_delta(self, kind: type[TextAppended] | type[ThinkingAppended], text: str) -> None:
        if self._pending and isinstance(last := self._pending[-1], kind):
            self._pending[-1] = kind(last.text + text)
        else:
            self._pending.append(kind(text))

    def _queue_progress(self, now: float) -> None:
        if (
            self._writing
            and self._characters != self._reported_characters
            and now - self._progress_at >= _PROGRESS_INTERVAL_S
        ):
            self._progress_at, self._reported_characters = now, self._characters
            self._pending.append(CallProgress(name=self._writing, characters=self._characters))
