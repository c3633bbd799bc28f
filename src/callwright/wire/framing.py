"""Framing: server-sent events and lines of JSON, cut out of bytes and written back.

Readers take bytes cut anywhere, also inside a character or a line end, and give back whole frames. They hold one
frame at most, of `LIMIT` bytes; more is a `WireError`, and takes no frames with it as long as a read is no longer than
that. Each byte is looked at a fixed number of times, however small the pieces are that it comes in.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from callwright.errors import WireError

__all__ = [
    "DATA",
    "DONE",
    "END",
    "LIMIT",
    "UNREADABLE",
    "Frame",
    "LineReader",
    "SseReader",
    "comment",
    "encoded",
    "one_line",
    "quoted",
]

LIMIT = 16 * 1024 * 1024
DATA = b"data: "
END = b"\n\n"
DONE = b"data: [DONE]\n\n"

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding JSON from strangers may raise: msgspec leaves bad UTF-8 inside a string, and depth, to Python."""

Frame = tuple[bytes, bytes]
"""One server-sent event: its name, often empty, and its data."""

_encode = msgspec.json.Encoder().encode
# Legal in JSON, and line ends to whoever cuts decoded text with `str.splitlines`, as httpx's `iter_lines` does.
_LINE_ENDS = ((b"\xc2\x85", rb"\u0085"), (b"\xe2\x80\xa8", rb"\u2028"), (b"\xe2\x80\xa9", rb"\u2029"))


def quoted(text: str) -> bytes:
    """A text as a JSON string that may stand in a line: no line end of any kind is left in it."""
    raw = encoded(text)
    return raw if text.isascii() else one_line(raw)


def one_line(raw: bytes) -> bytes:
    """JSON as one line, whatever the reader takes for a line end."""
    for end, escape in _LINE_ENDS:
        raw = raw.replace(end, escape)
    return raw


def encoded(value: Any) -> bytes:
    """A value as JSON. Half of a surrogate pair, which no UTF-8 can carry, becomes a replacement character."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def comment(text: str) -> bytes:
    """A comment in a stream of server-sent events: clients skip it."""
    return b": " + " ".join(text.split()).encode("utf-8", "replace") + END


class LineReader:
    """Cuts bytes into lines. LF, CRLF and CR end a line, CR as soon as it is clear that no LF follows."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._held = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that these bytes end, without their line ends."""
        end = data.rfind(b"\n") + 1
        if not end:
            self._hold(data)
            return []
        block = data[:end]
        if self._held:
            block = bytes(self._held) + block
            self._held.clear()
        if end < len(data):
            self._hold(data[end:])
        return block.splitlines()

    def close(self) -> list[bytes]:
        """The last line, if it has no end."""
        rest = bytes(self._held)
        self._held.clear()
        return rest.splitlines()

    @property
    def held(self) -> int:
        """How many bytes wait for their line's end."""
        return len(self._held)

    def _hold(self, data: bytes) -> None:
        self._held += data
        if len(self._held) > self._limit:
            raise WireError(f"a line of the stream is longer than {self._limit} bytes")


class SseReader:
    """Cuts bytes into server-sent events. An event without the empty line after it counts at the end of the stream."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._lines = LineReader(limit)
        self._name = b""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[Frame]:
        """The events that these bytes end."""
        return self._read(self._lines.feed(data))

    def close(self) -> list[Frame]:
        """The event that the stream broke off in, if it has data."""
        return self._read([*self._lines.close(), b""])

    def _read(self, lines: list[bytes]) -> list[Frame]:
        frames: list[Frame] = []
        for line in lines:
            if not line:
                if self._data:
                    frames.append((self._name, self._data[0] if len(self._data) == 1 else b"\n".join(self._data)))
                    self._data.clear()
                    self._size = 0
                self._name = b""
            elif line.startswith(DATA):
                self._size += len(line)
                self._data.append(line[6:])
            elif line.startswith(b"data:"):
                self._add(line[5:])
            elif line.startswith(b"event:"):
                self._name = line[6:].strip()
            elif line.startswith(b"error:"):
                # llama.cpp's server wrote errors as a field of their own (`server_sent_event(sink, "error", …)`, 2025).
                self._name = b"error"
                self._add(line[6:])
            if self._size > self._limit:
                raise WireError(f"an event of the stream is longer than {self._limit} bytes")
        if self._size + self._lines.held > self._limit:
            raise WireError(f"an event of the stream is longer than {self._limit} bytes")
        return frames

    def _add(self, data: bytes) -> None:
        self._size += len(data) + 1
        self._data.append(data)
