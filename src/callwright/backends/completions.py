"""The client codec for servers that only continue text, on `POST /v1/completions`.

The codec renders the conversation as text. The answer is text too, which the caller reads in the model's dialect. The
reader also supports llama.cpp's own `/completions`, served without `/v1`, and the `/generate_stream` of Text Generation
Inference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from callwright.backends.errors import TOOLS_REFUSED
from callwright.errors import BackendError, WireError
from callwright.events import Event, Finish, FinishReason, TextDelta, UsageSeen
from callwright.model import Request, Usage
from callwright.prompt.chat_template import CHAT_TEMPLATES, ChatTemplateName, render_transcript
from callwright.wire.base import ClientCodec, WireReader
from callwright.wire.event_reader import EventReader
from callwright.wire.framing import JSON_DECODE_ERRORS, SseEvent, SseReader

__all__ = [
    "DEFAULT_MAX_TOKENS",
    "CompletionReader",
    "CompletionsClientCodec",
    "build_completion_body",
    "build_text_options",
]

DEFAULT_MAX_TOKENS = 4096
"""Default limit of an answer. Without one it would be 16 in OpenAI's API and in vLLM."""

_LENGTH_REASONS = ("length", "limit")
"""What servers report when the token limit is reached. The second is llama.cpp's own."""

_CHAT_ONLY_OPTIONS = frozenset({"response_format", "reasoning_effort", "parallel_tool_calls", "tools", "tool_choice"})


class CompletionsClientCodec:
    """Encodes requests. Errors have the format of OpenAI's chat wire, and `errors` parses them."""

    name = "completions"

    def __init__(self, template: ChatTemplateName, errors: ClientCodec) -> None:
        self._template = CHAT_TEMPLATES[template]
        self._errors = errors

    def get_path(self, request: Request) -> str:
        """Return the path below the backend's URL."""
        return "/completions"

    def build_headers(self, key: str) -> dict[str, str]:
        """Build the headers with the key, as OpenAI expects it."""
        return self._errors.build_headers(key)

    def encode_request(self, request: Request, extra: dict[str, Any]) -> bytes:
        """Encode the conversation as one text, with the supported options. Tools must be in the prompt already."""
        if request.tools:
            raise BackendError(
                "raw completions are text: this backend does not support tools", kind="refused", code=TOOLS_REFUSED
            )
        return build_completion_body(
            request, extra, render_transcript(request.messages, self._template), self._template.stops
        )

    def create_reader(self) -> WireReader:
        """Create a reader for one answer."""
        return CompletionReader(self._errors)

    def parse_error(self, status: int, body: bytes) -> BackendError:
        """Parse an error response."""
        return self._errors.parse_error(status, body)


def build_text_options(request: Request, extra: dict[str, Any], stops: Sequence[str]) -> dict[str, Any]:
    """Build the options that text servers know. The client's stop sequences follow our own."""
    options = {name: value for name, value in (extra | request.options).items() if name not in _CHAT_ONLY_OPTIONS}
    client_stops = options.get("stop") or ()
    return (
        {"max_tokens": DEFAULT_MAX_TOKENS}
        | options
        | {"stop": (*stops, *((client_stops,) if isinstance(client_stops, str) else client_stops))}
    )


def build_completion_body(request: Request, extra: dict[str, Any], prompt: str, stops: Sequence[str]) -> bytes:
    """Build the body of `POST /completions`."""
    fields = {"model": request.model, "prompt": prompt, "stream": True, "stream_options": {"include_usage": True}}
    return msgspec.json.encode(build_text_options(request, extra, stops) | fields)


class _Choice(msgspec.Struct):
    text: str | None = ""
    finish_reason: str | None = None
    index: int = 0
    token_ids: list[int] | None = None


class _TokenUsage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Token(msgspec.Struct):
    id: int = -1
    text: str = ""


class _GenerationDetails(msgspec.Struct):
    finish_reason: str = ""
    input_length: int = 0
    generated_tokens: int = 0


class _Chunk(msgspec.Struct):
    """One event of any server. The first three fields are common, the last two TGI's, the others llama.cpp's own."""

    choices: list[_Choice] | None = None
    usage: _TokenUsage | None = None
    error: Any = None
    content: str = ""
    stop: bool = False
    stop_type: str = ""
    tokens: list[int] = []
    tokens_evaluated: int = 0
    tokens_predicted: int = 0
    token: _Token | None = None
    details: _GenerationDetails | None = None


MarkerRestorer = Callable[[str, Sequence[int]], str]
"""Takes a piece of text and the ids of its tokens, where the server sends them; returns the text with its markers."""

_DECODER = msgspec.json.Decoder(_Chunk)


class CompletionReader(EventReader):
    """Reads one stream. The finish is held back until the end of the stream, because the usage follows it."""

    def __init__(self, errors: ClientCodec, restore_markers: MarkerRestorer | None = None) -> None:
        self._errors = errors
        self._restore_markers = restore_markers
        self._frames = SseReader()
        self._reason: FinishReason | None = None
        self._is_finished = False

    def _process_data(self, data: bytes, out: list[Event]) -> None:
        self._read_frames(self._frames.feed(data), out)

    def _process_end(self, out: list[Event]) -> None:
        self._read_frames(self._frames.close(), out)
        if not self._is_finished:
            if self._reason is None:
                raise BackendError("the stream ended before the answer did", kind="protocol", retryable=True)
            out.append(self._build_finish(self._reason))

    def _read_frames(self, frames: list[SseEvent], out: list[Event]) -> None:
        for _, data in frames:
            if self._is_finished:
                break
            if data == b"[DONE]":
                out.append(self._build_finish(self._reason or "stop"))
                break
            try:
                chunk = self._decode_json(data, _DECODER)
            except JSON_DECODE_ERRORS as error:
                raise WireError(f"unexpected format of a completion chunk: {data[:200]!r}") from error
            if chunk.error is not None:
                raise self._errors.parse_error(500, data)
            self._read_chunk(chunk, out)

    def _read_chunk(self, chunk: _Chunk, out: list[Event]) -> None:
        if chunk.token is not None:
            self._emit_text(chunk.token.text, [chunk.token.id], out)
            if chunk.details is not None:
                self._set_finish_reason(chunk.details.finish_reason)
                out.append(UsageSeen(Usage(chunk.details.input_length, chunk.details.generated_tokens)))
        elif chunk.choices is None:
            self._emit_text(chunk.content, chunk.tokens, out)
            if chunk.stop:
                self._set_finish_reason(chunk.stop_type)
                out.append(UsageSeen(Usage(chunk.tokens_evaluated, chunk.tokens_predicted)))
        for choice in chunk.choices or ():
            if not choice.index:
                self._emit_text(choice.text or "", choice.token_ids or (), out)
            if choice.finish_reason:
                self._set_finish_reason(choice.finish_reason)
        if chunk.usage is not None:
            out.append(UsageSeen(Usage(chunk.usage.prompt_tokens, chunk.usage.completion_tokens)))

    def _emit_text(self, text: str, tokens: Sequence[int], out: list[Event]) -> None:
        if self._restore_markers is not None and tokens:
            text = self._restore_markers(text, tokens)
        if text:
            out.append(TextDelta(text))

    def _set_finish_reason(self, reason: str) -> None:
        self._reason = "length" if reason in _LENGTH_REASONS else "stop"

    def _build_finish(self, reason: FinishReason) -> Finish:
        self._is_finished = True
        return Finish(reason)
