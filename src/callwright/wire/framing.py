"""Framing: split bytes into server-sent events and lines of JSON, and write them.

Readers accept bytes that are split anywhere, even inside a character or a line end, and return complete frames. They
buffer at most one frame of `MAX_FRAME_BYTES` bytes; more raises a `WireError`, which loses no frames as long as a read
is no longer than that. Each byte is examined a fixed number of times, however small the pieces are.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from callwright.errors import WireError

__all__ = [
    "JSON_DECODE_ERRORS",
    "MAX_FRAME_BYTES",
    "SSE_DATA",
    "SSE_DONE",
    "SSE_END",
    "LineReader",
    "SseEvent",
    "SseReader",
    "encode_comment",
    "encode_json",
    "encode_json_string",
    "escape_line_ends",
]

MAX_FRAME_BYTES = 16 * 1024 * 1024
SSE_DATA = b"data: "
SSE_END = b"\n\n"
SSE_DONE = b"data: [DONE]\n\n"

JSON_DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of decoding untrusted JSON: msgspec leaves invalid UTF-8 inside a string, and depth, to Python."""

SseEvent = tuple[bytes, bytes]
"""One server-sent event: its name, often empty, and its data."""

_encode_value = msgspec.json.Encoder().encode
# Valid in JSON, but line ends for code that splits decoded text with `str.splitlines`, like httpx's `iter_lines`.
_LINE_END_ESCAPES = ((b"\xc2\x85", rb"\u0085"), (b"\xe2\x80\xa8", rb"\u2028"), (b"\xe2\x80\xa9", rb"\u2029"))


def encode_json_string(text: str) -> bytes:
    """Encode a text as a JSON string without any kind of line end."""
    raw = encode_json(text)
    return raw if text.isascii() else escape_line_ends(raw)


def escape_line_ends(raw: bytes) -> bytes:
    """Return JSON as one line, whatever the reader treats as a line end."""
    for end, escape in _LINE_END_ESCAPES:
        raw = raw.replace(end, escape)
    return raw


def encode_json(value: Any) -> bytes:
    """Encode a value as JSON. Half of a surrogate pair, which UTF-8 cannot encode, becomes a replacement character."""
    try:
        return _encode_value(value)
    except UnicodeEncodeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def encode_comment(text: str) -> bytes:
    """Encode a comment in a stream of server-sent events, which clients skip."""
    return b": " + " ".join(text.split()).encode("utf-8", "replace") + SSE_END


class LineReader:
    """Splits bytes into lines. LF, CRLF and CR end a line, CR as soon as it is clear that no LF follows."""

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that these bytes end, without their line ends."""
        end = data.rfind(b"\n") + 1
        if not end:
            self._buffer_data(data)
            return []
        block = data[:end]
        if self._buffer:
            block = bytes(self._buffer) + block
            self._buffer.clear()
        if end < len(data):
            self._buffer_data(data[end:])
        return block.splitlines()

    def close(self) -> list[bytes]:
        """Return the last line, if it has no line end."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest.splitlines()

    @property
    def pending_bytes(self) -> int:
        """How many bytes wait for the end of their line."""
        return len(self._buffer)

    def _buffer_data(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > self._limit:
            raise WireError(f"a line of the stream is longer than {self._limit} bytes")


class SseReader:
    """Splits bytes into server-sent events. At the end of the stream, an event without its empty line counts too."""

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._limit = limit
        self._lines = LineReader(limit)
        self._name = b""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[SseEvent]:
        """Return the events that these bytes end."""
        return self._parse_lines(self._lines.feed(data))

    def close(self) -> list[SseEvent]:
        """Return the event that the stream ended in, if it has data."""
        return self._parse_lines([*self._lines.close(), b""])

    def _parse_lines(self, lines: list[bytes]) -> list[SseEvent]:
        frames: list[SseEvent] = []
        for line in lines:
            if not line:
                if self._data:
                    frames.append((self._name, self._data[0] if len(self._data) == 1 else b"\n".join(self._data)))
                    self._data.clear()
                    self._size = 0
                self._name = b""
            elif line.startswith(SSE_DATA):
                self._size += len(line)
                self._data.append(line[6:])
            elif line.startswith(b"data:"):
                self._add_data(line[5:])
            elif line.startswith(b"event:"):
                self._name = line[6:].strip()
            elif line.startswith(b"error:"):
                # llama.cpp's server wrote errors as a field of their own (`server_sent_event(sink, "error", …)`, 2025).
                self._name = b"error"
                self._add_data(line[6:])
            if self._size > self._limit:
                raise WireError(f"an event of the stream is longer than {self._limit} bytes")
        if self._size + self._lines.pending_bytes > self._limit:
            raise WireError(f"an event of the stream is longer than {self._limit} bytes")
        return frames

    def _add_data(self, data: bytes) -> None:
        self._size += len(data) + 1
        self._data.append(data)
