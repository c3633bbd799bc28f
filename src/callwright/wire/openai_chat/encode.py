"""A chat completions stream, written in the one shape that every client takes (W-4).

A role delta for each choice, then text, then for each call a start delta and argument deltas, a finish chunk with an
empty delta, the usage chunk if it was asked for, `[DONE]`, and nothing after it. Kilo, opencode, Continue and the SDKs
each break on another omission: index, id and type stand in the start delta and the name exactly once. Content never
shares a chunk with calls: Copilot Chat 0.66 drops it there.

A chunk is a prepared prefix, a delta and a prepared suffix; no dict is built for text or arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

from callwright.events import CallDelta, CallEnd, CallStart, Event, Finish, ReasoningDelta, TextDelta, UsageSeen
from callwright.model import Usage
from callwright.wire.base import Ask, Head, Problem, Style
from callwright.wire.framing import DATA, DONE, END, comment, encoded, one_line, quoted
from callwright.wire.openai_chat.whole import finish_reason, usage_object, used
from callwright.wire.openai_errors import error_body
from callwright.wire.pieces import Pieces

__all__ = ["ChatEncoder"]

_GOES_ON = b',"finish_reason":null}]}\n\n'
_AFTER_TEXT = b"}" + _GOES_ON
_ENDED = Problem(status=500, message="the turn ended before its finish", fault="gateway", kind="server_error")


class ChatEncoder:
    """One client's stream."""

    def __init__(self, ask: Ask, head: Head, style: Style) -> None:
        about = {"id": f"chatcmpl-{head.id}", "object": "chat.completion.chunk", "created": head.created}
        self._chunk = DATA + encoded(about)[:-1] + b',"model":' + quoted(head.model) + b',"choices":['
        self._choices = [_Choice(self._chunk, at, ask, style) for at in range(ask.choices)]
        self._include_usage = ask.include_usage
        self._heartbeat = {
            "comment": comment("keep-alive"),
            "event": self._choices[0].chunk(b"{}"),
            "none": b"",
        }[style.heartbeat]
        self._is_over = False

    @property
    def holding(self) -> bool:
        """Whether text waits to be joined with what follows."""
        return any(choice.holding for choice in self._choices)

    def begin(self) -> bytes:
        """The role of each choice."""
        return b"".join(choice.chunk(b'{"role":"assistant","content":""}') for choice in self._choices)

    def encode(self, events: Sequence[Event], choice: int = 0) -> bytes:
        """A choice's next events; what comes after its end is dropped."""
        if self._is_over:
            return b""
        out: list[bytes] = []
        write = self._choices[choice].write
        for event in events:
            write(event, out)
        return b"".join(out)

    def flush(self) -> bytes:
        """The text that was held back."""
        return b"" if self._is_over else b"".join(choice.flush() for choice in self._choices)

    def heartbeat(self) -> bytes:
        """A comment, or an empty delta for clients that count only events."""
        return b"" if self._is_over else self._heartbeat

    def fail(self, problem: Problem) -> bytes:
        """End every open choice on `error`, then say why.

        In this order Copilot Chat 0.66 shows the message and runs no half call; the error alone would be overwritten.
        """
        return self._close(problem, "")

    def end(self, comment: str = "") -> bytes:
        """The usage and the end; a failure if a choice has no finish."""
        return self._close(None if all(choice.finished for choice in self._choices) else _ENDED, comment)

    def _close(self, problem: Problem | None, remark: str) -> bytes:
        if self._is_over:
            return b""
        self._is_over = True
        out: list[bytes] = []
        if problem is not None:
            for choice in self._choices:
                choice.fail(out)
            out += [DATA, one_line(error_body(problem)), END]
        elif self._include_usage:
            usage = used(choice.usage for choice in self._choices)
            out += [self._chunk, b'],"usage":', encoded(usage_object(usage)), b"}", END]
        if remark:
            out.append(comment(remark))
        return b"".join([*out, DONE])


