"""Stand-ins for the engine, the wires and the handler of turns, so that the gateway is tested alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.types import Receive, Scope, Send

from callwright.backends.base import ForwardedResponse
from callwright.backends.settings import BackendSettings
from callwright.engine.settings import ModelSettings
from callwright.errors import RequestError
from callwright.gateway.app import build_app
from callwright.gateway.service import GatewayService, GatewayState
from callwright.gateway.settings import KeySettings, ServerSettings
from callwright.model import Message, Request, Text
from callwright.wire.base import ClientRequest, ErrorResponse

WIRES = ("openai_chat", "openai_responses", "anthropic", "ollama", "ollama_generate")
TEAM = KeySettings(name="team", key="sk-team-0123456789")
GUEST = KeySettings(name="guest", key="guest-key-é", models=("coder",))


class StubWire:
    """Problems say which wire wrote them."""

    content_type = "text/event-stream"

    def __init__(self, name: str) -> None:
        self.name = name

    def decode_request(self, body: bytes) -> ClientRequest:
        data = json.loads(body)
        text = "".join(message["content"] for message in data["messages"])
        return ClientRequest(request=Request(model=data["model"], messages=(Message("user", (Text(text),)),)))

    def encode_error(self, problem: ErrorResponse) -> bytes:
        return json.dumps(
            {"wire": self.name, "error": {"message": problem.message, "type": problem.kind, "code": problem.code}}
        ).encode()


SERVED: dict[str, Any] = {name: StubWire(name) for name in WIRES}


class StubBackend:
    def __init__(self, kind: str) -> None:
        self.settings = BackendSettings(name="local", kind=kind)
        self.forwarded: list[tuple[str, Any]] = []

    async def forward_request(self, path: str, body: bytes) -> ForwardedResponse:
        self.forwarded.append((path, json.loads(body)))
        return ForwardedResponse(200, {"Content-Type": "application/json", "Set-Cookie": "no"}, b'{"ok": true}')


def listing(name: str, *aliases: str, context: int = 131072, vision: bool = False, reasoning: bool = False) -> Any:
    return SimpleNamespace(name=name, aliases=aliases, context=context, vision=vision, reasoning=reasoning)


class StubEngine:
    def __init__(self, *, backends: tuple[Any, ...] = (), ready: dict[str, str] | None = None) -> None:
        self.models: tuple[Any, ...] = (
            listing("coder", "gpt-4o", context=65536, vision=True, reasoning=True),
            listing("org/small"),
        )
        self.backends = dict(enumerate(backends))
        self.readiness = {"local": ""} if ready is None else ready
        self.asked = 0
        self.closed = 0

    async def find_route(self, name: str) -> Any:
        for model in self.models:
            if name in (model.name, *model.aliases):
                return SimpleNamespace(
                    settings=ModelSettings(name=model.name), backends=tuple(self.backends), upstream="upstream-name"
                )
        raise RequestError(f"The model {name!r} does not exist.", status=404, code="model_not_found")

    async def check_readiness(self) -> dict[str, str]:
        self.asked += 1
        return self.readiness

    async def close(self) -> None:
        self.closed += 1


def state(*keys: KeySettings, engine: Any = None, **server: Any) -> GatewayState:
    return GatewayState(ServerSettings(**server), keys, engine or StubEngine())


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """A turn that streams its request's body back."""
    body = await HttpRequest(scope, receive).body()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    await send({"type": "http.response.body", "body": b"data: ", "more_body": True})
    await send({"type": "http.response.body", "body": body})


def gateway(*keys: KeySettings, engine: Any = None, turn: Any = echo, **server: Any) -> tuple[Any, GatewayService]:
    """The app, and the service inside it."""
    service = GatewayService(state(*keys, engine=engine, **server))
    endpoint: Callable[[Any], Any] = lambda wire: turn  # noqa: E731
    return build_app(service, SERVED, endpoint), service
