"""A turn is the same whatever API the model's server speaks.

Two gateways, one behind the other: the far one serves every wire over a chat server, the near one reaches it by every
kind of backend. So each calling half is tried against a real server, and every wire against every kind.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.integration.hosted import Hosted, backend, model
from tests.integration.test_same_turn import OSLO, TURNS, heard
from tests.integration.turns import said, spoken, text
from tests.integration.wires import WIRES, Round, Wire
from tests.support.upstream import Upstream, refused

KINDS = {"openai": "/v1", "responses": "/v1", "anthropic": "", "ollama": ""}
"""The kinds of backend, and what their addresses end in."""


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with Upstream([]) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, server: Upstream) -> Iterator[Hosted]:
    far_tables = backend("main", server.url) + model("m", "main")
    with Hosted(tmp_path_factory.mktemp("far"), far_tables) as far:
        tables = [
            f'[[backends]]\nname = "{kind}"\nkind = "{kind}"\nurl = "{far.url}{end}"\nretries = 0\n'
            f"breaker_failures = 1000000\n{model(kind, kind, model='m')}"
            for kind, end in KINDS.items()
        ]
        with Hosted(tmp_path_factory.mktemp("near"), "".join(tables)) as near:
            yield near


@pytest.mark.parametrize("turn", ["hermes", "native", "a reasoning field, then a call", "an answer", "only calls"])
@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_backend_gives_the_same_turn(
    gateway: Hosted, server: Upstream, kind: str, wire: Wire, turn: str
) -> None:
    script, expected = TURNS[turn]
    server.play(script)
    streamed, whole = (heard(gateway, wire, kind, stream=stream) for stream in (True, False))
    assert (streamed.text.rstrip("\n") if turn == "hermes" else streamed.text, *streamed.said[1:]) == expected
    assert streamed.said == whole.said


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
@pytest.mark.parametrize("kind", KINDS)
def test_results_go_all_the_way_with_their_calls(gateway: Hosted, server: Upstream, kind: str, wire: Wire) -> None:
    server.play(spoken("Cold."))
    answer = heard(gateway, wire, kind, stream=True, rounds=[Round("call_1", OSLO, "3 °C")])
    assert answer.said == ("Cold.", "", (), "stop")
    _, asked, result = server.requests[-1].json["messages"]
    (made,) = asked["tool_calls"]
    assert (made["function"]["name"], json.loads(made["function"]["arguments"])) == (OSLO.name, OSLO.arguments)
    assert (result["role"], result["tool_call_id"], result["content"]) == ("tool", made["id"], "3 °C")
    assert [tool["function"]["name"] for tool in server.requests[-1].json["tools"]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_turn_cut_by_the_limit_stays_cut(gateway: Hosted, server: Upstream, kind: str) -> None:
    server.play(said(*text("It is"), reason="length"))
    for wire in WIRES.values():
        assert heard(gateway, wire, kind, stream=True).said == ("It is", "", (), "length")


@pytest.mark.parametrize("kind", KINDS)
def test_the_failure_of_a_server_is_told_through_every_kind(gateway: Hosted, server: Upstream, kind: str) -> None:
    server.play(refused(500, "broken"))
    for wire in WIRES.values():
        reply = gateway.post(wire.path, wire.body(kind, stream=True))
        assert reply.status in (502, 503, 504)
        message, _ = wire.problem(reply.json)
        assert "broken" in message, message
