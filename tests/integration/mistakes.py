"""Every way in which a request can be wrong, on any wire."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.integration.wires import Call, Round, Wire

DEEP = 100_000
"""Brackets: more than any parser of JSON follows by recursion."""


class Sent(NamedTuple):
    """A request as it goes out."""

    body: bytes | None
    method: str = "POST"
    path: str = ""
    """Another than the wire's."""
    content_type: str = "application/json"


def _good(wire: Wire, **changes: Any) -> bytes:
    body = {**wire.body("m", stream=False), **changes}
    return json.dumps({name: value for name, value in body.items() if value is not None}).encode()


def _deep(wire: Wire) -> bytes:
    nested = b"[" * DEEP + b"]" * DEEP
    return _good(wire, extra="HERE").replace(b'"HERE"', nested)


def _history(wire: Wire) -> str:
    return "input" if wire.name == "responses" else "messages"


def _callless(wire: Wire) -> list[Any]:
    """The user's message and a result: what stands between them is lost."""
    body = wire.body("m", stream=False, rounds=[Round("a", Call("ping", {}), "pong")])
    question, _, result = body[_history(wire)]
    return [question, result]


MISTAKES: dict[str, Callable[[Wire], Sent]] = {
    "no body": lambda wire: Sent(b""),
    "not JSON": lambda wire: Sent(_good(wire)[:-1]),
    "not UTF-8": lambda wire: Sent(_good(wire, user="?").replace(b"?", b"\xff\xfe")),
    "not an object": lambda wire: Sent(b"[1, 2]"),
    "nested 100,000 deep": lambda wire: Sent(_deep(wire)),
    "only brackets": lambda wire: Sent(b"[" * DEEP),
    "larger than `body_bytes`": lambda wire: Sent(b" " * 50_000_000),
    "no model": lambda wire: Sent(_good(wire, model=None)),
    "a model that is a number": lambda wire: Sent(_good(wire, model=7)),
    "an unknown model": lambda wire: Sent(_good(wire, model="nobody")),
    "no messages": lambda wire: Sent(_good(wire, **{_history(wire): None})),
    "messages that are a number": lambda wire: Sent(_good(wire, **{_history(wire): 7})),
    "a message that is a number": lambda wire: Sent(_good(wire, **{_history(wire): [7]})),
    "an unknown role": lambda wire: Sent(_good(wire, **{_history(wire): [{"role": "robot", "content": "hi"}]})),
    "content that is a number": lambda wire: Sent(_good(wire, **{_history(wire): [{"role": "user", "content": 7}]})),
    "a tool result, and no call": lambda wire: Sent(_good(wire, **{_history(wire): _callless(wire)})),
    "tools that are a string": lambda wire: Sent(_good(wire, tools="all")),
    "a tool that is a number": lambda wire: Sent(_good(wire, tools=[7])),
    "a tool without a name": lambda wire: Sent(_good(wire, tools=[{"description": "?"}])),
    "`stream` that is a string": lambda wire: Sent(_good(wire, stream="yes")),
    "the wrong method": lambda wire: Sent(None, "GET"),
    "another wrong method": lambda wire: Sent(_good(wire), "DELETE"),
    "a path that is not there": lambda wire: Sent(_good(wire), path=f"{wire.path}/more"),
}
HARMLESS: dict[str, Callable[[Wire], Sent]] = {
    "fields that nobody knows": lambda wire: Sent(_good(wire, surprise={"a": [1, None]}, another=7)),
    "no content type": lambda wire: Sent(_good(wire), content_type=""),
    "the wrong content type": lambda wire: Sent(_good(wire), content_type="text/plain"),
    "a byte order mark": lambda wire: Sent(b"\xef\xbb\xbf" + _good(wire)),
    "fields that are null": lambda wire: Sent(
        _good(wire, surprise=None)[:-1] + b', "temperature": null, "stop": null}'
    ),
    "half of a surrogate pair": lambda wire: Sent(_good(wire, user="?").replace(b"?", rb"\ud83d")),
}
