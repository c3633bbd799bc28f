"""What a Responses stream must look like, whoever wrote it, and what the official SDK says to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from callwright.events import Event
from callwright.model import Message, Request, Text
from callwright.wire.base import ClientRequest, ResponseHead, StreamStyle, ToolOrigin
from callwright.wire.framing import SseReader
from callwright.wire.openai_responses import OpenAIResponsesServerCodec

HEAD = ResponseHead("abc", 1_700_000_000, "some-model")
ASK = ClientRequest(request=Request("some-model", (Message("user", (Text("hi"),)),)))
CUSTOM = ClientRequest(
    request=ASK.request,
    origins={
        "apply_patch": ToolOrigin("apply_patch", "custom"),
        "mcp__notes__add": ToolOrigin("add", "function", "mcp__notes"),
        "code__run": ToolOrigin("run", "custom", "code"),
    },
)
TERMINAL = ("response.completed", "response.incomplete", "response.failed")


@cache
def adapter() -> TypeAdapter[Any]:
    return TypeAdapter(ResponseStreamEvent)


def written(
    events: Sequence[Event], ask: ClientRequest = ASK, style: StreamStyle | None = None, *, batches: Sequence[Any] = ()
) -> bytes:
    """The whole stream of a turn."""
    encoder = OpenAIResponsesServerCodec().create_encoder(ask, HEAD, style or StreamStyle())
    parts = [
        encoder.begin_stream(),
        *(encoder.encode_events(batch) for batch in batches or [events]),
        encoder.end_stream(),
    ]
    return b"".join(parts)


def told(data: bytes) -> list[dict[str, Any]]:
    """The events of a stream; each one's name is its type."""
    reader = SseReader()
    frames = reader.feed(data) + reader.close()
    bodies = [json.loads(body) for _, body in frames]
    assert [name.decode() for name, _ in frames] == [body["type"] for body in bodies]
    return bodies


def last(data: bytes) -> dict[str, Any]:
    """The response at the end of a stream."""
    return told(data)[-1]["response"]


def check_stream(data: bytes) -> list[dict[str, Any]]:
    """Fail unless a stream is one that every client takes; return its events."""
    events = told(data)
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [kind for kind in kinds if kind in TERMINAL] == kinds[-1:]
    response = events[-1]["response"]
    assert events[-1]["type"] == f"response.{response['status']}"
    assert response["usage"]["total_tokens"] >= 0
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == response["output"]
    assert len({item["id"] for item in done}) == len(done)
    added = [event for event in events if event["type"] == "response.output_item.added"]
    assert [event["output_index"] for event in added] == list(range(len(added)))
    for event in added:
        mine = [other for other in events if other.get("output_index") == event["output_index"]]
        if mine[-1]["type"] == "response.output_item.done":
            _check_item(mine, mine[-1]["item"])
        else:
            _check_cut_call(mine)
            assert response["status"] != "completed"
    for event in events:
        adapter().validate_python(event)
    return events


def check_response(body: dict[str, Any]) -> None:
    """Fail unless the SDK takes the response."""
    Response.model_validate(body)


def _check_cut_call(events: list[dict[str, Any]]) -> None:
    """Half a call is begun and never done: Codex 0.166 would run it."""
    assert events[0]["item"]["type"] in ("function_call", "custom_tool_call")
    assert all(event["type"].endswith(".delta") for event in events[1:])


def _check_item(events: list[dict[str, Any]], item: dict[str, Any]) -> None:
    kinds = [event["type"] for event in events]
    assert kinds[0] == "response.output_item.added"
    assert kinds[-1] == "response.output_item.done"
    assert events[0]["item"]["status"] == "in_progress"
    assert item["status"] in ("completed", "incomplete")
    assert {event["item_id"] for event in events[1:-1]} <= {item["id"]} == {events[0]["item"]["id"]}
    deltas = "".join(event["delta"] for event in events if event["type"].endswith(".delta"))
    assert all(event["delta"] for event in events if event["type"].endswith(".delta"))
    inner = [kind for kind in kinds[1:-1] if not kind.endswith(".delta")]
    match item["type"]:
        case "message":
            assert inner == [
                "response.content_part.added",
                "response.output_text.done",
                "response.content_part.done",
            ]
            assert events[-3]["text"] == events[-2]["part"]["text"] == item["content"][0]["text"] == deltas != ""
        case "reasoning":
            assert inner == [
                "response.reasoning_summary_part.added",
                "response.reasoning_summary_text.done",
                "response.reasoning_summary_part.done",
            ]
            assert events[-3]["text"] == events[-2]["part"]["text"] == item["summary"][0]["text"] == deltas != ""
        case "function_call":
            assert inner == ["response.function_call_arguments.done"]
            assert (item["arguments"], item["status"]) == (deltas, "completed")
            assert events[-2]["arguments"] == deltas
        case _:
            assert item["type"] == "custom_tool_call"
            assert inner == ["response.custom_tool_call_input.done"]
            assert (item["input"], item["status"]) == (deltas, "completed")
            assert events[-2]["input"] == deltas
