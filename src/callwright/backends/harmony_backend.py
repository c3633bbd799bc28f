"""gpt-oss behind an endpoint that only continues text.

The prompt is rendered here. The answer is passed on as the model's own text, which `callwright.dialects.harmony` reads,
whatever the server did with its special tokens. No vocabulary is needed: seven tokens have a meaning, and their ids are
known. When a server removes them from the text but sends token ids, they are restored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from itertools import takewhile
from types import MappingProxyType
from typing import Any

import msgspec

from callwright.backends.base import EventStream
from callwright.backends.completions import CompletionReader, build_completion_body, build_text_options
from callwright.backends.http import HttpBackend
from callwright.backends.settings import BackendSettings
from callwright.errors import BackendError
from callwright.events import TextDelta
from callwright.model import Request
from callwright.prompt.harmony_prompt import MARKERS, STOP_MARKERS, get_answer_prefix, render_harmony
from callwright.wire.base import ClientCodec, WireReader

__all__ = ["HarmonyBackend", "HarmonyCompletionsCodec", "HarmonyGenerateCodec", "restore_markers"]

SPECIAL_TOKENS: Mapping[int, str] = MappingProxyType(
    {
        200002: "<|return|>",
        200003: "<|constrain|>",
        200005: "<|channel|>",
        200006: "<|start|>",
        200007: "<|end|>",
        200008: "<|message|>",
        200012: "<|call|>",
    }
)
"""Token ids from openai-harmony 0.0.8."""

_KEEP_TOKENS_OPTIONS: Mapping[str, Any] = MappingProxyType(
    {
        # vLLM and SGLang: their request classes for `/v1/completions`.
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
        "include_stop_str_in_output": True,
        "return_token_ids": True,
        # llama.cpp: tried with b11549, on its own endpoint and under `/v1`.
        "preserved_tokens": MARKERS,
        "return_tokens": True,
    }
)


class HarmonyBackend(HttpBackend):
    """A server that continues text. The part of the answer that the prompt already contains is emitted first."""

    def __init__(self, settings: BackendSettings, errors: ClientCodec) -> None:
        if settings.api == "generate_stream":
            super().__init__(settings, HarmonyGenerateCodec(errors), models_path="/v1/models")
        else:
            super().__init__(settings, HarmonyCompletionsCodec(errors, keep_tokens=settings.special_tokens))

    async def stream_response(self, request: Request, extra: dict[str, Any]) -> EventStream:
        """Stream the model's answer."""
        first = [TextDelta(prefix)] if (prefix := get_answer_prefix(request)) else []
        async with aclosing(super().stream_response(request, extra)) as answer:
            async for events in answer:
                yield [*first, *events]
                first = []


class HarmonyCompletionsCodec:
    """Encodes requests for `/completions`. Errors have the format of OpenAI's chat wire, and `errors` parses them."""

    name = "harmony"

    def __init__(self, errors: ClientCodec, *, keep_tokens: bool = True) -> None:
        self._errors = errors
        self._keeps_special_tokens = keep_tokens

    def get_path(self, request: Request) -> str:
        """Return the path below the backend's URL."""
        return "/completions"

    def build_headers(self, key: str) -> dict[str, str]:
        """Build the headers with the key, as OpenAI expects it."""
        return self._errors.build_headers(key)

    def encode_request(self, request: Request, extra: dict[str, Any]) -> bytes:
        """Encode the conversation and the tools as one text."""
        keep_options = dict(_KEEP_TOKENS_OPTIONS) if self._keeps_special_tokens else {}
        return build_completion_body(request, keep_options | extra, render_harmony(request), STOP_MARKERS)

    def create_reader(self) -> WireReader:
        """Create a reader for one answer."""
        return CompletionReader(self._errors, restore_markers)

    def parse_error(self, status: int, body: bytes) -> BackendError:
        """Parse an error response."""
        return self._errors.parse_error(status, body)


_GENERATE_OPTIONS = ("temperature", "top_p", "top_k", "seed", "stop")
"""Options with the same name in Text Generation Inference."""


class HarmonyGenerateCodec(HarmonyCompletionsCodec):
    """Encodes requests for the `/generate_stream` of Text Generation Inference, which streams every token, special ones
    included: huggingface.github.io/text-generation-inference."""

    def get_path(self, request: Request) -> str:
        """Return the path below the backend's URL."""
        return "/generate_stream"

    def encode_request(self, request: Request, extra: dict[str, Any]) -> bytes:
        """Encode the request in TGI's format. TGI refuses a temperature of 0 and a `top_p` of 1; both are left out."""
        options = build_text_options(request, extra, STOP_MARKERS)
        parameters = {name: options[name] for name in _GENERATE_OPTIONS if options.get(name) is not None}
        if not parameters.get("temperature"):
            parameters.pop("temperature", None)
        if parameters.get("top_p", 0.5) >= 1:
            del parameters["top_p"]
        fixed = {"max_new_tokens": options["max_tokens"], "do_sample": "temperature" in parameters, "details": True}
        return msgspec.json.encode({"inputs": render_harmony(request), "parameters": parameters | fixed})


def restore_markers(text: str, tokens: Sequence[int]) -> str:
    """Restore the markers that a server removed from a piece of text. Token ids show only whether they stood before or
    after the whole text."""
    markers = [SPECIAL_TOKENS.get(token, "") for token in tokens]
    if not any(markers) or any(marker in text for marker in markers if marker):
        return text
    front = list(takewhile(bool, markers))
    back = list(takewhile(bool, reversed(markers[len(front) :])))
    return "".join((*front, text, *reversed(back)))
