"""The first flaw of an answer, found while nothing of a call has gone out: the model can be asked again.

A flaw is a call that cannot be read, or one of a tool that was not offered. Everything from it on stays back, what was
shown of it as text too: the answer is over, and whoever feeds the stage ends the generation. After a call has gone by
there are no flaws, because what follows it cannot be taken back alone; events pass then as they come.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from callwright.events import CallStart, Event, Finish, Malformed, TextDelta, UsageSeen

__all__ = ["UnusableCallDetector", "describe_unknown_tool"]


def describe_unknown_tool(name: str, tools: Iterable[str]) -> str:
    """What is wrong with a call of a tool that is not there, for the model to read."""
    return f"there is no tool {name!r}; the tools are: {', '.join(tools)}"


class UnusableCallDetector:
    """Finds it. `strict`: whatever is malformed counts, else only what names one of the tools: people write about
    markers too. `strangers`: tools that were not offered may be called."""

    def __init__(self, tools: Collection[str], *, strict: bool = False, allow_unknown: bool = False) -> None:
        self._tools = tools
        self._strict = strict
        self._allows_unknown = allow_unknown
        self._has_call = False
        self.reason = ""
        """What is wrong; empty while nothing is …"""
        self.tool = ""
        """… and the offered tool that was meant, where only one can be."""

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """The events that may go on."""
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
        """Whether this is a flaw; if so it is noted, and taken out of the text before it."""
        named = [name for name in self._tools if name in event.raw]
        if not (self._strict or named) or (event.shown and not _retract_text(event.raw, before)):
            return False
        self.reason = event.reason
        self.tool = named[0] if len(named) == 1 else ""
        return True

    def _is_unknown_tool(self, call: CallStart) -> bool:
        if self._allows_unknown or call.name in self._tools:
            return False
        self.reason = describe_unknown_tool(call.name, self._tools)
        return True


def _retract_text(raw: str, events: list[Event]) -> bool:
    """Take a text off the end of the events, where whoever shows it has just put it; false if it is not there."""
    at = len(events)
    while at and isinstance(events[at - 1], TextDelta):
        at -= 1
    text = "".join(event.text for event in events[at:] if isinstance(event, TextDelta))
    if not text.endswith(raw):
        return False
    before = text.removesuffix(raw)
    events[at:] = [TextDelta(before)] if before else []
    return True