class _Choice:
    """One choice: what is held of its text, where its calls stand, whether it is finished."""

    def __init__(self, chunk: bytes, index: int, ask: Ask, style: Style) -> None:
        self._before = chunk + b'{"index":%d,"delta":' % index
        self._before_text = self._before + b'{"content":'
        self._functions = ask.functions
        self._begin_calls = style.begin_tool_calls and not ask.functions
        self._granularity = style.arguments
        self._fields = [quoted(name) + b":" for name in style.reasoning_fields]
        self._text, self._reasoning = Pieces(), Pieces()
        self._speaking = self._text
        self._around_arguments: tuple[bytes, bytes] | None = None
        """A chunk of the open call but for the fragment in it; None if the call is not sent."""
        self._arguments: list[str] = []
        self._called = self._cut = False
        self.finished = False
        self.usage: Usage | None = None

    def chunk(self, delta: bytes) -> bytes:
        """A chunk that goes on."""
        return self._before + delta + _GOES_ON

    @property
    def holding(self) -> bool:
        return self._speaking.holding

    def write(self, event: Event, out: list[bytes]) -> None:
        """Say one event. Malformed text is not for the client; if it was shown, that was as text."""
        if self.finished:
            return
        match event:
            case TextDelta():
                self._speak(self._text, event.text, out)
            case ReasoningDelta():
                if self._fields:
                    self._speak(self._reasoning, event.text, out)
            case CallDelta():
                self._argue(event.text, out)
            case CallStart():
                self._start(event, out)
            case CallEnd():
                self._end_call(event, out)
            case UsageSeen():
                self.usage = event.usage
            case Finish():
                self._drain(out)
                reason = finish_reason(event.reason, called=self._called, cut=self._cut, functions=self._functions)
                self._finish(reason, out)
            case _:
                pass

    def flush(self) -> bytes:
        piece = self._speaking.flush()
        return self._said(self._speaking, piece) if piece else b""

    def fail(self, out: list[bytes]) -> None:
        """End on `error`, unless it is over."""
        if not self.finished:
            self._drain(out)
            self._finish("error", out)

    def _finish(self, reason: str, out: list[bytes]) -> None:
        self.finished = True
        out.append(self._before + b'{},"finish_reason":"' + reason.encode() + b'"}]}\n\n')

    # ── text ─────────────────────────────────────────────────────────────────────────────────────

    def _speak(self, pieces: Pieces, text: str, out: list[bytes]) -> None:
        if pieces is not self._speaking:
            self._drain(out)
            self._speaking = pieces
        piece = pieces.feed(text)
        if piece:
            out.append(self._said(pieces, piece))

    def _drain(self, out: list[bytes]) -> None:
        out += [self._said(self._speaking, piece) for piece in self._speaking.drain()]

    def _said(self, pieces: Pieces, piece: str) -> bytes:
        text = quoted(piece)
        if pieces is self._text:
            return self._before_text + text + _AFTER_TEXT
        return self.chunk(b"{" + b",".join([field + text for field in self._fields]) + b"}")

    # ── calls ────────────────────────────────────────────────────────────────────────────────────

    def _start(self, event: CallStart, out: list[bytes]) -> None:
        self._drain(out)
        if self._begin_calls:
            self._begin_calls = False
            out.append(self.chunk(b'{"beginToolCalls":{"toolCallIds":[' + quoted(event.id) + b"]}}"))
        function = b'{"name":' + quoted(event.name) + b',"arguments":""}'
        if not self._functions:
            start = b'{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":%s}]}'
            out.append(self.chunk(start % (event.index, quoted(event.id), function)))
            opening = b'{"tool_calls":[{"index":%d,"function":{"arguments":' % event.index
            self._around_arguments = self._before + opening, b"}}]}" + _GOES_ON
        elif event.index == 0:
            out.append(self.chunk(b'{"function_call":' + function + b"}"))
            self._around_arguments = self._before + b'{"function_call":{"arguments":', b"}}" + _GOES_ON
        else:
            # The legacy field has room for one call.
            self._around_arguments = None

    def _argue(self, text: str, out: list[bytes]) -> None:
        if self._granularity == "generated":
            self._append(text, out)
            return
        self._arguments.append(text)
        if self._granularity != "whole":
            held, size = "".join(self._arguments), max(1, self._granularity)
            end = len(held) - len(held) % size
            for at in range(0, end, size):
                self._append(held[at : at + size], out)
            self._arguments = [held[end:]]

    def _append(self, text: str, out: list[bytes]) -> None:
        if text and self._around_arguments:
            before, after = self._around_arguments
            out.append(before + quoted(text) + after)

    def _end_call(self, event: CallEnd, out: list[bytes]) -> None:
        self._append("".join(self._arguments), out)
        self._arguments.clear()
        self._called = self._called or event.complete
        self._cut = self._cut or not event.complete
