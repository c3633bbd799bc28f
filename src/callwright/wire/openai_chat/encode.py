"""Encode a chat completions stream in the one shape that every client accepts (W-4).

A role delta for each choice, then text, then for each call a start delta and argument deltas, a finish chunk with an
empty delta, the usage chunk if it was requested, `[DONE]`, and nothing after it. Kilo, opencode, Continue and the SDKs
each fail on another omission: index, id and type are in the start delta, and the name exactly once. Content never
shares a chunk with calls: Copilot Chat 0.66 drops it there.

A chunk is a prepared prefix, a delta and a prepared suffix; no dict is built for text or arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

from callwright.events import CallDelta, CallEnd, CallStart, Event, Finish, ReasoningDelta, TextDelta, UsageSeen
from callwright.model import Usage
from callwright.wire.argument_chunks import ArgumentChunker
from callwright.wire.base import ClientRequest, ErrorResponse, ResponseHead, StreamStyle
from callwright.wire.framing import (
    SSE_DATA,
    SSE_DONE,
    SSE_END,
    encode_comment,
    encode_json,
    encode_json_string,
    escape_line_ends,
)
from callwright.wire.openai_chat.chat_completion import build_usage, map_finish_reason, sum_usage
from callwright.wire.openai_errors import encode_error_body
from callwright.wire.text_batching import TextBatcher

__all__ = ["OpenAIChatEncoder"]

_OPEN_CHUNK_END = b',"finish_reason":null}]}\n\n'
_TEXT_CHUNK_END = b"}" + _OPEN_CHUNK_END
_UNFINISHED_TURN = ErrorResponse(
    status=500, message="the turn ended before its finish", fault="gateway", kind="server_error"
)


class OpenAIChatEncoder:
    """Encodes one client's stream."""

    def __init__(self, client_request: ClientRequest, head: ResponseHead, style: StreamStyle) -> None:
        about = {"id": f"chatcmpl-{head.id}", "object": "chat.completion.chunk", "created": head.created}
        self._chunk_prefix = (
            SSE_DATA + encode_json(about)[:-1] + b',"model":' + encode_json_string(head.model) + b',"choices":['
        )
        self._choices = [
            _ChoiceEncoder(self._chunk_prefix, at, client_request, style) for at in range(client_request.choices)
        ]
        self._include_usage = client_request.include_usage
        self._heartbeat = {
            "comment": encode_comment("keep-alive"),
            "event": self._choices[0].format_chunk(b"{}"),
            "none": b"",
        }[style.heartbeat]
        self._is_over = False

    @property
    def has_pending(self) -> bool:
        """Whether text waits to be joined with what follows."""
        return any(choice.has_pending for choice in self._choices)

    def begin_stream(self) -> bytes:
        """Return the role of each choice."""
        return b"".join(choice.format_chunk(b'{"role":"assistant","content":""}') for choice in self._choices)

    def encode_events(self, events: Sequence[Event], choice: int = 0) -> bytes:
        """Encode the next events of a choice; events after its end are dropped."""
        if self._is_over:
            return b""
        out: list[bytes] = []
        write = self._choices[choice].write_event
        for event in events:
            write(event, out)
        return b"".join(out)

    def flush(self) -> bytes:
        """Return the text that was held back."""
        return b"" if self._is_over else b"".join(choice.flush() for choice in self._choices)

    def encode_heartbeat(self) -> bytes:
        """Return a comment, or an empty delta for clients that count only events."""
        return b"" if self._is_over else self._heartbeat

    def fail_stream(self, error: ErrorResponse) -> bytes:
        """End every open choice with `error`, then send the error.

        In this order Copilot Chat 0.66 shows the message and runs no partial call; the error alone would be
        overwritten.
        """
        return self._close_stream(error, "")

    def end_stream(self, comment: str = "") -> bytes:
        """Return the usage and the end; a failure if a choice has no finish."""
        return self._close_stream(
            None if all(choice.is_finished for choice in self._choices) else _UNFINISHED_TURN, comment
        )

    def _close_stream(self, error: ErrorResponse | None, remark: str) -> bytes:
        if self._is_over:
            return b""
        self._is_over = True
        out: list[bytes] = []
        if error is not None:
            for choice in self._choices:
                choice.fail_choice(out)
            out += [SSE_DATA, escape_line_ends(encode_error_body(error)), SSE_END]
        elif self._include_usage:
            usage = sum_usage(choice.usage for choice in self._choices)
            out += [self._chunk_prefix, b'],"usage":', encode_json(build_usage(usage)), b"}", SSE_END]
        if remark:
            out.append(encode_comment(remark))
        return b"".join([*out, SSE_DONE])


