"""Asking a gateway that has Codex behind it."""

from __future__ import annotations

from typing import Any

from callwright.backends.codex import CodexBackend
from tests.integration.hosted import Hosted
from tests.integration.wires import CHAT, Heard, Wire

__all__ = ["CATALOGUED", "child", "heard", "problem"]

CATALOGUED = "gpt-6.1-sol"
"""A model of Codex's own catalogue, which brings a shell, patches and agents along."""


def child(gateway: Hosted, name: str = "codex") -> CodexBackend:
    found = gateway.service.state.engine.backends[name]
    assert isinstance(found, CodexBackend)
    return found


def heard(gateway: Hosted, wire: Wire, *, stream: bool = True, name: str = "m", **rest: Any) -> Heard:
    reply = gateway.post(wire.path, wire.body(name, stream=stream, **rest))
    assert reply.status == 200, reply.body
    return wire.streamed(reply.body) if stream else wire.whole(reply.body)


def problem(gateway: Hosted, name: str = "m") -> tuple[int, str, str]:
    reply = gateway.post(CHAT.path, CHAT.body(name, stream=True))
    return reply.status, *CHAT.problem(reply.json)
