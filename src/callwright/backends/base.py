"""What every backend is to the engine."""

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
"""Events as the backend sent them, those of one read together, ending in a `Finish`. Closing it ends the generation."""


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a backend says of a model; zero and None where it says nothing."""

    name: str
    context: int = 0
    tools: bool | None = None
    vision: bool | None = None
    reasoning: bool | None = None
    server: ConstraintFlavour | None = None
    """The server that has it, as far as it is one that holds answers to a form."""


class ForwardedResponse(msgspec.Struct, frozen=True):
    """A server's answer to a request that we only pass on."""

    status: int
    headers: dict[str, str]
    body: bytes


class Backend(Protocol):
    """How a model is reached. One object for the life of the service, used by many turns at once."""

    settings: BackendSettings
    wire: str
    """The name of the wire that it speaks: a client on the same wire has its `extra` fields passed on."""

    @property
    def flavour(self) -> ConstraintFlavour | None:
        """How it is told to hold an answer to a form; None while it is not known that it can."""
        ...

    def stream_response(self, request: Request, extra: dict[str, Any]) -> EventStream:
        """Ask the model. Raises `BackendError`; what failed before the first byte was tried again already."""
        ...

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """The models that it has. Raises `BackendError`."""
        ...

    async def forward_request(self, path: str, body: bytes) -> ForwardedResponse:
        """Pass on a request that is not about a turn, such as embeddings."""
        ...

    @property
    def is_available(self) -> bool:
        """False while it is left alone after failures."""
        ...

    async def close(self) -> None:
        """Give back every connection."""
        ...
