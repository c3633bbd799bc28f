"""What `callwright smoke` tries on a gateway: each trial passes, or raises with a reason for a person."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from callwright import Parser, collect, get_dialect
from callwright.cli.fetch import Peer, Reply
from callwright.cli.shapes import SHAPES, Seen, Shape, Trial
from callwright.cli.shapes.base import decoded, field, need, same
from callwright.errors import CallwrightError, WireError
from callwright.model import ToolCall, ToolSpec

__all__ = ["WIRES", "Outcome", "outcomes"]

_WEATHER = ToolSpec(
    "get_weather",
    "The weather in a city, now.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
_QUESTION = "What is the weather in Oslo? Find out with the tool get_weather."
_RESULT = '{"city": "Oslo", "celsius": 7, "sky": "rain"}'
_UNKNOWN = "no-such-model-as-this"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one trial on one wire."""

    wire: str
    trial: str
    ok: bool
    reason: str = ""
    seconds: float = 0.0


async def outcomes(gateway: Peer, model: str) -> AsyncIterator[Outcome]:
    """Every trial on every wire, one after the other: a local model answers one at a time anyway."""
    for name, attempts in _TRIALS.items():
        for shape in SHAPES:
            if attempt := attempts.get(shape.name):
                began = time.monotonic()
                reason = await _failure(attempt(gateway, shape, model))
                spent = round(time.monotonic() - began, 4)
                yield Outcome(wire=shape.name, trial=name, ok=not reason, reason=reason, seconds=spent)


async def _failure(attempt: Awaitable[None]) -> str:
    try:
        await attempt
    except CallwrightError as problem:
        return str(problem)
    return ""


async def _models(gateway: Peer, shape: Shape, model: str) -> None:
    listing = _json(await gateway.get("/v1/models"), shape)
    same(listing, "object", "list", "/v1/models")
    for entry in field(listing, "data", list, "/v1/models"):
        same(entry, "object", "model", "a model")
        for key, kind in (("id", str), ("created", int), ("owned_by", str)):
            field(entry, key, kind, "a model")
    same(_json(await gateway.get(f"/v1/models/{model}"), shape), "id", model, f"/v1/models/{model}")


async def _ollama_models(gateway: Peer, shape: Shape, model: str) -> None:
    version = field(_json(await gateway.get("/api/version"), shape), "version", str, "/api/version")
    enough = [int(part) for part in version.split(".") if part.isdecimal()] >= [0, 6, 4]
    need(enough, f"/api/version is {version}; Copilot Chat wants 0.6.4 or later")
    listing = field(_json(await gateway.get("/api/tags"), shape), "models", list, "/api/tags")
    names = [field(entry, key, str, "a model of /api/tags") for entry in listing for key in ("model", "name")]
    need(any(name.removesuffix(":latest") == model for name in names), f"/api/tags does not have {model}")
    shown = _json(await gateway.post("/api/show", {"model": model}), shape)
    need("tools" in field(shown, "capabilities", list, "/api/show"), "/api/show does not say that the model has tools")
    info = field(shown, "model_info", dict, "/api/show")
    family = field(info, "general.architecture", str, "model_info")
    field(info, f"{family}.context_length", int, "model_info")


async def _text(gateway: Peer, shape: Shape, model: str, *, stream: bool) -> None:
    trial = Trial(model=model, prompt="Say hello in one short sentence.", stream=stream)
    need((await _answer(gateway, shape, trial)).text.strip(), "the answer is empty")


async def _rounds(gateway: Peer, shape: Shape, model: str, *, stream: bool) -> None:
    trial = Trial(model=model, prompt=_QUESTION, stream=stream, tool=_WEATHER)
    call = _called(await _answer(gateway, shape, trial))
    seen = await _answer(gateway, shape, msgspec.structs.replace(trial, call=call, result=_RESULT))
    need(not seen.calls, "given the result, the model calls again instead of answering")
    need(seen.text.strip(), "given the result, the answer is empty")


