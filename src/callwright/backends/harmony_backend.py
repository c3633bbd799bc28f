"""Harmony: gpt-oss behind an endpoint that only continues text.

We write the whole prompt; the answer leaves here as the text that the model wrote, for `callwright.dialects.harmony` to
read, whatever the server made of its special tokens. No vocabulary is needed: seven tokens have a meaning, and their
numbers are known. Where a server takes them out of the text but gives the ids of its tokens, they are put back.
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
"""From openai-harmony 0.0.8."""

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
    """A server that continues text. What the prompt wrote of the answer is said before what the server adds to it."""

    def __init__(self, settings: BackendSettings, errors: ClientCodec) -> None:
        if settings.api == "generate_stream":
            super().__init__(settings, HarmonyGenerateCodec(errors), models_path="/v1/models")
        else:
            super().__init__(settings, HarmonyCompletionsCodec(errors, keep_tokens=settings.special_tokens))

    async def stream_response(self, request: Request, extra: dict[str, Any]) -> EventStream:
        """Ask the model."""
        first = [TextDelta(words)] if (words := get_answer_prefix(request)) else []
        async with aclosing(super().stream_response(request, extra)) as answer:
            async for events in answer:
                yield [*first, *events]
                first = []


class HarmonyCompletionsCodec:
    """The calling half for `/completions`. Errors look as on OpenAI's chat wire, so `errors` reads them."""

    name = "harmony"

    def __init__(self, errors: ClientCodec, *, keep_tokens: bool = True) -> None:
        self._errors = errors
        self._keeps_special_tokens = keep_tokens

    def get_path(self, request: Request) -> str:
        """Where to post, after the backend's address."""
        return "/completions"

    def build_headers(self, key: str) -> dict[str, str]:
        """The key as OpenAI wants it."""
        return self._errors.build_headers(key)

    def encode_request(self, request: Request, extra: dict[str, Any]) -> bytes:
        """The conversation and the tools as one text."""
        kept = dict(_KEEP_TOKENS_OPTIONS) if self._keeps_special_tokens else {}
        return build_completion_body(request, kept | extra, render_harmony(request), STOP_MARKERS)

    def create_reader(self) -> WireReader:
        """A reader of one answer."""
        return CompletionReader(self._errors, restore_markers)

    def parse_error(self, status: int, body: bytes) -> BackendError:
        """What an answer with that status means."""
        return self._errors.parse_error(status, body)


_GENERATE_OPTIONS = ("temperature", "top_p", "top_k", "seed", "stop")
"""Options that Text Generation Inference calls as clients do."""


class HarmonyGenerateCodec(HarmonyCompletionsCodec):
    """The calling half for the `/generate_stream` of Text Generation Inference, which streams token by token with all
    special ones: huggingface.github.io/text-generation-inference."""

    def get_path(self, request: Request) -> str:
        """Where to post, after the backend's address."""
        return "/generate_stream"

    def encode_request(self, request: Request, extra: dict[str, Any]) -> bytes:
        """The same in this server's words. It refuses a temperature of 0 and a share of 1, which both mean its own."""
        options = build_text_options(request, extra, STOP_MARKERS)
        parameters = {name: options[name] for name in _GENERATE_OPTIONS if options.get(name) is not None}
        if not parameters.get("temperature"):
            parameters.pop("temperature", None)
        if parameters.get("top_p", 0.5) >= 1:
            del parameters["top_p"]
        asked = {"max_new_tokens": options["max_tokens"], "do_sample": "temperature" in parameters, "details": True}
        return msgspec.json.encode({"inputs": render_harmony(request), "parameters": parameters | asked})


def restore_markers(text: str, tokens: Sequence[int]) -> str:
    """A piece of text with the markers that the server took out of it, as far as the ids say where they stood: before
    or after all of its words."""
    markers = [SPECIAL_TOKENS.get(token, "") for token in tokens]
    if not any(markers) or any(marker in text for marker in markers if marker):
        return text
    front = list(takewhile(bool, markers))
    back = list(takewhile(bool, reversed(markers[len(front) :])))
    return "".join((*front, text, *reversed(back)))
