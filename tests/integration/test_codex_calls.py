"""Calls through the real Codex where something is wrong with them: the response breaks off after one, the next is long
in coming, the arguments do not fit, or what looks like one is noise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from callwright.backends.codex import thread
from tests.integration.codexes import heard
from tests.integration.hosted import Hosted, backend, model
from tests.integration.test_output_modes import VALUES, escaped
from tests.integration.wires import CHAT, RESPONSES, Call, Wire
from tests.support import old_clients
from tests.support.codex import CREATED, NEEDED, PROGRAM, call, ended, item, responded, text
from tests.support.old_clients import Found
from tests.support.upstream import CLOSE, HANG, Step, Upstream, answer

pytestmark = [NEEDED, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def provider() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, provider: Upstream) -> Iterator[Hosted]:
    tables = [
        backend("codex", provider.url, kind="codex", path=str(PROGRAM)),
        model("m", "codex"),
        model("strict", "codex", rules={"malformed": "retry"}),
    ]
    with Hosted(tmp_path_factory.mktemp("gateway"), "\n".join(tables)) as gateway:
        yield gateway


@pytest.mark.parametrize(
    ("ending", "finish", "error"),
    [
        (CLOSE, "", "closed the connection in the middle"),
        (ended("failed", error={"code": "server_error", "message": "It is so."}), "", "It is so."),
        (ended("incomplete", incomplete_details={"reason": "max_output_tokens"}), "tool_calls", ""),
    ],
    ids=["cut", "failed", "output limit"],
)
@pytest.mark.parametrize("wire", [CHAT, RESPONSES], ids=lambda wire: wire.name)
def test_how_a_response_ends_after_a_call_is_told_though_codex_waits_for_the_result(
    gateway: Hosted,
    provider: Upstream,
    monkeypatch: pytest.MonkeyPatch,
    wire: Wire,
    ending: Step,
    finish: str,
    error: str,
) -> None:
    monkeypatch.setattr(thread, "SILENCE_SECONDS", 0.3)
    provider.play(answer(CREATED, *text("I look."), *call("call_1", "ping", "{}"), ending))
    before = len(provider.requests)
    turn = heard(gateway, wire)
    assert turn.said == ("I look.", "", (Call("ping", {}),) if finish else (), finish)
    assert (bool(turn.error), error in turn.error) == (bool(error), True)
    assert len(provider.requests) == before + 1


def test_calls_with_a_long_silence_between_them_are_all_collected(
    gateway: Hosted, provider: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is answered meanwhile; what Codex asks for with that answer ends as soon as the response does."""
    monkeypatch.setattr(thread, "SILENCE_SECONDS", 0.1)
    before = len(provider.requests)

    def played(seen: Any) -> list[Step]:
        own = any(each["type"] == "function_call_output" for each in seen.json["input"])
        both: list[Step] = [*call("call_1", "ping", "{}"), 0.5, *call("call_2", "ping", "{}"), 0.5]
        return answer(CREATED, HANG) if own else responded(*both)

    provider.play(played)
    turn = heard(gateway, CHAT)
    assert (turn.ids, turn.finish, turn.error) == (("call_1", "call_2"), "tool_calls", "")
    assert len(provider.requests) <= before + 2
    assert all(seen.wait_left() for seen in provider.requests[before + 1 :])


@pytest.mark.parametrize(
    ("schema", "wrong", "right"),
    [
        ({"type": "string", "pattern": "^x+$"}, '{"a": "y"}', '{"a": "xx"}'),
        ({"type": "string", "minLength": 2}, '{"a": "y"}', '{"a": "yy"}'),
        ({"type": "integer", "minimum": 5}, '{"a": 1}', '{"a": 9}'),
        ({"enum": [1, "a"]}, '{"a": "1"}', '{"a": 1}'),
    ],
    ids=lambda value: next(iter(value.keys() - {"type"})) if isinstance(value, dict) else "",
)
def test_what_codex_drops_of_a_schema_holds_for_calls_all_the_same(
    gateway: Hosted, provider: Upstream, schema: dict[str, Any], wrong: str, right: str
) -> None:
    parameters = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    body = CHAT.body("strict", stream=False) | {
        "tools": [{"type": "function", "function": {"name": "t", "parameters": parameters}}]
    }
    provider.play(responded(*call("call_1", "t", wrong)), responded(*call("call_2", "t", right)))
    reply = gateway.post(CHAT.path, body)
    (offered,) = provider.requests[-1].json["tools"]
    assert offered["parameters"]["properties"]["a"] != schema, "Codex drops or changes it"
    (made,) = reply.json["choices"][0]["message"]["tool_calls"]
    assert (made["id"], made["function"]["arguments"]) == ("call_2", right)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_old_obsidian_copilot_finds_the_calls_in_the_text(
    gateway: Hosted, provider: Upstream, value: str, stream: bool
) -> None:
    """As over every other backend: tests/integration/test_output_modes.py."""
    value = value.replace("</content>", "</city>")
    made = [Call("get_weather", {"city": value}), Call("ping", {"all": [value]})]
    provider.play(
        responded(*(piece for each in made for piece in call(each.name, each.name, json.dumps(each.arguments))))
    )
    turn = heard(gateway, CHAT, stream=stream, name="m@obsidian-xml")
    assert (list(turn.calls), turn.finish) == (made, "tool_calls")
    assert old_clients.obsidian(turn.text) == [
        Found("get_weather", {"city": escaped(value) if "</" in value else value}),
        Found("ping", {"all": [value]}),
    ]


PROBE = item("done", "function_call_output", call_id="x", output="resources/list failed: unknown MCP server 'obsidian'")
NOISE = {
    "a probe of an MCP server": PROBE,
    "an MCP server's list": item("done", "mcp_list_tools", id="q", server_label="obsidian", tools=[], error="unknown"),
    "the provider's own search": item("done", "web_search_call", id="w", status="completed", action={"type": "search"}),
}


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_noise_reaches_nobody(gateway: Hosted, provider: Upstream, noise: bytes, stream: bool) -> None:
    """T-8: what an older proxy showed to its clients before the real calls."""
    provider.play(responded(noise, *text("Hello."), noise))
    assert heard(gateway, CHAT, stream=stream).said == ("Hello.", "", (), "stop")
    provider.play(responded(noise, *call("call_1", "ping", "{}"), noise))
    assert heard(gateway, CHAT, stream=stream).said == ("", "", (Call("ping", {}),), "tool_calls")