async def _textual(gateway: Peer, shape: Shape, model: str, *, stream: bool) -> None:
    """The call as `<use_tool>` text beside the structured one, as Obsidian Copilot before 3.2 reads it."""
    trial = Trial(model=model, prompt=_QUESTION, stream=stream, tool=_WEATHER)
    seen = await _answer(gateway, shape, trial, {"x-proxy-output-mode": "obsidian-xml"})
    need(seen.calls, f"the model made no call; it said: {_short(seen.text)}")
    called, written = ([_value(call) for call in calls] for calls in (seen.calls, _read(seen.text, "use_tool")))
    need(written == called, f"tool_calls has {called}, the text has {written}: {_short(seen.text)}")


async def _unknown(gateway: Peer, shape: Shape, model: str) -> None:
    reply = await gateway.post(shape.path, shape.body(Trial(model=_UNKNOWN, prompt="Hello.")))
    need(reply.status == 404, f"a model that does not exist gives HTTP {reply.status}, not 404")
    message = shape.refusal(reply.body)
    need(_UNKNOWN in message, f"the error does not name the model: {_short(message)}")


async def _answer(gateway: Peer, shape: Shape, trial: Trial, headers: dict[str, str] | None = None) -> Seen:
    reply = await gateway.post(shape.path, shape.body(trial), headers)
    _good(reply, shape)
    expected = shape.stream_type if trial.stream else "application/json"
    need(reply.content_type == expected, f"the content type is {reply.content_type}, not {expected}")
    return (shape.streamed if trial.stream else shape.whole)(reply.body)


def _called(seen: Seen) -> ToolCall:
    """The first call of an answer, once it is clear that it is one and stands nowhere else."""
    need(seen.calls, f"the model made no call; it said: {_short(seen.text)}")
    for call in seen.calls:
        need(call.name == _WEATHER.name, f"the model calls {call.name}, which was not offered")
        field(decoded(call.arguments, "arguments"), "city", str, "the arguments")
    need(not _read(seen.text, "auto"), f"a call stands in the text: {_short(seen.text)}")
    return seen.calls[0]


def _read(text: str, name: str) -> tuple[ToolCall, ...]:
    spec = {"name": _WEATHER.name, "parameters": _WEATHER.parameters}
    parser = Parser(get_dialect(name), [{"type": "function", "function": spec}])
    return collect([*parser.feed(text), *parser.close()]).tool_calls


def _value(call: ToolCall) -> tuple[str, object]:
    return call.name, decoded(call.arguments, "arguments")


def _good(reply: Reply, shape: Shape) -> bytes:
    if reply.status != 200:
        raise WireError(f"HTTP {reply.status}: {_short(shape.refusal(reply.body))}")
    return reply.body


def _json(reply: Reply, shape: Shape) -> Any:
    return decoded(_good(reply, shape), "the answer")


def _short(text: str, most: int = 160) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


_Attempt = Callable[[Peer, Shape, str], Awaitable[None]]


def _on_all(attempt: _Attempt) -> dict[str, _Attempt]:
    return {shape.name: attempt for shape in SHAPES}


_TRIALS: dict[str, dict[str, _Attempt]] = {
    "models are listed": {"chat": _models, "ollama": _ollama_models},
    "text": _on_all(partial(_text, stream=False)),
    "text, streamed": _on_all(partial(_text, stream=True)),
    "tool call, two rounds": _on_all(partial(_rounds, stream=False)),
    "tool call, two rounds, streamed": _on_all(partial(_rounds, stream=True)),
    "tool call as XML text": {"chat": partial(_textual, stream=False)},
    "tool call as XML text, streamed": {"chat": partial(_textual, stream=True)},
    "unknown model is refused": _on_all(_unknown),
}
WIRES = {name: tuple(attempts) for name, attempts in _TRIALS.items()}
"""Every trial, and the wires that it is for."""
