"""The model's answer as a person sees it while it is written: calm, and without our own signals in it.

What is shown is shown at most every 32 ms, text not before it has eight word characters, so that no lone `**` flashes
up. `[TASK_COMPLETE]`, in any case, is a signal for us and never seen, nor is the beginning of one. While a call is
being written there is no text, only how far it is. Pure: the time is handed in.
"""

from __future__ import annotations

import re

from callwright.agent.events import CallWriting, TextShown, ThinkingEnded, ThinkingShown
from callwright.events import CallDelta, CallEnd, CallStart, Event, ReasoningDelta, TextDelta

__all__ = ["PAUSE", "SIGNAL", "Shown", "Stream", "says_complete", "without_signal"]

PAUSE = 0.032
"""Seconds between two showings."""
_PROGRESS_PAUSE = 0.25
"""How far a call is changes nothing: it need not be told as often."""
_FIRST_WORDS = 8
_ENOUGH = 200
"""So many characters are shown whatever they are."""
_DEPTH = 8
"""How many beginnings of a signal may stand in each other."""

SIGNAL = "[TASK_COMPLETE]"
_SIGNAL = re.compile(re.escape(SIGNAL), re.IGNORECASE)
_WORD = re.compile(r"\w")

Shown = TextShown | ThinkingShown | ThinkingEnded | CallWriting


def says_complete(text: str) -> bool:
    """The model says that it is done."""
    return _SIGNAL.search(text) is not None


def without_signal(text: str) -> str:
    """The text as a person sees it, once it is whole."""
    return _ended(text)


def _split(text: str) -> tuple[str, str]:
    """What may be shown, and the end that may yet become the signal."""
    while _SIGNAL.search(text):
        text = _SIGNAL.sub("", text)  # again and again: what is left may join to another one
    end = len(text)
    for _ in range(_DEPTH):
        start = text.rfind("[", max(0, end - len(SIGNAL)), end)
        if start < 0 or not SIGNAL.startswith(text[start:end].upper()):
            break
        end = start
    return text[:end], text[end:]


def _ended(text: str) -> str:
    """What is shown of text that nothing follows: a signal that was cut off is left out as well."""
    shown, held = _split(text)
    return shown + held[: held.rfind("[")] if held else shown


class Stream:
    """Events of an answer in, what is shown of it out."""

    def __init__(self, content: str = "") -> None:
        self._content = content
        """The name of the file, where the whole answer is to become one: then none of it is shown as text."""
        self._shown_at = float("-inf")
        self._progress_at = float("-inf")
        self._waiting: list[Shown] = []
        self._text = ""
        self._thinking = ""
        self._begun = False
        self._thought_from: float | None = None
        self._thought_to = 0.0
        self._writing = ""
        self._characters = 0
        self._told = 0

    def feed(self, event: Event, now: float) -> list[Shown]:
        """Take an event of the model's answer; what is to be shown now."""
        match event:
            case ReasoningDelta():
                if self._thought_from is None:
                    self._thought_from = now
                self._thought_to = now
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
                self._writing, self._characters, self._told = event.name, 0, 0
            case CallDelta():
                self._characters += len(event.text)
            case CallEnd():
                self._writing = ""
            case _:
                pass
        return self.tick(now)

    def tick(self, now: float) -> list[Shown]:
        """What is to be shown by now."""
        if now - self._shown_at < PAUSE:
            return []
        self._queue_progress(now)
        return self._flush(now)

    @property
    def due(self) -> float | None:
        """When `tick` will have something to show, if nothing else comes."""
        return self._shown_at + PAUSE if self._waiting else None

    def close(self, now: float) -> list[Shown]:
        """The answer is over: what is left of it."""
        self._end_thinking()
        self._end_text()
        return self._flush(now)

    def _flush(self, now: float) -> list[Shown]:
        shown, self._waiting = self._waiting, []
        if shown:
            self._shown_at = now
        return shown

    def _queue_thinking(self) -> None:
        shown, self._thinking = _split(self._thinking)
        if shown:
            self._say(ThinkingShown, shown)

    def _end_thinking(self) -> None:
        if shown := _ended(self._thinking):
            self._say(ThinkingShown, shown)
        if self._thought_from is not None:
            self._waiting.append(ThinkingEnded(round(self._thought_to - self._thought_from, 3)))
        self._thought_from, self._thinking = None, ""

    def _queue_text(self) -> None:
        shown, held = _split(self._text)
        needed = 1 if self._begun else _FIRST_WORDS
        if len(_WORD.findall(shown)) < needed and len(shown) < _ENOUGH:
            self._text = shown + held
            return
        self._begun, self._text = True, held
        self._say(TextShown, shown)

    def _end_text(self) -> None:
        shown, self._text = _ended(self._text), ""
        if shown.strip():
            self._begun = True
            self._say(TextShown, shown)

    def _say(self, kind: type[TextShown] | type[ThinkingShown], text: str) -> None:
        if self._waiting and isinstance(last := self._waiting[-1], kind):
            self._waiting[-1] = kind(last.text + text)
        else:
            self._waiting.append(kind(text))

    def _queue_progress(self, now: float) -> None:
        if self._writing and self._characters != self._told and now - self._progress_at >= _PROGRESS_PAUSE:
            self._progress_at, self._told = now, self._characters
            self._waiting.append(CallWriting(name=self._writing, characters=self._characters))
