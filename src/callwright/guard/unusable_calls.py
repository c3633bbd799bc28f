"""Find the first unusable call of an answer before any call was sent, so that the model can be asked again.

A call is unusable if it cannot be read, or if its tool is unknown. Everything from it on is held back, including text
that was emitted for it: the answer is over, and the caller stops the generation. After a call was sent, nothing counts
as unusable, because what follows it cannot be retracted alone; events are then passed on unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from callwright.events import CallStart, Event, Finish, Malformed, TextDelta, UsageSeen

__all__ = ["UnusableCallDetector", "describe_unknown_tool"]


def describe_unknown_tool(name: str, tools: Iterable[str]) -> str:
    """Return a message for the model about a call of an unknown tool."""
    return f"there is no tool {name!r}; the tools are: {', '.join(tools)}"


class UnusableCallDetector:
    """Finds the first unusable call. With `strict`, all malformed text counts; otherwise only text that names one of
    the tools, because people write about markers too. With `allow_unknown`, unknown tools may be called."""

    def __init__(self, tools: Collection[str], *, strict: bool = False, allow_unknown: bool = False) -> None:
        self._tools = tools
        self._strict = strict
        self._allows_unknown = allow_unknown
        self._has_call = False
        self.reason = ""
        """Why the answer is unusable; empty if it is usable."""
        self.tool = ""
        """The tool that was meant, if only one is possible."""

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Return the events that are passed on."""
        out: list[Event] = []
        for event in events:
            if self.reason:
                if isinstance(event, Finish | UsageSeen):
                    out.append(event)
            elif isinstance(event, Malformed) and not self._has_call and self._check_malformed(event, out):
                out.append(msgspec.structs.replace(event, shown=False))
            elif isinstance(event, CallStart) and not self._has_call and self._is_unknown_tool(event):
                out.append(Malformed(event.name, self.reason))
            else:
                self._has_call = self._has_call or isinstance(event, CallStart)
                out.append(event)
        return out

    def _check_malformed(self, event: Malformed, before: list[Event]) -> bool:
        """Whether this makes the answer unusable; if so, record it and remove it from the text before it."""
        names = [name for name in self._tools if name in event.raw]
        if not (self._strict or names) or (event.shown and not _retract_text(event.raw, before)):
            return False
        self.reason = event.reason
        self.tool = names[0] if len(names) == 1 else ""
        return True

    def _is_unknown_tool(self, call: CallStart) -> bool:
        if self._allows_unknown or call.name in self._tools:
            return False
        self.reason = describe_unknown_tool(call.name, self._tools)
        return True


def _retract_text(raw: str, events: list[Event]) -> bool:
    """Remove a text from the end of the events, where its emitter has just put it; return False if it is not there."""
    at = len(events)
    while at and isinstance(events[at - 1], TextDelta):
        at -= 1
    text = "".join(event.text for event in events[at:] if isinstance(event, TextDelta))
    if not text.endswith(raw):
        return False
    before = text.removesuffix(raw)
    events[at:] = [TextDelta(before)] if before else []
    return True
