"""Clients from before native calls, over the whole gateway: their own rules, applied to what they get, give the calls.

Values hold what XML is made of. None of these clients unescapes anything, so a value that their rules would take for
the end of a call arrives with `&lt;` for `<`; every other one arrives as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.hosted import Hosted, backend, model
from tests.integration.turns import call, said
from tests.integration.wires import CHAT, Heard
from tests.legacy_clients import kilo_reads, obsidian_reads
from tests.upstream import Upstream

WORDS = "a & b &amp; \"c\" 'd' < e > f\n\n  g\\n"
CLOSING = "one </use_tool> two </path> three"
ARGUMENTS: dict[str, Any] = {
    "path": "src/a.py",
    "content": WORDS,
    "regex": CLOSING,
    "tags": ["<b>x</b>", "</use_tool>"],
}
TOOL = {
    "type": "function",
    "function": {
        "name": "write_to_file",
        "parameters": {
            "type": "object",
            "properties": {
                **{name: {"type": "string"} for name in ("path", "content", "regex")},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
        },
    },
}
STREAM = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


@pytest.fixture
def gateway(tmp_path: Path, upstream: Upstream) -> Iterator[Hosted]:
    calls = [call(at, json.dumps(ARGUMENTS), id=f"call_{at}", name="write_to_file") for at in range(2)]
    upstream.play(said(*calls, reason="tool_calls"))
    with Hosted(tmp_path, backend("main", upstream.url) + model("m", "main")) as gateway:
        yield gateway


def asked(gateway: Hosted, stream: bool, **headers: str) -> Heard:
    reply = gateway.post(CHAT.path, CHAT.body("m", stream=stream) | {"tools": [TOOL]}, **headers)
    assert reply.status == 200
    return CHAT.streamed(reply.body) if stream else CHAT.whole(reply.body)


@STREAM
def test_obsidian_copilot_before_3_2_reads_both_calls(gateway: Hosted, stream: bool) -> None:
    answered = asked(gateway, stream, x_proxy_output_mode="obsidian-xml")
    read = {**ARGUMENTS, "regex": CLOSING.replace("<", "&lt;")}
    assert obsidian_reads(answered.text) == [("write_to_file", read)] * 2
    assert [made.arguments for made in answered.calls] == [ARGUMENTS] * 2


@STREAM
def test_kilo_code_before_its_rewrite_reads_the_one_call_that_it_gets(gateway: Hosted, stream: bool) -> None:
    answered = asked(gateway, stream, x_callwright_profile="kilocode-xml")
    read = kilo_reads(answered.text, {"write_to_file": tuple(ARGUMENTS)})
    assert read is not None
    name, values = read
    assert (name, json.loads(values.pop("tags"))) == ("write_to_file", ARGUMENTS["tags"])
    assert values == {key: ARGUMENTS[key] for key in ("path", "content", "regex")}
    assert [made.arguments for made in answered.calls] == [ARGUMENTS]


@STREAM
def test_everybody_else_gets_calls_and_no_words(gateway: Hosted, stream: bool) -> None:
    answered = asked(gateway, stream, x_proxy_output_mode="openai-json")
    assert answered.text == ""
    assert [made.arguments for made in answered.calls] == [ARGUMENTS] * 2
