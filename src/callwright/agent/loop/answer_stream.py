"""The model's answer as a person sees it while it is written: calm, and without our own signals in it.

What is shown is shown at most every 32 ms, text not before it has eight word characters, so that no lone `**` flashes
up. `[TASK_COMPLETE]`, in any case, is a signal for us and never seen, nor is the beginning of one. While a call is
being written there is no text, only how far it is. Pure: the time is handed in.
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
"""Seconds between two showings."""
_PROGRESS_INTERVAL_S = 0.25
"""How far a call is changes nothing: it need not be told as often."""
_MIN_WORD_CHARS = 8
_MAX_BUFFERED_CHARS = 200
"""So many characters are shown whatever they are."""
_MAX_NESTED_SIGNALS = 8
"""How many beginnings of a signal may stand in each other."""

COMPLETION_SIGNAL = "[TASK_COMPLETE]"
_SIGNAL_PATTERN = re.compile(re.escape(COMPLETION_SIGNAL), re.IGNORECASE)
_WORD_CHAR = re.compile(r"\w")

DisplayEvent = TextAppended | ThinkingAppended | ThinkingEnded | CallProgress


def has_completion_signal(text: str) -> bool:
    """The model says that it is done."""
    return _SIGNAL_PATTERN.search(text) is not None


def strip_completion_signal(text: str) -> str:
    """The text as a person sees it, once it is whole."""
    return _strip_partial_signal(text)


def _split_partial_signal(text: str) -> tuple[str, str]:
    """What may be shown, and the end that may yet become the signal."""
    while _SIGNAL_PATTERN.search(text):
        text = _SIGNAL_PATTERN.sub("", text)  # again and again: what is left may join to another one
    end = len(text)
    for _ in range(_MAX_NESTED_SIGNALS):
        start = text.rfind("[", max(0, end - len(COMPLETION_SIGNAL)), end)
        if start < 0 or not COMPLETION_SIGNAL.startswith(text[start:end].upper()):
            break
        end = start
    return text[:end], text[end:]


def _strip_partial_signal(text: str) -> str:
    """What is shown of text that nothing follows: a signal that was cut off is left out as well."""
    shown, held = _split_partial_signal(text)
    return shown + held[: held.rfind("[")] if held else shown


class AnswerStream:
    """Events of an answer in, what is shown of it out."""

    def __init__(self, content: str = "") -> None:
        self._content = content
        """The name of the file, where the whole answer is to become one: then none of it is shown as text."""
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
        """Take an event of the model's answer; what is to be shown now."""
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
        """What is to be shown by now."""
        if now - self._flushed_at < FLUSH_INTERVAL_S:
            return []
        self._queue_progress(now)
        return self._flush(now)

    @property
    def next_flush_at(self) -> float | None:
        """When `tick` will have something to show, if nothing else comes."""
        return self._flushed_at + FLUSH_INTERVAL_S if self._pending else None

    def close(self, now: float) -> list[DisplayEvent]:
        """The answer is over: what is left of it."""
        self._end_thinking()
        self._end_text()
        return self._flush(now)

    def _flush(self, now: float) -> list[DisplayEvent]:
        shown, self._pending = self._pending, []
        if shown:
            self._flushed_at = now
        return shown

    def _queue_thinking(self) -> None:
        shown, self._thinking = _split_partial_signal(self._thinking)
        if shown:
            self._queue_delta(ThinkingAppended, shown)

    def _end_thinking(self) -> None:
        if shown := _strip_partial_signal(self._thinking):
            self._queue_delta(ThinkingAppended, shown)
        if self._thinking_since is not None:
            self._pending.append(ThinkingEnded(round(self._thinking_until - self._thinking_since, 3)))
        self._thinking_since, self._thinking = None, ""

    def _queue_text(self) -> None:
        shown, held = _split_partial_signal(self._text)
        needed = 1 if self._has_text else _MIN_WORD_CHARS
        if len(_WORD_CHAR.findall(shown)) < needed and len(shown) < _MAX_BUFFERED_CHARS:
            self._text = shown + held
            return
        self._has_text, self._text = True, held
        self._queue_delta(TextAppended, shown)

    def _end_text(self) -> None:
        shown, self._text = _strip_partial_signal(self._text), ""
        if shown.strip():
            self._has_text = True
            self._queue_delta(TextAppended, shown)

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
