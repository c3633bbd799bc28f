"""Event reader: what every reader does with a failure in the middle of its bytes, whatever the wire.

The bytes of one read may contain text and then an error or garbage. The text is returned first and the error is raised
by the next call, so a failure never loses the output before it. The cost is one `try` per read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from callwright.errors import BackendError, WireError
from callwright.events import Event

__all__ = ["EventReader"]


class EventReader(ABC):
    """A `WireReader` without the decoding, which the reader of a wire implements, event by event."""

    _pending_error: BackendError | WireError | None = None
    """The error that followed the events of the last call."""

    def feed(self, data: bytes) -> list[Event]:
        """Return the events of these bytes."""
        self.raise_pending_error()
        out: list[Event] = []
        try:
            self._process_data(data, out)
        except (BackendError, WireError) as error:
            self._store_error(error, out)
        return out

    def close(self) -> list[Event]:
        """End the stream and return the last events."""
        self.raise_pending_error()
        out: list[Event] = []
        try:
            self._process_end(out)
        except (BackendError, WireError) as error:
            self._store_error(error, out)
        return out

    def raise_pending_error(self) -> None:
        """Raise the error that followed the events of the last call, if there is one."""
        if self._pending_error is not None:
            error, self._pending_error = self._pending_error, None
            raise error

    @abstractmethod
    def _process_data(self, data: bytes, out: list[Event]) -> None:
        """Add the events of these bytes; raise if the server failed."""

    @abstractmethod
    def _process_end(self, out: list[Event]) -> None:
        """Add the last events; raise if the turn is not over."""

    def _store_error(self, error: BackendError | WireError, out: list[Event]) -> None:
        if not out:
            raise error
        self._pending_error = error
