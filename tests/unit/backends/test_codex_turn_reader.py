"""What Codex tells of a turn, read as events: increments as they came, calls whole, and every failure by its name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.backends.codex.failures import find_finish_reason, parse_turn_error
from callwright.backends.codex.turn_reader import CodexReader, find_first_failure
from callwright.backends.errors import is_context_overflow
from callwright.errors import BackendError, WireError
from callwright.events import Event, Finish, ReasoningSealed, check_events, merge_deltas
from callwright.turn import collect

USAGE = {"inputTokens": 11, "outputTokens": 7, "reasoningOutputTokens": 2, "cachedInputTokens": 3}


def line(method: str, **params: Any) -> bytes:
    return json.dumps({"method": method, "params": {"threadId": "t", "turnId": "u", **params}}).encode() + b"\n"


def said(text: str) -> bytes:
    return line("item/agentMessage/delta", itemId="m", delta=text)


def item(kind: str, **fields: Any) -> bytes:
    return line("rawResponseItem/completed", item={"type": kind, **fields})


def called(number: int, arguments: str) -> bytes:
    return item("function_call", call_id=f"call_{number}", name="ping", arguments=arguments)


COMPLETED = line("rawResponse/completed", usage=USAGE)


def ended(message: str = "", info: Any = "other", status: str = "failed") -> bytes:
    error = {"message": message, "codexErrorInfo": info} if message else None
    return line("turn/completed", turn={"id": "u", "status": status, "error": error})


def read(*lines: bytes) -> list[Event]:
    reader = CodexReader()
    return [event for each in lines for event in reader.feed(each)]


TURNS = st.lists(
    st.sampled_from(["ha", "ha ", "\n", "é", "{", "}"]).map(said)
    | st.sampled_from(["hm", "hm"]).map(lambda text: line("item/reasoning/summaryTextDelta", delta=text))
    | st.integers(1, 3).map(lambda at: line("item/reasoning/summaryPartAdded", summaryIndex=at)),
    max_size=12,
)


@given(lines=TURNS, calls=st.lists(st.sampled_from(['{"a": 1 }', "{}"]), max_size=4), data=st.data())
def test_any_batching_gives_the_same_legal_turn(lines: list[bytes], calls: list[str], data: st.DataObject) -> None:
    everything = [
        *lines,
        *(called(number, text) for number, text in enumerate(calls)),
        COMPLETED,
        ended(),
        said("late"),
    ]
    cuts = data.draw(st.lists(st.integers(0, len(everything)), max_size=4).map(sorted))
    batches = [b"".join(everything[a:b]) for a, b in zip([0, *cuts], [*cuts, len(everything)], strict=True)]
    events = read(*filter(None, batches))
    check_events(events)
    assert merge_deltas(events) == merge_deltas(read(*everything))
    turn = collect(events)
    texts = [json.loads(each)["params"]["delta"] for each in lines if b"agentMessage" in each]
    assert turn.text == "".join(texts)
    assert [call.arguments for call in turn.tool_calls] == calls
    assert turn.finish_reason == ("tool_calls" if calls else "stop")
    assert turn.usage is not None
    assert turn.usage.cached_tokens == 3


def test_reasoning_that_is_told_in_two_ways_counts_once() -> None:
    both = [line("item/reasoning/summaryTextDelta", delta="sum"), line("item/reasoning/textDelta", delta="raw")]
    assert collect(read(*both, COMPLETED)).reasoning == "sum"
    assert collect(read(*both[::-1], COMPLETED)).reasoning == "raw"


def test_what_comes_without_deltas_is_read_from_its_item() -> None:
    message = item("message", role="assistant", content=[{"type": "output_text", "text": "Hello."}])
    thought = item("reasoning", summary=[{"text": "One."}, {"text": "Two."}], id="rs_1", encrypted_content="seal")
    events = read(thought, message, said("More."), message, message, COMPLETED)
    assert collect(events).text == "Hello.More.Hello."
    assert collect(events).reasoning == "One.\n\nTwo."
    assert ReasoningSealed({"id": "rs_1", "encrypted_content": "seal"}) in events


def test_what_others_say_in_a_turn_is_not_the_model_s() -> None:
    aborted = item("message", role="user", content=[{"type": "input_text", "text": "<turn_aborted>"}])
    probe = item("function_call_output", call_id="x", output="resources/list failed: unknown MCP server 'obsidian'")
    assert collect(read(aborted, probe, COMPLETED)).text == ""


def test_a_call_of_another_kind_ends_the_turn_too() -> None:
    patch = item("custom_tool_call", call_id="call_1", name="apply_patch", input="*** Begin")
    shell = item("local_shell_call", call_id="call_2", action={})
    turn = collect(read(patch, shell, COMPLETED))
    assert [(call.name, call.arguments) for call in turn.tool_calls] == [
        ("apply_patch", '{"input":"*** Begin"}'),
        ("local_shell_call", '{"input":null}'),
    ]
    assert turn.finish_reason == "tool_calls"


def test_what_the_provider_did_itself_is_no_call() -> None:
    search = item("web_search_call", id="ws_1", status="completed", action={"type": "search", "query": "x"})
    turn = collect(read(search, item("mcp_call", id="m"), said("Found."), COMPLETED))
    assert (turn.text, turn.tool_calls, turn.finish_reason) == ("Found.", (), "stop")


def test_a_turn_without_the_end_of_a_response_ends_all_the_same() -> None:
    assert read(said("x"), ended(status="completed"))[-1] == Finish("stop")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Incomplete response returned, reason: max_output_tokens", "length"),
        (
            "stream disconnected before completion: Incomplete response returned, reason: content_filter",
            "content_filter",
        ),
    ],
)
def test_a_turn_that_was_not_allowed_to_go_on_is_no_failure(message: str, reason: str) -> None:
    assert read(said("Half"), ended(message))[-1] == Finish(reason)  # type: ignore[arg-type]
    assert find_first_failure(ended(message)) is None
    assert find_finish_reason({"message": "Incomplete response returned, reason: unknown"}) is None


CUT = "stream disconnected before completion: "
BUSY = "We’re currently experiencing high demand, which may cause temporary errors."
FULL = "Codex ran out of room in the model's context window. Start a new thread or clear earlier history."


@pytest.mark.parametrize(
    ("message", "info", "kind", "status", "retryable", "words"),
    [
        ('{"error": {"message": "no such field"}}', "other", "refused", 400, False, "no such field"),
        ("unexpected status 401 Unauthorized: bad key, url: http://h/?k=1", 401, "auth", 401, False, "bad key"),
        ("unexpected status 404 Not Found: a: b, url: http://h/", 404, "refused", 404, False, "a: b"),
        ("unexpected status 503 X: later, url: http://h/, request id: 7", 503, "overloaded", 503, True, "later"),
        ("exceeded retry limit, last status: 429 Too Many Requests", 429, "rate_limit", 429, True, "429"),
        ("Connection failed: error sending request", None, "unavailable", 0, True, "cannot reach its provider"),
        (BUSY, "internalServerError", "unavailable", 500, True, "answered 500"),
        (FULL, "contextWindowExceeded", "refused", 400, False, "context window"),
        ("rate limit exceeded: slow down", "rateLimitExceeded", "rate_limit", 429, True, "slow down"),
        ("Quota exceeded.", "usageLimitExceeded", "rate_limit", 429, True, "Quota exceeded"),
        ("Selected model is at capacity.", "serverOverloaded", "overloaded", 503, True, "at capacity"),
        ("Sign in.", "unauthorized", "auth", 401, False, "Sign in"),
        (
            f"{CUT}stream closed before response.completed",
            "other",
            "unavailable",
            0,
            True,
            "closed the connection in the middle",
        ),
        ("something new", "somethingNew", "unavailable", 500, True, "something new"),
    ],
)
def test_a_failed_turn_is_what_it_would_be_without_codex(
    message: str, info: Any, kind: str, status: int, retryable: bool, words: str
) -> None:
    if not isinstance(info, str):
        info = {"httpConnectionFailed": {"httpStatusCode": info}}
    reader = CodexReader()
    assert collect(reader.feed(said("Half") + ended(message, info))).text == "Half"
    with pytest.raises(BackendError) as failed:
        reader.raise_pending_error()
    problem = failed.value
    assert (problem.kind, problem.status, problem.retryable) == (kind, status, retryable)
    assert words in str(problem)
    assert "http://h/" not in str(problem)
    assert str(find_first_failure(ended(message, info))) == str(problem)
    assert is_context_overflow(problem) == (info == "contextWindowExceeded")


def test_an_error_without_words_is_one() -> None:
    assert "no reason was given" in str(parse_turn_error({}))


def test_what_cannot_be_read_is_the_wire_s_fault_and_silence_the_backend_s() -> None:
    with pytest.raises(WireError):
        read(b'{"method": 3}\n')
    with pytest.raises(BackendError, match="before the end"):
        CodexReader().close()
