"""Calls written into the text as well, for clients that read them there.

Obsidian Copilot before 3.2.0 and Kilo Code before its rewrite on opencode look for XML in the content and do not run
native calls (both from their source, as the profiles say). The calls themselves go on unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from callwright.events import CallDelta, CallEnd, CallStart, Event, TextDelta
from callwright.model import ToolCall

__all__ = ["CallsAsText"]


class CallsAsText:
    """Adds each complete call to the text, in the form that `render` returns."""

    def __init__(self, render: Callable[[ToolCall], str], delimiter: str = "") -> None:
        self._render = render
        self._delimiter = delimiter or "\n"
        self._call_start: CallStart | None = None
        self._fragments: list[str] = []
        self._gap = ""
        """The text before the next call: nothing at the start, a new line after text, the delimiter after calls."""

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Return the events, with the text of each call after its end."""
        out: list[Event] = []
        for event in events:
            out.append(event)
            match event:
                case CallStart():
                    self._call_start, self._fragments = event, []
                case CallDelta():
                    self._fragments.append(event.text)
                case CallEnd(complete=True) if self._call_start:
                    call = ToolCall(self._call_start.id, self._call_start.name, "".join(self._fragments))
                    out.append(TextDelta(self._gap + self._render(call)))
                    self._gap = self._delimiter
                case TextDelta():
                    self._gap = "\n"
                case _:
                    pass
        return out
