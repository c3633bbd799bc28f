"""Answers that will not do are asked for again, through the gateway, on every wire: within a budget, and never after
bytes of the call have reached the client (T-17, T-18). Where no tools are offered nothing is read (C-4b)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.hosted import Hosted, backend, model
from tests.integration.turns import call, delta, said, spoken, text
from tests.integration.wires import CHAT, WIRES, Call, Heard, Wire
from tests.support.upstream import HANG, Script, Step, Upstream, answer, refused

STREAM = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
EACH_WIRE = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
OSLO = Call("get_weather", {"city": "Oslo"})


def native(name: str, arguments: str) -> list[Step]:
    return [call(0, "", id="call_x", name=name), call(0, arguments)]


GOOD = said(*native("get_weather", '{"city": "Oslo"}'), reason="tool_calls")
UNREADABLE = '<tool_call>{"name": "get_weather", "arguments": Oslo}</tool_call>'
BAD: dict[str, Script] = {
    "unreadable": spoken(UNREADABLE),
    "unknown tool": said(*native("forecast", '{"city": "Oslo"}'), reason="tool_calls"),
    "empty": said(),
}
MISFIT = said(*native("get_weather", '{"days": 3}'), reason="tool_calls")


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with Upstream([]) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, server: Upstream) -> Iterator[Hosted]:
    models = [
        model("m", "main"),
        model("hermes", "main", dialect="hermes"),
        model("taught", "main", tools="taught", dialect="hermes"),
        model("ask", "main", rules={"malformed": "retry", "max_retries": 3}),
        model("show", "main", dialect="hermes", rules={"malformed": "show"}),
        model("once", "main", rules={"max_retries": 0}),
    ]
    with Hosted(tmp_path_factory.mktemp("gateway"), backend("main", server.url) + "".join(models)) as gateway:
        yield gateway


def heard(gateway: Hosted, wire: Wire, name: str, *, stream: bool, **changes: Any) -> Heard:
    reply = gateway.post(wire.path, {**wire.body(name, stream=stream), **changes})
    assert reply.status == 200, reply.body
    return wire.streamed(reply.body) if stream else wire.whole(reply.body)


def counted(gateway: Hosted) -> float:
    page = gateway.get("/metrics").body.decode()
    lines = [line for line in page.splitlines() if line.startswith("callwright_retries_total{")]
    return sum(float(line.split()[1]) for line in lines)


@STREAM
@EACH_WIRE
@pytest.mark.parametrize("bad", BAD)
def test_what_will_not_do_is_asked_for_again_and_counted(
    gateway: Hosted, server: Upstream, wire: Wire, stream: bool, bad: str
) -> None:
    before, asked = counted(gateway), len(server.requests)
    server.play(BAD[bad], GOOD)
    assert heard(gateway, wire, "m", stream=stream).said == ("", "", (OSLO,), "tool_calls")
    assert (counted(gateway) - before, len(server.requests) - asked) == (1, 2)
    word = server.requests[-1].json["messages"][-1]
    assert (word["role"], "cannot be used" in word["content"]) == ("user", True)


@STREAM
@pytest.mark.parametrize("name", ["hermes", "taught"])
def test_words_before_a_call_that_cannot_be_read_are_heard_once(
    gateway: Hosted, server: Upstream, stream: bool, name: str
) -> None:
    well = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    server.play(spoken(f"Let me look. {UNREADABLE} So."), spoken(well))
    answered = heard(gateway, CHAT, name, stream=stream)
    assert answered.said == ("Let me look. ", "", (OSLO,), "tool_calls")
    *_, said_before, _ = server.requests[-1].json["messages"]
    assert (said_before["role"], said_before["content"]) == ("assistant", "Let me look. ")


def test_the_model_is_not_heard_to_the_end_of_an_answer_that_will_not_do(gateway: Hosted, server: Upstream) -> None:
    server.play(answer(*native("forecast", "{"), HANG), GOOD)
    assert heard(gateway, CHAT, "m", stream=True).calls == (OSLO,)
    assert server.requests[-2].wait_left()


@STREAM
@EACH_WIRE
def test_arguments_that_do_not_fit_are_asked_for_again_where_that_is_set(
    gateway: Hosted, server: Upstream, wire: Wire, stream: bool
) -> None:
    server.play(MISFIT, GOOD)
    assert heard(gateway, wire, "ask", stream=stream).said == ("", "", (OSLO,), "tool_calls")
    assert '"city" is a required property' in server.requests[-1].json["messages"][-1]["content"]
    server.play(MISFIT)
    assert heard(gateway, wire, "m", stream=stream).calls == (Call("get_weather", {"days": 3}),), "else they stream"


def test_the_steps_are_a_word_then_a_pinned_choice_then_other_sampling(gateway: Hosted, server: Upstream) -> None:
    server.play(MISFIT)
    before = len(server.requests)
    reply = gateway.post(CHAT.path, {**CHAT.body("ask", stream=False), "temperature": 0, "seed": 5})
    assert reply.status == 502
    assert "no usable answer in 4 attempts" in reply.json["error"]["message"]
    tries = [seen.json for seen in server.requests[before:]]
    pinned = {"type": "function", "function": {"name": "get_weather"}}
    assert [body.get("tool_choice", "auto") for body in tries] == ["auto", "auto", pinned, pinned]
    assert [(body["temperature"], body["seed"]) for body in tries] == [(0, 5), (0, 5), (0, 5), (0.8, 8)]


@STREAM
def test_when_the_budget_is_spent_the_answer_goes_out_as_it_is(gateway: Hosted, server: Upstream, stream: bool) -> None:
    for name, tries in (("m", 3), ("once", 1)):
        before = len(server.requests)
        server.play(BAD["unknown tool"])
        answered = heard(gateway, CHAT, name, stream=stream)
        assert (answered.calls, len(server.requests) - before) == ((Call("forecast", {"city": "Oslo"}),), tries)
        server.play(BAD["unreadable"])
        assert heard(gateway, CHAT, name, stream=stream).text == UNREADABLE


def test_after_bytes_of_a_call_have_gone_out_nothing_is_asked_for_again(gateway: Hosted, server: Upstream) -> None:
    server.play(said(*native("get_weather", '{"city": "Os'), *text(UNREADABLE), reason="stop"))
    before = len(server.requests)
    gateway.post(CHAT.path, CHAT.body("m", stream=True))
    assert len(server.requests) == before + 1


def test_a_call_that_cannot_be_read_is_shown_where_that_is_set(gateway: Hosted, server: Upstream) -> None:
    server.play(spoken(UNREADABLE))
    assert heard(gateway, CHAT, "show", stream=True).text == UNREADABLE


# ── calls in odd places ──────────────────────────────────────────────────────────────────────────

WELL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
PLACES: dict[str, tuple[Script, str]] = {
    "a field of reasoning": (said(delta(reasoning_content=f"Weather. {WELL}")), ""),
    "reasoning in the text": (spoken(f"<think>\nWeather. {WELL}\n</think>\n"), ""),
    "an error of llama.cpp": (refused(500, f"Failed to parse input at pos 0: {WELL}"), ""),
    "glued to prose": (spoken(f"Let me look:{WELL}"), "Let me look:"),
    "twice, as text and natively": (said(*text(WELL), *native("get_weather", '{"city": "Oslo"}')), ""),
}


@STREAM
@EACH_WIRE
@pytest.mark.parametrize("place", PLACES)
def test_a_call_in_an_odd_place_is_recovered_once(
    gateway: Hosted, server: Upstream, wire: Wire, stream: bool, place: str
) -> None:
    script, words = PLACES[place]
    server.play(script)
    answered = heard(gateway, wire, "hermes", stream=stream)
    assert (answered.text.strip(), answered.calls, answered.finish) == (words, (OSLO,), "tool_calls")


# ── no tools, nothing is read ────────────────────────────────────────────────────────────────────

MARKUP = [
    "<read_file>\n<path>a.txt</path>\n</read_file>",
    f"So: {WELL}",
    UNREADABLE,
    '<invoke name="get_weather"><parameter name="city">Oslo</parameter></invoke>',
    '```json\n{"name": "get_weather", "arguments": {}}\n```',
    '{"name": "get_weather", "arguments": {"city": "Oslo"}}',
]


@STREAM
@EACH_WIRE
@pytest.mark.parametrize("markup", MARKUP)
@pytest.mark.parametrize("name", ["m", "taught", "ask"])
def test_without_tools_markup_belongs_to_the_client(
    gateway: Hosted, server: Upstream, wire: Wire, stream: bool, markup: str, name: str
) -> None:
    server.play(spoken(markup))
    reply = gateway.post(wire.path, wire.body(name, stream=stream, tools=False))
    answered = wire.streamed(reply.body) if stream else wire.whole(reply.body)
    assert answered.said == (markup, "", (), "stop")
    assert "tools" not in server.requests[-1].json
    assert [message["role"] for message in server.requests[-1].json["messages"]] == ["user"]


# ── another way to give the tools ────────────────────────────────────────────────────────────────


@pytest.fixture
def choosing(tmp_path_factory: pytest.TempPathFactory, server: Upstream) -> Iterator[Hosted]:
    tables = backend("plain", server.url) + backend("forms", server.url, constrain="llamacpp")
    tables += model("plain", "plain", dialect="hermes") + model("forms", "forms", dialect="hermes")
    tables += model("held", "forms", dialect="hermes", tools="constrained")
    with Hosted(tmp_path_factory.mktemp("choosing"), tables) as gateway:
        yield gateway


def ways(server: Upstream, since: int) -> list[str]:
    """How the server was given the tools, request by request."""
    bodies = [seen.json for seen in server.requests[since:]]
    return ["native" if "tools" in body else "constrained" if "grammar" in body else "taught" for body in bodies]


NO_TOOLS = refused(400, "registry.ollama.ai/library/m does not support tools")
NO_FORM = refused(400, "failed to parse grammar")


@pytest.mark.parametrize(
    ("name", "scripts", "first", "later"),
    [
        ("plain", [NO_TOOLS, spoken(WELL)], ["native", "taught"], ["taught"]),
        ("forms", [NO_TOOLS, spoken(WELL)], ["native", "constrained"], ["constrained"]),
        ("forms", [NO_TOOLS, NO_FORM, spoken(WELL)], ["native", "constrained", "taught"], ["taught"]),
        ("held", [NO_FORM, spoken(WELL)], ["constrained", "taught"], ["taught"]),
    ],
    ids=["native to taught", "native to constrained", "native to constrained to taught", "constrained to taught"],
)
def test_a_way_that_a_server_refuses_is_left_for_the_next_and_that_is_remembered(
    choosing: Hosted, server: Upstream, name: str, scripts: list[Script], first: list[str], later: list[str]
) -> None:
    server.play(*scripts)
    for expected in (first, later, later):
        before = len(server.requests)
        assert heard(choosing, CHAT, name, stream=True).calls == (OSLO,)
        assert ways(server, before) == expected
