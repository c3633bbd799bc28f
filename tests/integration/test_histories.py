"""Histories as clients really send them, through the gateway: mended, never fatal, and refused only where no model
could make sense of them (P-6, P-8, P-13)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.integration.hosted import Hosted, backend, model
from tests.integration.turns import spoken
from tests.integration.wires import CHAT, MESSAGES, OLLAMA, RESPONSES, WIRES, Call, Round, Wire
from tests.support.upstream import Upstream

EACH_WIRE = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
OSLO = Call("get_weather", {"city": "Oslo"})
ROUNDS = [Round("a", OSLO, "3 °C"), Round("b", OSLO, "4 °C")]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with Upstream(spoken("Cold.")) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, server: Upstream) -> Iterator[Hosted]:
    models = [
        model("m", "main"),
        model("taught", "main", tools="taught"),
        model("strict", "main", history={"roles": "strict"}),
        model("strict taught", "main", history={"roles": "strict"}, tools="taught"),
        model("as sent", "main", history={"repair": False}),
    ]
    with Hosted(tmp_path_factory.mktemp("gateway"), backend("main", server.url) + "".join(models)) as gateway:
        yield gateway


def history(wire: Wire, body: dict[str, Any]) -> list[Any]:
    """The messages of a request: the user's, then a call and its result for each round."""
    return list(body["input" if wire is RESPONSES else "messages"])


def told(gateway: Hosted, server: Upstream, wire: Wire, messages: list[Any], name: str = "m") -> list[dict[str, Any]]:
    """What the model's server gets of a conversation; every call in it has its result, and every result its call."""
    body = {**wire.body(name, stream=False), "input" if wire is RESPONSES else "messages": messages}
    reply = gateway.post(wire.path, body)
    assert (reply.status, wire.whole(reply.body).text) == (200, "Cold."), reply.body
    sent: list[dict[str, Any]] = server.requests[-1].json["messages"]
    made = [call["id"] for message in sent for call in message.get("tool_calls", ())]
    assert [message["tool_call_id"] for message in sent if message["role"] == "tool"] == made
    return sent


# ── calls and results that lost each other ───────────────────────────────────────────────────────


@EACH_WIRE
@pytest.mark.parametrize("rounds", [ROUNDS[:1], ROUNDS], ids=["one", "two"])
def test_results_in_a_conversation_without_any_call_are_a_clear_400(
    gateway: Hosted, server: Upstream, wire: Wire, rounds: list[Round]
) -> None:
    body = wire.body("m", stream=True, rounds=rounds)
    kept = [message for at, message in enumerate(history(wire, body)) if at % 2 == 0]
    before = len(server.requests)
    reply = gateway.post(wire.path, {**body, "input" if wire is RESPONSES else "messages": kept})
    assert reply.status == 400
    assert "no message before this result made " in wire.problem(reply.json)[0]
    assert len(server.requests) == before


@EACH_WIRE
def test_a_result_whose_call_was_trimmed_away_becomes_words_of_the_user(
    gateway: Hosted, server: Upstream, wire: Wire
) -> None:
    messages = history(wire, wire.body("m", stream=False, rounds=ROUNDS))
    del messages[1]
    sent = told(gateway, server, wire, messages)
    assert [message["role"] for message in sent] == ["user", "user", "assistant", "tool"]
    assert "3 °C" in sent[1]["content"]


@EACH_WIRE
def test_a_result_of_a_call_that_nobody_made_is_left_out(gateway: Hosted, server: Upstream, wire: Wire) -> None:
    messages = history(wire, wire.body("m", stream=False, rounds=ROUNDS))
    del messages[3]
    sent = told(gateway, server, wire, messages)
    assert [message["role"] for message in sent] == ["user", "assistant", "tool"]
    assert "4 °C" not in str(sent)


@EACH_WIRE
def test_a_call_without_its_result_is_told_so(gateway: Hosted, server: Upstream, wire: Wire) -> None:
    messages = history(wire, wire.body("m", stream=False, rounds=ROUNDS))
    del messages[4]
    sent = told(gateway, server, wire, messages)
    assert sent[-1]["content"] == "Error: no result was received for this call."


def test_a_history_goes_as_it_is_where_that_is_set(gateway: Hosted, server: Upstream) -> None:
    messages = history(CHAT, CHAT.body("m", stream=False, rounds=ROUNDS))
    del messages[4]
    body = {**CHAT.body("as sent", stream=False), "messages": messages}
    assert gateway.post(CHAT.path, body).status == 200
    assert [message["role"] for message in server.requests[-1].json["messages"]] == [
        *("user", "assistant", "tool", "assistant")
    ]


