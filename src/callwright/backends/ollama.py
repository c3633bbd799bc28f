"""Ollama: an HTTP backend that knows what each model can do, and does not insist where a model cannot.

A model that refuses `think` is asked again without, and not told to think again for the life of the backend. A model
that refuses tools is the engine's business: it gets the error with the code `tools_refused`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from callwright.backends.base import ModelInfo
from callwright.backends.faults import THINKING_REFUSED
from callwright.backends.http import Begun, HttpBackend
from callwright.backends.models import allocated, shown, tagged
from callwright.errors import BackendError
from callwright.model import Request

__all__ = ["OllamaBackend"]

_SHOWN_AT_ONCE = 4
_THINKING = ("think", "reasoning_effort")


class OllamaBackend(HttpBackend):
    """Ollama's own API."""

    _unthinking: frozenset[str] = frozenset()
    """The models that refused to be told about thinking."""

    async def send(self, request: Request, extra: dict[str, Any]) -> Begun:
        """Send the request, without a word on thinking if the model refuses that."""
        if request.model in self._unthinking:
            request, extra = _without_thinking(request, extra)
        try:
            return await super().send(request, extra)
        except BackendError as refusal:
            if refusal.code != THINKING_REFUSED or request.model in self._unthinking:
                raise
        self._unthinking |= {request.model}
        return await super().send(*_without_thinking(request, extra))

    async def models(self) -> tuple[ModelInfo, ...]:
        """The models that were pulled, each with what `/api/show` says of it, and its window if it is in memory."""
        names = tagged(await self.fetch("/api/tags"))
        few = asyncio.Semaphore(_SHOWN_AT_ONCE)

        async def show(name: str) -> ModelInfo:
            async with few:
                try:
                    return shown(name, await self.fetch("/api/show", msgspec.json.encode({"model": name})))
                except BackendError:  # one broken model does not hide the others
                    return ModelInfo(name=name)

        found = await asyncio.gather(*map(show, names))
        windows = await self._windows()
        return tuple(msgspec.structs.replace(model, context=windows.get(model.name, model.context)) for model in found)

    async def _windows(self) -> dict[str, int]:
        try:
            return allocated(await self.fetch("/api/ps"))
        except BackendError:  # servers before 0.1.38, and imitations, have none
            return {}


def _without_thinking(request: Request, extra: dict[str, Any]) -> tuple[Request, dict[str, Any]]:
    options = {name: value for name, value in request.options.items() if name not in _THINKING}
    return (
        msgspec.structs.replace(request, options=options),
        {name: value for name, value in extra.items() if name not in _THINKING},
    )
