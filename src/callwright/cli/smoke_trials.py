"""The trials of `callwright smoke`. Each trial passes, or raises an error with a readable reason."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from callwright import Parser, collect, get_dialect
from callwright.cli.http_client import HttpClient, HttpReply
from callwright.cli.wire_checks import WIRE_CHECKS, CheckedAnswer, SmokeRequest, WireCheck
from callwright.cli.wire_checks.base import decode_json, require, require_field, require_value
from callwright.errors import CallwrightError, WireError
from callwright.model import ToolCall, ToolSpec

__all__ = ["TRIAL_WIRES", "TrialOutcome", "run_trials"]

_WEATHER_TOOL = ToolSpec(
    "get_weather",
    "The weather in a city, now.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
_QUESTION = "What is the weather in Oslo? Find out with the tool get_weather."
_TOOL_RESULT = '{"city": "Oslo", "celsius": 7, "sky": "rain"}'
_UNKNOWN_MODEL = "no-such-model-as-this"


class TrialOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one trial on one wire."""

    wire: str
    trial: str
    ok: bool
    reason: str = ""
    seconds: float = 0.0


async def run_trials(gateway: HttpClient, model: str) -> AsyncIterator[TrialOutcome]:
    """Run every trial on every wire, one after the other, because a local model answers one request at a time."""
    for name, trials in _TRIALS.items():
        for check in WIRE_CHECKS:
            if trial := trials.get(check.name):
                start = time.monotonic()
                reason = await _get_failure(trial(gateway, check, model))
                duration = round(time.monotonic() - start, 4)
                yield TrialOutcome(wire=check.name, trial=name, ok=not reason, reason=reason, seconds=duration)


async def _get_failure(trial: Awaitable[None]) -> str:
    try:
        await trial
    except CallwrightError as problem:
        return str(problem)
    return ""


async def _check_models(gateway: HttpClient, check: WireCheck, model: str) -> None:
    listing = _decode_reply(await gateway.get("/v1/models"), check)
    require_value(listing, "object", "list", "/v1/models")
    for entry in require_field(listing, "data", list, "/v1/models"):
        require_value(entry, "object", "model", "a model")
        for key, kind in (("id", str), ("created", int), ("owned_by", str)):
            require_field(entry, key, kind, "a model")
    require_value(_decode_reply(await gateway.get(f"/v1/models/{model}"), check), "id", model, f"/v1/models/{model}")


async def _check_ollama_models(gateway: HttpClient, check: WireCheck, model: str) -> None:
    version = require_field(_decode_reply(await gateway.get("/api/version"), check), "version", str, "/api/version")
    enough = [int(part) for part in version.split(".") if part.isdecimal()] >= [0, 6, 4]
    require(enough, f"/api/version is {version}; Copilot Chat needs 0.6.4 or later")
    listing = require_field(_decode_reply(await gateway.get("/api/tags"), check), "models", list, "/api/tags")
    names = [require_field(entry, key, str, "a model of /api/tags") for entry in listing for key in ("model", "name")]
    require(any(name.removesuffix(":latest") == model for name in names), f"/api/tags does not have {model}")
    shown = _decode_reply(await gateway.post("/api/show", {"model": model}), check)
    require(
        "tools" in require_field(shown, "capabilities", list, "/api/show"),
        "/api/show does not list tools among the model's capabilities",
    )
    info = require_field(shown, "model_info", dict, "/api/show")
    family = require_field(info, "general.architecture", str, "model_info")
    require_field(info, f"{family}.context_length", int, "model_info")


async def _check_text(gateway: HttpClient, check: WireCheck, model: str, *, stream: bool) -> None:
    trial = SmokeRequest(model=model, prompt="Say hello in one short sentence.", stream=stream)
    require((await _fetch_answer(gateway, check, trial)).text.strip(), "the answer is empty")


async def _check_tool_rounds(gateway: HttpClient, check: WireCheck, model: str, *, stream: bool) -> None:
    trial = SmokeRequest(model=model, prompt=_QUESTION, stream=stream, tool=_WEATHER_TOOL)
    call = _require_call(await _fetch_answer(gateway, check, trial))
    answer = await _fetch_answer(gateway, check, msgspec.structs.replace(trial, call=call, result=_TOOL_RESULT))
    require(not answer.calls, "after the tool result, the model calls again instead of answering")
    require(answer.text.strip(), "after the tool result, the answer is empty")


