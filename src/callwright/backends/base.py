"""The interface between the engine and every backend."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Protocol

import msgspec

from callwright.backends.settings import BackendSettings
from callwright.events import Event
from callwright.model import Request
from callwright.wire.constraint import ConstraintFlavour

__all__ = ["Backend", "EventStream", "ForwardedResponse", "ModelInfo"]

EventStream = AsyncGenerator[list[Event], None]
"""Batches of events, one for each read of the backend, ending in a `Finish`. Closing it ends the generation."""


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a backend reports about a model. Zero and None mean unknown."""

    name: str
    context: int = 0
    tools: bool | None = None
    vision: bool | None = None
    reasoning: bool | None = None
    server: ConstraintFlavour | None = None
    """The constraint format of its server, when the server can constrain answers."""


class ForwardedResponse(msgspec.Struct, frozen=True):
    """A server's response to a forwarded request."""

    status: int
    headers: dict[str, str]
    body: bytes


class Backend(Protocol):
    """Connects to a model server. One instance lives as long as the service and runs many turns at a time."""

    settings: BackendSettings
    wire: str
    """The name of its wire. The `extra` fields of a client on the same wire are passed on."""

    @property
    def flavour(self) -> ConstraintFlavour | None:
        """How the server constrains answers. None when it cannot, or it is not known yet."""
        ...

    def stream_response(self, request: Request, extra: dict[str, Any]) -> EventStream:
        """Stream the model's answer. Raises `BackendError`, after retrying failures before the first byte."""
        ...

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """List the models of the server. Raises `BackendError`."""
        ...

    async def forward_request(self, path: str, body: bytes) -> ForwardedResponse:
        """Forward a request that is no turn, such as embeddings."""
        ...

    @property
    def is_available(self) -> bool:
        """False while the circuit breaker is open after failures."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
