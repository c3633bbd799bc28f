"""The same turn of a model is the same turn to every client: on four wires, streamed and whole."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from callwright.dialects import REGISTRY
from callwright.model import ToolCall
from tests.integration.hosted import Hosted, backend, model
from tests.integration.turns import CALL_BEGUN, CALL_ENDED, call, delta, said, spoken, text
from tests.integration.wires import CHAT, WIRES, Call, Heard, Round, Wire, chat_choices, chat_whole
from tests.support.upstream import Script, Step, Upstream

DIALECTS = ("hermes", "qwen3_coder", "invoke", "kimi_k2", "mistral", "glm47", "deepseek_v31", "use_tool", "pythonic")
"""Families whose calls look nothing like each other."""
LOOK = "Let me look."
PARIS = Call("get_weather", {"city": 'Paris "Île"\n☃', "days": 3})
OSLO = Call("get_weather", {"city": "Oslo"})
BOTH = ("", (PARIS, OSLO), "tool_calls")


def _written(dialect: str) -> Script:
    family = REGISTRY[dialect]
    calls = (
        ToolCall(family.make_call_id(one.name, at), one.name, json.dumps(one.arguments))
        for at, one in enumerate((PARIS, OSLO))
    )
    return spoken(f"{family.render_text(LOOK)}\n{family.render_call(*calls)}")


def _pieces(index: int, one: Call, size: int = 5) -> list[bytes]:
    arguments = json.dumps(one.arguments)
    pieces = [arguments[at : at + size] for at in range(0, len(arguments), size)]
    return [call(index, "", id=f"call_{index}", name=one.name), *(call(index, piece) for piece in pieces)]


NATIVE: list[Step] = [*text(LOOK), *_pieces(0, PARIS), *_pieces(1, OSLO)]
TURNS: dict[str, tuple[Script, tuple[str, str, tuple[Call, ...], str]]] = {
    **{dialect: (_written(dialect), (LOOK, *BOTH)) for dialect in DIALECTS},
    "native": (said(*NATIVE, reason="tool_calls"), (LOOK, *BOTH)),
    # Ollama's own server, among others, ends on `stop` after calls.
    "native, ended on stop": (said(*NATIVE), (LOOK, *BOTH)),
    "only calls": (said(*_pieces(0, PARIS), *_pieces(1, OSLO), reason="tool_calls"), ("", *BOTH)),
    "a reasoning field, then a call": (
        said(delta(reasoning_content="Look"), delta(reasoning_content="ing."), *_pieces(0, OSLO), reason="tool_calls"),
        ("", "Looking.", (OSLO,), "tool_calls"),
    ),
    "thinking as text, then a call as text": (
        spoken('<think>\nWeather.\n</think>\n<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'),
        ("", "Weather.", (Call("ping", {}),), "tool_calls"),
    ),
    "an answer": (
        spoken("It is 3 °C — bring a coat.\n\nThat is all.\n"),
        ("It is 3 °C — bring a coat.\n\nThat is all.\n", "", (), "stop"),
    ),
    "an answer cut by the limit": (said(*text("It is"), reason="length"), ("It is", "", (), "length")),
    "a call cut by the limit": (said(*text(LOOK), *CALL_BEGUN, reason="length"), (LOOK, "", (), "length")),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with Upstream([]) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, server: Upstream) -> Iterator[Hosted]:
    tables = [model(name, "main", dialect=name) for name in DIALECTS] + [model("m", "main")]
    with Hosted(tmp_path_factory.mktemp("gateway"), backend("main", server.url) + "".join(tables)) as gateway:
        yield gateway


def heard(gateway: Hosted, wire: Wire, name: str, *, stream: bool, **more: object) -> Heard:
    """A turn as a client of that wire hears it."""
    reply = gateway.post(wire.path, wire.body(name, stream=stream, **more))
    assert reply.status == 200, reply.body
    assert reply.headers["content-type"].partition(";")[0] == (wire.content_type if stream else "application/json")
    return wire.streamed(reply.body) if stream else wire.whole(reply.body)


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_every_client_hears_the_same_turn(gateway: Hosted, server: Upstream, wire: Wire, turn: str) -> None:
    script, expected = TURNS[turn]
    server.play(script)
    name = turn if turn in DIALECTS else "m"
    streamed, whole = (heard(gateway, wire, name, stream=stream) for stream in (True, False))
    assert (streamed.text.rstrip("\n") if turn in DIALECTS else streamed.text, *streamed.said[1:]) == expected
    assert streamed.said == whole.said
    assert streamed.usage == whole.usage
    for one in (streamed, whole):
        assert len(set(one.ids)) == len(expected[2]), "each call has an id of its own"


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_a_model_that_numbers_its_calls_anew_in_every_turn_repeats_no_id(
    gateway: Hosted, server: Upstream, wire: Wire
) -> None:
    server.play(said(*_pieces(0, OSLO)))
    first = heard(gateway, wire, "m", stream=True)
    second = heard(gateway, wire, "m", stream=True, rounds=[Round(first.ids[0], OSLO, "3 °C")])
    assert first.calls == second.calls == (OSLO,)
    # Ollama's clients send no ids back: there each turn has a numbering of its own.
    assert wire.name == "ollama" or first.ids != second.ids


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_a_result_reaches_the_model_with_its_call(gateway: Hosted, server: Upstream, wire: Wire, stream: bool) -> None:
    server.play(spoken("Cold."))
    answer = heard(gateway, wire, "m", stream=stream, rounds=[Round("call_1", OSLO, "3 °C")])
    assert answer.said == ("Cold.", "", (), "stop")
    _, asked, result = server.requests[-1].json["messages"]
    (made,) = asked["tool_calls"]
    assert made["function"]["name"] == OSLO.name
    assert json.loads(made["function"]["arguments"]) == OSLO.arguments
    assert (result["role"], result["tool_call_id"], result["content"]) == ("tool", made["id"], "3 °C")


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_each_of_several_choices_has_its_own_calls_ids_and_end(gateway: Hosted, server: Upstream, stream: bool) -> None:
    expected = [
        ("", "Hm.", (OSLO,), "tool_calls"),
        ("It is cold", "", (), "length"),
        (LOOK, "", (PARIS, OSLO), "tool_calls"),
    ]
    server.play(
        said(delta(reasoning_content="Hm."), 0.02, *_pieces(2, OSLO)),
        said(*text("It is cold"), reason="length"),
        said(*text(LOOK), 0.02, *_pieces(0, PARIS), 0.02, *_pieces(1, OSLO)),
    )
    reply = gateway.post(CHAT.path, {**CHAT.body("m", stream=stream), "n": 3})
    choices = chat_choices(reply.body, 3) if stream else chat_whole(reply.body)
    assert sorted((choice.said for choice in choices), key=str) == expected, "which is asked first is not our affair"
    ids = [one for choice in choices for one in choice.ids]
    assert len(set(ids)) == len(ids) == 3
    assert len({request.port for request in server.requests[-3:]}) == 3, "they run side by side"


def test_a_choice_that_fails_ends_all_choices(gateway: Hosted, server: Upstream) -> None:
    server.play(
        said(*text(LOOK), *CALL_BEGUN, *CALL_ENDED), said(*text("Well"), 0.1, b"data: {\n\n"), said(*text("Ok"))
    )
    reply = gateway.post(CHAT.path, {**CHAT.body("m", stream=True), "n": 3})
    choices = chat_choices(reply.body, 3)
    assert {choice.error for choice in choices} != {""}
    assert "sent an invalid chunk" in choices[0].error