# ── arguments that are broken ────────────────────────────────────────────────────────────────────

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
BROKEN = st.text(st.sampled_from('{}[]":,\\ab0.-\n\u2028\ud83d☃'), max_size=30) | st.text(max_size=20)
ALMOST = st.dictionaries(st.text(max_size=5), VALUES, max_size=3).flatmap(
    lambda value: st.integers(0, 60).map(lambda end: json.dumps(value)[:end])
)
OBJECTS = st.dictionaries(st.text(max_size=5), VALUES, max_size=3)


def _with_arguments(wire: Wire, arguments: Any) -> dict[str, Any]:
    """A request whose history has a call with these arguments, in the form that the wire has for them."""
    body = wire.body("m", stream=False, rounds=ROUNDS[:1])
    call = history(wire, body)[1]
    if wire is CHAT or wire is OLLAMA:
        call["tool_calls"][0]["function"]["arguments"] = arguments
    elif wire is RESPONSES:
        call["arguments"] = arguments
    else:
        call["content"][0]["input"] = arguments
    return body


@EACH_WIRE
@pytest.mark.parametrize("name", ["m", "taught"])
@given(arguments=BROKEN | ALMOST | OBJECTS)
def test_arguments_in_a_history_never_make_a_request_fail(
    gateway: Hosted, server: Upstream, wire: Wire, name: str, arguments: Any
) -> None:
    reply = gateway.post(wire.path, {**_with_arguments(wire, arguments), "model": name})
    assert reply.status == 200, reply.body
    for message in server.requests[-1].json["messages"]:
        for call in message.get("tool_calls", ()):
            told = json.loads(call["function"]["arguments"])
            assert isinstance(told, dict)
            if isinstance(arguments, dict):
                assert told == arguments, "what is sound stays as it is"


@pytest.mark.parametrize("arguments", [None, [], [1, 2], 7, 1.5, True, "null", "", "[1]", '"{}"'])
@EACH_WIRE
def test_arguments_of_another_type_are_served_too(
    gateway: Hosted, server: Upstream, wire: Wire, arguments: Any
) -> None:
    reply = gateway.post(wire.path, _with_arguments(wire, arguments))
    assert reply.status == 200, reply.body
    (call,) = server.requests[-1].json["messages"][1]["tool_calls"]
    assert isinstance(json.loads(call["function"]["arguments"]), dict)


# ── pictures and roles ───────────────────────────────────────────────────────────────────────────

PICTURES: dict[str, tuple[Wire, str, Any]] = {
    "chat": (CHAT, "content", [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}]),
    "responses": (RESPONSES, "output", [{"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}]),
    "messages": (
        MESSAGES,
        "content",
        [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}],
    ),
    "ollama": (OLLAMA, "images", [PIXEL]),
}


@pytest.mark.parametrize("name", ["m", "taught"])
@pytest.mark.parametrize("case", PICTURES)
def test_a_picture_in_a_result_is_told_in_a_message_of_the_user(
    gateway: Hosted, server: Upstream, case: str, name: str
) -> None:
    wire, key, content = PICTURES[case]
    messages = history(wire, wire.body("m", stream=False, rounds=[Round("a", OSLO, "")]))
    result = messages[2]["content"][0] if wire is MESSAGES else messages[2]
    result[key] = content
    *_, last = told(gateway, server, wire, messages, name)
    assert last["role"] == "user"
    (picture,) = [part for part in last["content"] if part["type"] == "image_url"]
    assert picture["image_url"]["url"].endswith(PIXEL)


@pytest.mark.parametrize("name", ["strict", "strict taught"])
def test_roles_alternate_where_a_template_is_strict(gateway: Hosted, server: Upstream, name: str) -> None:
    user = {"role": "user", "content": "And?"}
    rounds = history(CHAT, CHAT.body("m", stream=False, rounds=ROUNDS))
    late = [{"role": "system", "content": "Hurry."}, user, user, {"role": "assistant", "content": "Well."}]
    sent = told(gateway, server, CHAT, [user, *rounds, *late, {"role": "assistant", "content": "So."}, user], name)
    roles = [message["role"] for message in sent if message["role"] != "tool"]
    assert (roles[0], roles.count("system")) == ("system", 1)
    # Between two answers of a round there are its results, which are the user's words where tools are taught.
    rounds_apart = name == "strict"
    assert not [
        pair for pair in pairwise(roles) if pair[0] == pair[1] and not (rounds_apart and pair[0] == "assistant")
    ]