class _ChoiceEncoder:
    """One choice: what is held of its text, where its calls stand, whether it is finished."""

    def __init__(self, chunk: bytes, index: int, client_request: ClientRequest, style: StreamStyle) -> None:
        self._chunk_prefix = chunk + b'{"index":%d,"delta":' % index
        self._text_prefix = self._chunk_prefix + b'{"content":'
        self._functions = client_request.functions
        self._begin_calls = style.begin_tool_calls and not client_request.functions
        self._chunker = ArgumentChunker(style.arguments)
        self._fields = [encode_json_string(name) + b":" for name in style.reasoning_fields]
        self._text_batcher, self._reasoning_batcher = TextBatcher(), TextBatcher()
        self._active_batcher = self._text_batcher
        self._argument_prefix: bytes | None = None
        """A chunk of the open call before the arguments in it; None if the call is not sent …"""
        self._argument_suffix = b""
        """… and after them."""
        self._has_calls = self._has_cut_calls = False
        self.is_finished = False
        self.usage: Usage | None = None

    def format_chunk(self, delta: bytes) -> bytes:
        """Format a chunk of an open choice."""
        return self._chunk_prefix + delta + _OPEN_CHUNK_END

    @property
    def has_pending(self) -> bool:
        return self._active_batcher.has_pending

    def write_event(self, event: Event, out: list[bytes]) -> None:
        """Write one event. Malformed text is not sent; if it was shown, it was sent as text."""
        if self.is_finished:
            return
        match event:
            case TextDelta():
                self._write_text(self._text_batcher, event.text, out)
            case ReasoningDelta():
                if self._fields:
                    self._write_text(self._reasoning_batcher, event.text, out)
            case CallDelta():
                if (prefix := self._argument_prefix) is not None:
                    suffix = self._argument_suffix
                    for chunk in self._chunker.feed(event.text):
                        out.append(prefix + encode_json_string(chunk) + suffix)
            case CallStart():
                self._start_call(event, out)
            case CallEnd():
                self._end_call(event, out)
            case UsageSeen():
                self.usage = event.usage
            case Finish():
                self._drain_text(out)
                reason = map_finish_reason(
                    event.reason,
                    has_calls=self._has_calls,
                    has_cut_calls=self._has_cut_calls,
                    legacy_functions=self._functions,
                )
                self._finish_choice(reason, out)
            case _:
                pass

    def flush(self) -> bytes:
        piece = self._active_batcher.flush()
        return self._format_text_chunk(self._active_batcher, piece) if piece else b""

    def fail_choice(self, out: list[bytes]) -> None:
        """End with `error`, unless the choice is over."""
        if not self.is_finished:
            self._drain_text(out)
            self._finish_choice("error", out)

    def _finish_choice(self, reason: str, out: list[bytes]) -> None:
        self.is_finished = True
        out.append(self._chunk_prefix + b'{},"finish_reason":"' + reason.encode() + b'"}]}\n\n')

    # ── text ─────────────────────────────────────────────────────────────────────────────────────

    def _write_text(self, pieces: TextBatcher, text: str, out: list[bytes]) -> None:
        if pieces is not self._active_batcher:
            self._drain_text(out)
            self._active_batcher = pieces
        piece = pieces.feed(text)
        if piece:
            out.append(self._format_text_chunk(pieces, piece))

    def _drain_text(self, out: list[bytes]) -> None:
        out += [self._format_text_chunk(self._active_batcher, piece) for piece in self._active_batcher.drain()]

    def _format_text_chunk(self, pieces: TextBatcher, piece: str) -> bytes:
        text = encode_json_string(piece)
        if pieces is self._text_batcher:
            return self._text_prefix + text + _TEXT_CHUNK_END
        return self.format_chunk(b"{" + b",".join([field + text for field in self._fields]) + b"}")

    # ── calls ────────────────────────────────────────────────────────────────────────────────────

    def _start_call(self, event: CallStart, out: list[bytes]) -> None:
        self._drain_text(out)
        if self._begin_calls:
            self._begin_calls = False
            out.append(self.format_chunk(b'{"beginToolCalls":{"toolCallIds":[' + encode_json_string(event.id) + b"]}}"))
        function = b'{"name":' + encode_json_string(event.name) + b',"arguments":""}'
        if not self._functions:
            start = b'{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":%s}]}'
            out.append(self.format_chunk(start % (event.index, encode_json_string(event.id), function)))
            opening = b'{"tool_calls":[{"index":%d,"function":{"arguments":' % event.index
            self._argument_prefix, self._argument_suffix = self._chunk_prefix + opening, b"}}]}" + _OPEN_CHUNK_END
        elif event.index == 0:
            out.append(self.format_chunk(b'{"function_call":' + function + b"}"))
            self._argument_prefix = self._chunk_prefix + b'{"function_call":{"arguments":'
            self._argument_suffix = b"}}" + _OPEN_CHUNK_END
        else:
            # The legacy field has room for one call.
            self._argument_prefix = None

    def _end_call(self, event: CallEnd, out: list[bytes]) -> None:
        if (prefix := self._argument_prefix) is not None:
            suffix = self._argument_suffix
            out += [prefix + encode_json_string(chunk) + suffix for chunk in self._chunker.drain()]
        self._has_calls = self._has_calls or event.complete
        self._has_cut_calls = self._has_cut_calls or not event.complete