async def _check_xml_calls(gateway: HttpClient, check: WireCheck, model: str, *, stream: bool) -> None:
    """Check that the call is also in the text as `<use_tool>`, as Obsidian Copilot before 3.2 reads it."""
    trial = SmokeRequest(model=model, prompt=_QUESTION, stream=stream, tool=_WEATHER_TOOL)
    answer = await _fetch_answer(gateway, check, trial, {"x-proxy-output-mode": "obsidian-xml"})
    require(answer.calls, f"the model made no call; its text is: {_shorten_text(answer.text)}")
    structured, written = (
        [_decode_call(call) for call in calls] for calls in (answer.calls, _parse_calls(answer.text, "use_tool"))
    )
    require(written == structured, f"tool_calls has {structured}, the text has {written}: {_shorten_text(answer.text)}")


async def _check_unknown_model(gateway: HttpClient, check: WireCheck, model: str) -> None:
    reply = await gateway.post(check.path, check.build_body(SmokeRequest(model=_UNKNOWN_MODEL, prompt="Hello.")))
    require(reply.status == 404, f"an unknown model gives HTTP {reply.status}, not 404")
    message = check.read_error(reply.body)
    require(_UNKNOWN_MODEL in message, f"the error does not name the model: {_shorten_text(message)}")


async def _fetch_answer(
    gateway: HttpClient, check: WireCheck, trial: SmokeRequest, headers: dict[str, str] | None = None
) -> CheckedAnswer:
    reply = await gateway.post(check.path, check.build_body(trial), headers)
    _require_success(reply, check)
    expected = check.stream_type if trial.stream else "application/json"
    require(reply.content_type == expected, f"the content type is {reply.content_type}, not {expected}")
    return (check.read_stream if trial.stream else check.read_response)(reply.body)


def _require_call(answer: CheckedAnswer) -> ToolCall:
    """Return the first call. Its calls must be valid, and none may be repeated in the text."""
    require(answer.calls, f"the model made no call; its text is: {_shorten_text(answer.text)}")
    for call in answer.calls:
        require(call.name == _WEATHER_TOOL.name, f"the model calls {call.name}, which was not offered")
        require_field(decode_json(call.arguments, "arguments"), "city", str, "the arguments")
    require(not _parse_calls(answer.text, "auto"), f"the text contains a call: {_shorten_text(answer.text)}")
    return answer.calls[0]


def _parse_calls(text: str, name: str) -> tuple[ToolCall, ...]:
    spec = {"name": _WEATHER_TOOL.name, "parameters": _WEATHER_TOOL.parameters}
    parser = Parser(get_dialect(name), [{"type": "function", "function": spec}])
    return collect([*parser.feed(text), *parser.close()]).tool_calls


def _decode_call(call: ToolCall) -> tuple[str, object]:
    return call.name, decode_json(call.arguments, "arguments")


def _require_success(reply: HttpReply, check: WireCheck) -> bytes:
    if reply.status != 200:
        raise WireError(f"HTTP {reply.status}: {_shorten_text(check.read_error(reply.body))}")
    return reply.body


def _decode_reply(reply: HttpReply, check: WireCheck) -> Any:
    return decode_json(_require_success(reply, check), "the answer")


def _shorten_text(text: str, max_length: int = 160) -> str:
    line = " ".join(text.split())
    return line if len(line) <= max_length else f"{line[: max_length - 1]}…"


_TrialFunction = Callable[[HttpClient, WireCheck, str], Awaitable[None]]


def _map_to_wires(trial: _TrialFunction) -> dict[str, _TrialFunction]:
    return {check.name: trial for check in WIRE_CHECKS}


_TRIALS: dict[str, dict[str, _TrialFunction]] = {
    "models are listed": {"chat": _check_models, "ollama": _check_ollama_models},
    "text": _map_to_wires(partial(_check_text, stream=False)),
    "text, streamed": _map_to_wires(partial(_check_text, stream=True)),
    "tool call, two rounds": _map_to_wires(partial(_check_tool_rounds, stream=False)),
    "tool call, two rounds, streamed": _map_to_wires(partial(_check_tool_rounds, stream=True)),
    "tool call as XML text": {"chat": partial(_check_xml_calls, stream=False)},
    "tool call as XML text, streamed": {"chat": partial(_check_xml_calls, stream=True)},
    "unknown model is refused": _map_to_wires(_check_unknown_model),
}
TRIAL_WIRES = {name: tuple(trials) for name, trials in _TRIALS.items()}
"""The wires that each trial runs on."""
