"""Event reader: what every reader does with a failure in the middle of its bytes, whatever the wire.

The bytes of one read may contain text and then an error or garbage. The text is returned first and the error is raised
by the next call, so a failure never loses the output before it. The cost is one `try` per read.

A server that cuts its output into tokens may send the two halves of a surrogate pair in two strings. Neither is valid
JSON for msgspec; both are read, and joined.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TypeVar

import msgspec

from callwright.errors import BackendError, WireError
from callwright.events import CallDelta, Event, Finish, ReasoningDelta, TextDelta
from callwright.text.surrogates import has_open_half, join_halves
from callwright.wire.framing import JSON_DECODE_ERRORS

__all__ = ["EventReader"]


T = TypeVar("T")
_Delta = TextDelta | ReasoningDelta | CallDelta


class EventReader(ABC):
    """A `WireReader` without the decoding, which the reader of a wire implements, event by event."""

    _pending_error: BackendError | WireError | None = None
    """The error that followed the events of the last call."""
    _half_joiner: _HalfJoiner | None = None
    """Joins halves of pairs, once a server has sent one."""

    def feed(self, data: bytes) -> list[Event]:
        """Return the events of these bytes."""
        self.raise_pending_error()
        out: list[Event] = []
        try:
            self._process_data(data, out)
        except (BackendError, WireError) as error:
            self._store_error(error, out)
        return out if self._half_joiner is None else self._half_joiner.join_events(out)

    def close(self) -> list[Event]:
        """End the stream and return the last events."""
        self.raise_pending_error()
        out: list[Event] = []
        try:
            self._process_end(out)
        except (BackendError, WireError) as error:
            self._store_error(error, out)
        return out if self._half_joiner is None else self._half_joiner.join_events(out, is_last=True)

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

    def _decode_json(self, data: bytes, decoder: msgspec.json.Decoder[T]) -> T:
        """Decode JSON from the server; raise one of `JSON_DECODE_ERRORS` if it is invalid."""
        try:
            return decoder.decode(data)
        except JSON_DECODE_ERRORS:
            if b"\\ud" not in data.lower():
                raise
            try:
                value = json.loads(data)
            except ValueError:
                value = None
            if value is None:
                raise
        self._half_joiner = self._half_joiner or _HalfJoiner()
        try:
            return msgspec.convert(value, decoder.type)
        except msgspec.ValidationError:
            # Raw JSON cannot contain a half; a whole object of arguments is not split, so nothing could complete it.
            return decoder.decode(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))

    def _store_error(self, error: BackendError | WireError, out: list[Event]) -> None:
        if not out:
            raise error
        self._pending_error = error


class _HalfJoiner:
    """Holds back the first half of a pair at the end of a delta, until the next delta of its kind or its end."""

    def __init__(self) -> None:
        self._halves: dict[object, _Delta] = {}

    def join_events(self, events: list[Event], *, is_last: bool = False) -> list[Event]:
        """Return the events with all pairs joined."""
        out: list[Event] = []
        for event in events:
            if not isinstance(event, TextDelta | ReasoningDelta | CallDelta):
                out += self._release_halves(None if isinstance(event, Finish) else getattr(event, "index", -1))
                out.append(event)
                continue
            key = event.index if isinstance(event, CallDelta) else type(event)
            half = self._halves.pop(key, None)
            if not isinstance(event, CallDelta):
                out += self._release_halves(-1)
            text = join_halves((half.text if half else "") + event.text)
            if has_open_half(text):
                self._halves[key] = msgspec.structs.replace(event, text=text[-1])
                text = text[:-1]
            if text:
                out.append(msgspec.structs.replace(event, text=text))
        return [*out, *self._release_halves(None)] if is_last else out

    def _release_halves(self, index: int | None) -> list[Event]:
        """Return the halves of text and of the call with this index, which stay alone; of all with None."""
        keys = [key for key in self._halves if index is None or key == index or not isinstance(key, int)]
        return [self._halves.pop(key) for key in keys]
