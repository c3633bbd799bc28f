"""Every way in which calls are written for clients of S1 and S4, streamed and whole, over a chat server and over raw
Harmony: what each old client's own rules make of our answer are the calls that the model made (C-3, C-4, C-5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from callwright.dialects import REGISTRY
from callwright.model import ToolCall
from tests.integration.hosted import Hosted, backend, model
from tests.integration.test_harmony import piece, raw
from tests.integration.turns import call, said, text
from tests.integration.wires import CHAT, Call, Heard
from tests.support import old_clients
from tests.support.old_clients import Found
from tests.support.upstream import Upstream

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "content": {"type": "string"},
        "name": {"type": "string"},
        "args": {"type": "array", "items": {"type": "string"}},
    },
}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("write_to_file", "read_file")
]
VALUES = {
    "an ampersand": "a & b &amp; c",
    "quotes": "\"double\" 'single' `back` \\",
    "newlines": "one\n\ntwo\n\tthree",
    "signs": "if a < b && b > c: ☃",
    "the block's own end": "text </use_tool> more",
    "the parameter's own end": "text </content> more",
    "html": "<b>bold</b> & <i>more</i>",
}
STREAM = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
EACH_VALUE = pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
BACKENDS = pytest.mark.parametrize("name", ["chat", "raw"])


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with Upstream([]) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, server: Upstream) -> Iterator[Hosted]:
    tables = backend("chat", server.url) + backend("raw", server.url, kind="harmony")
    with Hosted(tmp_path_factory.mktemp("gateway"), tables + model("chat", "chat") + model("raw", "raw")) as gateway:
        yield gateway


def answered(gateway: Hosted, server: Upstream, name: str, mode: str, calls: list[Call], *, stream: bool) -> Heard:
    if name == "raw":
        made = (ToolCall("", each.name, json.dumps(each.arguments)) for each in calls)
        written = REGISTRY["harmony"].render_call(*made)
        server.play(raw(*(piece(written[at : at + 5]) for at in range(0, len(written), 5))))
    else:
        pieces = [call(at, json.dumps(each.arguments), id=f"c{at}", name=each.name) for at, each in enumerate(calls)]
        server.play(said(*text("Let me see."), *pieces))
    body: dict[str, Any] = CHAT.body(name, stream=stream) | {"tools": TOOLS}
    header = "x_callwright_profile" if mode == "kilocode-xml" else "x_proxy_output_mode"
    reply = gateway.post(CHAT.path, body, **{header: mode})
    assert reply.status == 200, reply.body
    return (CHAT.streamed if stream else CHAT.whole)(reply.body)


def escaped(value: str) -> str:
    return value.replace("<", "&lt;")


@BACKENDS
@STREAM
@EACH_VALUE
def test_openai_json_is_the_call_and_no_text(
    gateway: Hosted, server: Upstream, value: str, stream: bool, name: str
) -> None:
    calls = [Call("write_to_file", {"path": "a", "content": value}), Call("read_file", {"args": [value]})]
    heard = answered(gateway, server, name, "openai-json", calls, stream=stream)
    assert (list(heard.calls), heard.finish) == (calls, "tool_calls")
    assert heard.text == ("" if name == "raw" else "Let me see.")


@BACKENDS
@STREAM
@EACH_VALUE
def test_old_obsidian_copilot_finds_the_calls_in_the_text(
    gateway: Hosted, server: Upstream, value: str, stream: bool, name: str
) -> None:
    calls = [
        Call("write_to_file", {"path": "a", "content": value}),
        Call("read_file", {"name": "n", "args": [value, "b"]}),
    ]
    heard = answered(gateway, server, name, "obsidian-xml", calls, stream=stream)
    assert (list(heard.calls), heard.finish) == (calls, "tool_calls"), "beside the text"
    # Its parser knows no escapes: a string of tags cannot be given back, but its call is whole.
    shown = escaped(value) if "</" in value else value
    assert old_clients.obsidian(heard.text) == [
        Found("write_to_file", {"path": "a", "content": shown}),
        Found("read_file", {"name": "n", "args": [value, "b"]}),
    ]


@BACKENDS
@STREAM
@EACH_VALUE
def test_old_kilo_code_finds_the_call_in_the_text(
    gateway: Hosted, server: Upstream, value: str, stream: bool, name: str
) -> None:
    made = Call("write_to_file", {"path": value, "content": f"{value}\n"})
    heard = answered(gateway, server, name, "kilocode-xml", [made, Call("read_file", {"path": "b"})], stream=stream)
    assert (heard.calls, heard.finish) == ((made,), "tool_calls"), "one call in a message"
    (found,) = old_clients.kilo(heard.text, ("write_to_file", "read_file"), ("path", "content", "args"))
    assert found == Found("write_to_file", {"path": value, "content": f"{value}\n"})
