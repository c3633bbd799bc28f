"""Hold text back until a required call begins, so that a turn without the call can be retried."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.errors import BackendError
from callwright.events import CallStart, Event, TextDelta
from callwright.text.source import DEFAULT_LIMIT

__all__ = ["RequiredCallGate"]


class RequiredCallGate:
    """Holds the text of a turn back until its first call begins."""

    def __init__(self) -> None:
        self.is_met = False
        self._pending: list[Event] = []
        self._size = 0

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Return the events that are passed on. Text that is not followed by a call is not among them: see `text`."""
        out: list[Event] = []
        for event in events:
            if not self.is_met and isinstance(event, CallStart):
                self.is_met = True
                out += self._pending
                self._pending = []
            if not self.is_met and isinstance(event, TextDelta):
                self._buffer_text(event)
            else:
                out.append(event)
        return out

    def _buffer_text(self, event: TextDelta) -> None:
        self._pending.append(event)
        self._size += len(event.text)
        if self._size > DEFAULT_LIMIT:
            raise BackendError(
                f"the model wrote more than {DEFAULT_LIMIT} characters before the required call",
                kind="unusable",
            )

    @property
    def text(self) -> str:
        """The text that was held back."""
        return "".join(event.text for event in self._pending if isinstance(event, TextDelta))
