"""The shapes take what every client takes, and name what some client would trip over."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from callwright.cli.wire_checks import WIRE_CHECKS, CheckedAnswer, SmokeRequest
from callwright.errors import WireError
from callwright.model import ToolCall, ToolSpec
from tests.unit.cli import answers
from tests.unit.cli.answers import ARGUMENTS, ID, Frames

WIRE = {shape.name: shape for shape in WIRE_CHECKS}
FRAMES: dict[str, Callable[..., Frames]] = {
    "chat": answers.chat_frames,
    "responses": answers.responses_frames,
    "messages": answers.messages_frames,
    "ollama": answers.ollama_frames,
}
BYTES: dict[str, Callable[[Frames], bytes]] = {
    "chat": answers.chat_bytes,
    "responses": answers.named_bytes,
    "messages": answers.named_bytes,
    "ollama": answers.ollama_bytes,
}
WHOLE: dict[str, Callable[..., dict[str, Any]]] = {
    "chat": answers.chat_whole,
    "responses": answers.responses_whole,
    "messages": answers.messages_whole,
    "ollama": answers.ollama_whole,
}


def streamed(wire: str, frames: Frames) -> CheckedAnswer:
    return WIRE[wire].read_stream(BYTES[wire](frames))


def refuses(pattern: str, read: Callable[[bytes], Any], body: bytes) -> None:
    with pytest.raises(WireError, match=pattern):
        read(body)


@pytest.mark.parametrize("wire", WIRE)
@pytest.mark.parametrize(("text", "call"), [("Hi.", False), ("Hi.", True), ("", True)])
def test_a_good_answer_says_the_same_whole_and_streamed(wire: str, text: str, call: bool) -> None:
    for seen in (
        streamed(wire, FRAMES[wire](text, call=call)),
        WIRE[wire].read_response(json.dumps(WHOLE[wire](text, call=call)).encode()),
    ):
        assert seen.text == text
        assert [(each.name, json.loads(each.arguments)) for each in seen.calls] == (
            [("get_weather", {"city": "Oslo"})] if call else []
        )
        assert seen.finish == ("tool_calls" if call else "stop")


def chat_with(change: Callable[[Frames], Any]) -> bytes:
    frames = copy.deepcopy(answers.chat_frames("Hi there", call=True))
    change(frames)
    return answers.chat_bytes(frames)


def delta(frames: Frames, number: int) -> dict[str, Any]:
    found: dict[str, Any] = frames[number]["choices"][0]["delta"]
    return found


def first_call(frames: Frames) -> dict[str, Any]:
    found: dict[str, Any] = delta(frames, 3)["tool_calls"][0]
    return found


def second_call(frames: Frames) -> None:
    again = copy.deepcopy(frames[3:7])
    for frame in again:
        frame["choices"][0]["delta"]["tool_calls"][0]["index"] = 1
    frames[7:7] = again


CHAT_BREAKS: list[tuple[str, Callable[[Frames], Any]]] = [
    ("first delta has no role", lambda f: delta(f, 0).pop("role")),
    ("role comes twice", lambda f: delta(f, 1).update(role="assistant")),
    ("role is user, not assistant", lambda f: delta(f, 0).update(role="user")),
    ("has no object", lambda f: f[2].pop("object")),
    ("changes between chunks", lambda f: f[2].update(id="other")),
    ("changes between chunks", lambda f: f[2].update(created=2)),
    ("changes between chunks", lambda f: f[2].update(model="n")),
    ("content is", lambda f: delta(f, 1).update(content=[{"type": "text", "text": "Hi"}])),
    ("text and tool_calls share", lambda f: delta(f, 3).update(content="x")),
    ("empty tool_calls", lambda f: delta(f, 4).update(tool_calls=[])),
    ("has no index", lambda f: first_call(f).pop("index")),
    ("index is not an integer", lambda f: first_call(f).update(index=True)),
    ("index 1 where -1", lambda f: first_call(f).update(index=1)),
    ("has no id", lambda f: first_call(f).pop("id")),
    ("id is empty", lambda f: first_call(f).update(id="")),
    ("has no type", lambda f: first_call(f).pop("type")),
    ("has no name", lambda f: first_call(f)["function"].pop("name")),
    ("has no arguments", lambda f: first_call(f)["function"].pop("arguments")),
    ("arguments is not a string", lambda f: first_call(f)["function"].update(arguments={})),
    ("call 0 repeats its id", lambda f: delta(f, 4)["tool_calls"][0].update(id=ID)),
    ("call 0 repeats its type", lambda f: delta(f, 4)["tool_calls"][0].update(type="function")),
    ("repeats its name", lambda f: delta(f, 4)["tool_calls"][0]["function"].update(name="get_weather")),
    ("not JSON", lambda f: f.pop(6)),
    (
        "not a JSON object",
        lambda f: [delta(f, n)["tool_calls"][0]["function"].update(arguments="1") for n in (4, 5, 6)],
    ),
    ("two calls have the same id", second_call),
    ("no finish_reason, not even null", lambda f: f[1]["choices"][0].pop("finish_reason")),
    ("the stream has no finish_reason", lambda f: f.pop(7) and f.pop(7)),
    ("without choices comes before the finish", lambda f: f.pop(7)),
    ("finish comes with a delta", lambda f: delta(f, 7).update(content="")),
    ("goes on after its finish_reason", lambda f: f.insert(8, copy.deepcopy(f[1]))),
    ("ends with 'stop' after 1 calls", lambda f: f[7]["choices"][0].update(finish_reason="stop")),
    ("finish_reason is 'end'", lambda f: f[7]["choices"][0].update(finish_reason="end")),
    ("no usage, although the request", lambda f: f.pop()),
    ("has no usage", lambda f: f[8].pop("usage")),
    ("total_tokens is 8, not 7", lambda f: f[8]["usage"].update(total_tokens=8)),
    ("follows the usage", lambda f: f.append(copy.deepcopy(f[1]))),
    ("reports an error", lambda f: f.insert(2, {"error": {"message": "boom"}})),
    ("more than one choice", lambda f: f[1]["choices"][0].update(index=1)),
]


@pytest.mark.parametrize(("reason", "change"), CHAT_BREAKS, ids=[reason for reason, _ in CHAT_BREAKS])
def test_a_broken_chat_stream_is_named(reason: str, change: Callable[[Frames], Any]) -> None:
    refuses(re.escape(reason), WIRE["chat"].read_stream, chat_with(change))


GOOD = answers.chat_frames("Hi", call=False)
FRAMING: list[tuple[str, bytes]] = [
    ("does not end with data: [DONE]", answers.chat_bytes(GOOD, end="")),
    ("its last event is lost", answers.chat_bytes(GOOD, end="data: [DONE]\n")),
    ("does not end with data: [DONE]", answers.chat_bytes(GOOD, end="data: [DONE]\n\ndata: {}\n\n")),
    ("something follows data: [DONE]", answers.chat_bytes(GOOD, end="data: [DONE]\n\n: late\n\n")),
    ("event: lines", b"event: chunk\n" + answers.chat_bytes(GOOD).removeprefix(b": hello\n\n")),
    ("2 data lines", b"data: {\ndata: }\n\n"),
    ("neither event, data nor comment", b"id: 4\n\n" + answers.chat_bytes(GOOD)),
    ("not UTF-8", b": \xff\n\n" + answers.chat_bytes(GOOD)),
    ("a chunk is not JSON", b"data: {\n\n" + answers.chat_bytes(GOOD)),
    ("no delta", answers.chat_bytes([])),
    ("does not end with data: [DONE]", b""),
]


@pytest.mark.parametrize(("reason", "body"), FRAMING)
def test_a_badly_framed_chat_stream_is_named(reason: str, body: bytes) -> None:
    refuses(re.escape(reason), WIRE["chat"].read_stream, body)


def without(frames: Frames, number: int) -> Frames:
    return frames[:number] + frames[number + 1 :]


def renumbered(frames: Frames) -> Frames:
    return [{**frame, "sequence_number": number} for number, frame in enumerate(frames)]


@pytest.mark.parametrize("number", range(len(answers.responses_frames("Hi", call=True))))
def test_no_event_of_a_responses_stream_can_be_left_out_or_doubled(number: int) -> None:
    frames = answers.responses_frames("Hi", call=True)
    for changed in (without(frames, number), frames[: number + 1] + frames[number:]):
        refuses(".", WIRE["responses"].read_stream, answers.named_bytes(changed))
        if frames[number]["type"] != "response.in_progress":
            refuses(".", WIRE["responses"].read_stream, answers.named_bytes(renumbered(changed)))


@pytest.mark.parametrize("number", range(len(answers.messages_frames("", call=True))))
def test_no_event_of_a_messages_stream_can_be_left_out_or_doubled(number: int) -> None:
    frames = answers.messages_frames("", call=True)
    if frames[number]["type"] != "ping":
        for changed in (without(frames, number), frames[: number + 1] + frames[number:]):
            refuses(".", WIRE["messages"].read_stream, answers.named_bytes(changed))


@pytest.mark.parametrize("wire", ["responses", "messages"])
def test_named_events_need_their_event_line(wire: str) -> None:
    body = b"".join(b"data: %b\n\n" % json.dumps(frame).encode() for frame in FRAMES[wire]("Hi", call=False))
    refuses("event: ''", WIRE[wire].read_stream, body)


def test_a_trailing_done_does_no_harm_on_responses() -> None:
    body = answers.named_bytes(answers.responses_frames("Hi", call=False), end="data: [DONE]\n\n")
    assert WIRE["responses"].read_stream(body).text == "Hi"


Change = Callable[[dict[str, Any]], Any]
WHOLE_BREAKS: list[tuple[str, str, Change]] = [
    ("chat", "has no object", lambda w: w.pop("object")),
    ("chat", "has no usage", lambda w: w.pop("usage")),
    ("chat", "0 choices", lambda w: w.update(choices=[])),
    ("chat", "has no content", lambda w: w["choices"][0]["message"].pop("content")),
    ("chat", "empty tool_calls", lambda w: w["choices"][0]["message"].update(tool_calls=[])),
    ("chat", "finish_reason is not a string", lambda w: w["choices"][0].update(finish_reason=None)),
    ("chat", "has no type", lambda w: w["choices"][0]["message"]["tool_calls"][0].pop("type")),
    ("chat", "empty id or name", lambda w: w["choices"][0]["message"]["tool_calls"][0].update(id="")),
    ("chat", "arguments are not a JSON object", lambda w: called(w).update(arguments="[]")),
    ("chat", "arguments is not a string", lambda w: called(w).update(arguments={})),
    ("responses", "has no usage", lambda w: w.pop("usage")),
    ("responses", "status is incomplete", lambda w: w.update(status="incomplete")),
    ("responses", "has no call_id", lambda w: w["output"][1].pop("call_id")),
    ("responses", "arguments is not a string", lambda w: w["output"][1].update(arguments={})),
    ("responses", "has no annotations", lambda w: w["output"][0]["content"][0].pop("annotations")),
    ("messages", "has no usage", lambda w: w.pop("usage")),
    ("messages", "has no input_tokens", lambda w: w["usage"].pop("input_tokens")),
    ("messages", "input is not an object", lambda w: w["content"][1].update(input=ARGUMENTS)),
    ("messages", "ends with 'stop' after 1 calls", lambda w: w.update(stop_reason="end_turn")),
    ("messages", "stop_reason is 'stop'", lambda w: w.update(stop_reason="stop")),
    ("ollama", "done is false, not true", lambda w: w.update(done=False)),
    ("ollama", "has no done_reason", lambda w: w.pop("done_reason")),
    ("ollama", "has no eval_count", lambda w: w.pop("eval_count")),
    ("ollama", "has no created_at", lambda w: w.pop("created_at")),
    ("ollama", "arguments is not an object", lambda w: ollama_called(w).update(arguments=ARGUMENTS)),
]


def called(whole: dict[str, Any]) -> dict[str, Any]:
    function: dict[str, Any] = whole["choices"][0]["message"]["tool_calls"][0]["function"]
    return function


def ollama_called(whole: dict[str, Any]) -> dict[str, Any]:
    function: dict[str, Any] = whole["message"]["tool_calls"][0]["function"]
    return function


@pytest.mark.parametrize(("wire", "reason", "change"), WHOLE_BREAKS, ids=[f"{w}: {r}" for w, r, _ in WHOLE_BREAKS])
def test_a_broken_whole_answer_is_named(wire: str, reason: str, change: Change) -> None:
    whole = copy.deepcopy(WHOLE[wire]("Hi", call=True))
    change(whole)
    if "content" in reason and wire == "chat":
        whole["choices"][0]["message"].pop("tool_calls", None)
    refuses(re.escape(reason), WIRE[wire].read_response, json.dumps(whole).encode())


def test_text_without_calls_may_not_be_null() -> None:
    whole = answers.chat_whole("", call=False)
    refuses("content is not a string", WIRE["chat"].read_response, json.dumps(whole).encode())


MESSAGES_BREAKS: list[tuple[str, Callable[[Frames], Any]]] = [
    ("has no input_tokens", lambda f: f[0]["message"]["usage"].pop("input_tokens")),
    ("has no usage", lambda f: f[-2].pop("usage")),
    ("stop_reason is not a string", lambda f: f[-2]["delta"].update(stop_reason=None)),
    ("index is 1, not 0", lambda f: f[2].update(index=1)),
    ("unknown type odd_delta", lambda f: f[3]["delta"].update(type="odd_delta")),
    ("the block of a input_json_delta", lambda f: f[3].update(delta={"type": "input_json_delta", "partial_json": ""})),
    ("unknown type odd", lambda f: f.insert(2, {"type": "odd"})),
    ("reports an error", lambda f: f.insert(2, {"type": "error", "error": {"message": "boom"}})),
    ("while a block is open", lambda f: f.insert(4, f.pop(-2))),
]


@pytest.mark.parametrize(("reason", "change"), MESSAGES_BREAKS, ids=[reason for reason, _ in MESSAGES_BREAKS])
def test_a_broken_messages_stream_is_named(reason: str, change: Callable[[Frames], Any]) -> None:
    frames = copy.deepcopy(answers.messages_frames("Hi", call=False))
    change(frames)
    refuses(re.escape(reason), WIRE["messages"].read_stream, answers.named_bytes(frames))


RESPONSES_BREAKS: list[tuple[str, Callable[[Frames], Any]]] = [
    ("without response.completed", lambda f: f.pop()),
    ("has no usage", lambda f: f[-1]["response"].pop("usage")),
    ("differ from the streamed items", lambda f: f[-1]["response"].update(output=[])),
    ("id has changed", lambda f: f[-1]["response"].update(id="resp_2")),
    ("status is in_progress, not completed", lambda f: f[-1]["response"].update(status="in_progress")),
    ("differs from its deltas", lambda f: f[-2]["item"].update(arguments="{}")),
    ("item_id is", lambda f: f[4].update(item_id="other")),
    ("output_index is", lambda f: f[4].update(output_index=7)),
    ("reports an error", lambda f: f.insert(2, {"type": "error", "message": "boom"})),
    ("follows the terminal event", lambda f: f.append(f[1])),
]


@pytest.mark.parametrize(("reason", "change"), RESPONSES_BREAKS, ids=[reason for reason, _ in RESPONSES_BREAKS])
def test_a_broken_responses_stream_is_named(reason: str, change: Callable[[Frames], Any]) -> None:
    frames = copy.deepcopy(answers.responses_frames("Hi", call=True))
    change(frames)
    refuses(re.escape(reason), WIRE["responses"].read_stream, answers.named_bytes(renumbered(frames)))


OLLAMA_BREAKS: list[tuple[str, bytes]] = [
    ("line 1 of 2: done is true", answers.ollama_bytes([answers.ollama_whole("a", call=False)] * 2)),
    ("done is false, not true", answers.ollama_bytes(answers.ollama_frames("Hi", call=False)[:-1])),
    ("the last line has no line break", answers.ollama_bytes(answers.ollama_frames("Hi", call=False)).rstrip()),
    ("is not JSON", b"data: {}\n"),
    ("the last line has no line break", b""),
]


@pytest.mark.parametrize(("reason", "body"), OLLAMA_BREAKS)
def test_a_broken_ollama_stream_is_named(reason: str, body: bytes) -> None:
    refuses(re.escape(reason), WIRE["ollama"].read_stream, body)


TOOL = ToolSpec("get_weather", "", {"type": "object"})
ROUND_TWO = SmokeRequest(model="m", prompt="?", tool=TOOL, call=ToolCall(ID, "get_weather", ARGUMENTS), result="rain")


@pytest.mark.parametrize("wire", WIRE)
def test_the_second_round_carries_the_call_and_its_result(wire: str) -> None:
    body = json.dumps(WIRE[wire].build_body(ROUND_TWO))
    for part in ("get_weather", "Oslo", "rain"):
        assert part in body
    assert (ID in body) == (wire != "ollama")  # Ollama matches results by the tool's name


REFUSALS = {
    "chat": {"error": {"message": "no", "type": "invalid_request_error", "code": None, "param": None}},
    "responses": {"error": {"message": "no", "type": "invalid_request_error"}},
    "messages": {"type": "error", "error": {"type": "not_found_error", "message": "no"}},
    "ollama": {"error": "no"},
}


@pytest.mark.parametrize("wire", WIRE)
def test_each_wire_has_its_own_form_of_errors(wire: str) -> None:
    assert WIRE[wire].read_error(json.dumps(REFUSALS[wire]).encode()) == "no"
    other = REFUSALS["ollama" if wire != "ollama" else "chat"]
    refuses("error", WIRE[wire].read_error, json.dumps(other).encode())
