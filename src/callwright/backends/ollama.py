"""Ollama's own API: an HTTP backend that knows the capabilities of each model.

A request with `think` that the model refuses is sent again without it, and so are all later requests to that model. A
refusal of tools is left to the engine, as an error with the code `tools_refused`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from callwright.backends.base import ModelInfo
from callwright.backends.errors import THINKING_REFUSED
from callwright.backends.http import HttpBackend, StartedResponse
from callwright.backends.model_lists import parse_ollama_model, parse_ollama_tags, parse_ollama_windows
from callwright.errors import BackendError
from callwright.model import Request

__all__ = ["OllamaBackend"]

_SHOW_CONCURRENCY = 4
_THINKING_OPTIONS = ("think", "reasoning_effort")


class OllamaBackend(HttpBackend):
    """A server with Ollama's own API."""

    _models_without_thinking: frozenset[str] = frozenset()
    """Models that refused the `think` option."""

    async def send_request(self, request: Request, extra: dict[str, Any]) -> StartedResponse:
        """Send the request, without options for thinking if the model refuses them."""
        if request.model in self._models_without_thinking:
            request, extra = _remove_thinking(request, extra)
        try:
            return await super().send_request(request, extra)
        except BackendError as refusal:
            if refusal.code != THINKING_REFUSED or request.model in self._models_without_thinking:
                raise
        self._models_without_thinking |= {request.model}
        return await super().send_request(*_remove_thinking(request, extra))

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """List the pulled models with the details of `/api/show`, and the context window of those in memory."""
        names = parse_ollama_tags(await self.fetch_json("/api/tags"))
        limiter = asyncio.Semaphore(_SHOW_CONCURRENCY)

        async def show(name: str) -> ModelInfo:
            async with limiter:
                try:
                    return parse_ollama_model(
                        name, await self.fetch_json("/api/show", msgspec.json.encode({"model": name}))
                    )
                except BackendError:  # one broken model must not hide the others
                    return ModelInfo(name=name)

        found = await asyncio.gather(*map(show, names))
        windows = await self._fetch_windows()
        return tuple(msgspec.structs.replace(model, context=windows.get(model.name, model.context)) for model in found)

    async def _fetch_windows(self) -> dict[str, int]:
        try:
            return parse_ollama_windows(await self.fetch_json("/api/ps"))
        except BackendError:  # servers before 0.1.38 and compatible servers do not have it
            return {}


def _remove_thinking(request: Request, extra: dict[str, Any]) -> tuple[Request, dict[str, Any]]:
    options = {name: value for name, value in request.options.items() if name not in _THINKING_OPTIONS}
    return (
        msgspec.structs.replace(request, options=options),
        {name: value for name, value in extra.items() if name not in _THINKING_OPTIONS},
    )
