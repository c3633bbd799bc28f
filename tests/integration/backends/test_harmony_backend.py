"""gpt-oss behind raw completions: what is asked of each kind of server, and what is read from it (BK-4)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from callwright.backends import open_backend
from callwright.backends.harmony_backend import (
    SPECIAL_TOKENS,
    HarmonyCompletionsCodec,
    HarmonyGenerateCodec,
    restore_markers,
)
from callwright.backends.settings import BackendSettings
from callwright.events import Event, Finish, TextDelta, UsageSeen, merge_deltas
from callwright.model import Request, ToolSpec, Usage
from callwright.prompt.harmony_prompt import MARKERS, render_harmony
from tests.support.tiny_wire import TinyWire, ask
from tests.support.upstream import Upstream, answer, refused, sse

WIRE = HarmonyCompletionsCodec(TinyWire())


def sent(wire: HarmonyCompletionsCodec, request: Request) -> Any:
    return msgspec.json.decode(wire.encode_request(request, {}))


def read(wire: HarmonyCompletionsCodec, *chunks: object) -> list[Event]:
    reader = wire.create_reader()
    frames = [b"data:" + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks]
    return merge_deltas([event for frame in frames for event in reader.feed(frame)] + reader.close())


def test_a_completion_is_asked_for_with_its_special_tokens() -> None:
    request = ask("Hi", temperature=0.5, stop="END", reasoning_effort="low", response_format={"type": "text"})
    body = sent(WIRE, request)
    assert (body["prompt"], body["model"], body["temperature"]) == (render_harmony(request), "m", 0.5)
    assert body["stop"] == ["<|call|>", "<|return|>", "END"]
    assert body["skip_special_tokens"] is False
    assert body["preserved_tokens"] == list(MARKERS)
    assert not body.keys() & {"reasoning_effort", "response_format", "tools", "messages"}


def test_a_server_that_refuses_fields_is_asked_without_them() -> None:
    known = {"model", "prompt", "stop", "stream", "stream_options", "max_tokens"}
    assert sent(HarmonyCompletionsCodec(TinyWire(), keep_tokens=False), ask("Hi")).keys() == known


def test_tools_are_part_of_the_prompt() -> None:
    request = msgspec.structs.replace(ask("Hi"), tools=(ToolSpec("ping"),))
    assert "type ping = () => any;" in sent(WIRE, request)["prompt"]


@pytest.mark.parametrize(("given", "told"), [(0, None), (0.7, 0.7), (None, None)])
def test_text_generation_inference_samples_only_above_zero(given: float | None, told: float | None) -> None:
    body = sent(HarmonyGenerateCodec(TinyWire()), ask("Hi", temperature=given, top_p=0.9, seed=7))
    assert body["inputs"] == render_harmony(ask("Hi"))
    assert body["parameters"].get("temperature") == told
    assert body["parameters"]["do_sample"] == (told is not None)
    assert (body["parameters"]["top_p"], body["parameters"]["seed"]) == (0.9, 7)


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────


def test_every_marker_has_a_number() -> None:
    assert sorted(SPECIAL_TOKENS.values()) == sorted(MARKERS)


@pytest.mark.parametrize(
    ("text", "tokens", "expected"),
    [
        ("", [200005], "<|channel|>"),
        ("final", [17196], "final"),
        ("", [200007, 200006], "<|end|><|start|>"),
        ("assistant", [200007, 200006, 173781], "<|end|><|start|>assistant"),
        ("Hm.", [1, 2, 200007], "Hm.<|end|>"),
        ("finalHi", [17196, 200008, 1], "finalHi"),
        ("<|channel|>final", [200005, 17196], "<|channel|>final"),
        ("", [199999], ""),
    ],
    ids=["alone", "a word", "two", "before", "after", "between", "kept", "another token"],
)
def test_markers_that_a_server_took_out_are_put_back(text: str, tokens: list[int], expected: str) -> None:
    assert restore_markers(text, tokens) == expected


LLAMA = [
    {"content": "", "tokens": [200005], "stop": False},
    {"content": "final", "tokens": [17196], "stop": False},
    {"content": "", "tokens": [200008], "stop": False},
    {"content": "Hi", "tokens": [12194], "stop": False},
    {"content": "", "tokens": [], "stop": True, "stop_type": "eos", "tokens_evaluated": 7, "tokens_predicted": 4},
]
VLLM = [
    {"choices": [{"index": 0, "text": "final", "token_ids": [200005, 17196]}]},
    {"choices": [{"index": 0, "text": "Hi", "token_ids": [200008, 12194], "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 4}},
]
TGI = [
    {"index": 1, "token": {"id": 200005, "text": "<|channel|>", "special": True}, "details": None},
    {"index": 2, "token": {"id": 17196, "text": "final", "special": False}, "details": None},
    {"index": 3, "token": {"id": 200008, "text": "<|message|>", "special": True}, "details": None},
    {
        "index": 4,
        "token": {"id": 12194, "text": "Hi", "special": False},
        "generated_text": "finalHi",
        "details": {"finish_reason": "eos_token", "generated_tokens": 4, "input_length": 7},
    },
]


@pytest.mark.parametrize("chunks", [LLAMA, VLLM, TGI], ids=["llama.cpp", "vLLM", "TGI"])
def test_the_same_answer_of_every_server_is_the_same_text(chunks: list[object]) -> None:
    said = TextDelta("<|channel|>final<|message|>Hi")
    assert read(WIRE, *chunks) == [said, UsageSeen(Usage(7, 4)), Finish("stop")]


@pytest.mark.parametrize("reason", ["length", "eos_token"])
def test_the_end_of_the_tokens_is_told(reason: str) -> None:
    details = {"finish_reason": reason, "generated_tokens": 1, "input_length": 1}
    events = read(WIRE, {"token": {"id": 1, "text": "Hi"}, "details": details})
    assert events[-1] == Finish("length" if reason == "length" else "stop")


# ── the backend ──────────────────────────────────────────────────────────────────────────────────


def heard(settings: BackendSettings, request: Request) -> list[Event]:
    async def story() -> list[Event]:
        one = open_backend(settings)
        try:
            return [event async for events in one.stream_response(request, {}) for event in events]
        finally:
            await one.close()

    return asyncio.run(story())


def test_what_the_prompt_began_is_said_before_what_follows(upstream: Upstream) -> None:
    upstream.play(answer(sse({"choices": [{"text": "{}", "finish_reason": "stop"}]})))
    request = msgspec.structs.replace(ask("Hi"), tools=(ToolSpec("ping"),), tool_choice="ping")
    events = heard(BackendSettings(name="raw", kind="harmony", url=upstream.url), request)
    begun = "<|channel|>commentary to=functions.ping <|constrain|>json<|message|>"
    assert merge_deltas(events) == [TextDelta(begun + "{}"), Finish("stop")]


@pytest.mark.parametrize(
    ("api", "url", "paths"),
    [
        ("completions", "/v1", ["/v1/completions", "/v1/models"]),
        ("completions", "", ["/completions", "/models"]),
        ("generate_stream", "", ["/generate_stream", "/v1/models"]),
    ],
)
def test_every_server_is_asked_where_it_listens(upstream: Upstream, api: Any, url: str, paths: list[str]) -> None:
    upstream.play(refused(404, "no"))
    one = open_backend(BackendSettings(name="raw", kind="harmony", api=api, url=upstream.url + url, retries=0))

    async def story() -> None:
        for asking in (anext(one.stream_response(ask("Hi"), {})), one.list_models()):
            with pytest.raises(Exception, match="no"):
                await asking
        await one.close()

    asyncio.run(story())
    assert [request.path for request in upstream.requests] == paths


def test_no_vocabulary_is_loaded_to_serve_it() -> None:
    program = (
        "import sys; from callwright.backends import open_backend; from callwright.backends.settings import *;"
        "open_backend(BackendSettings(name='raw', kind='harmony', url='http://127.0.0.1:1/v1'));"
        "print(sorted({'openai_harmony', 'tiktoken', 'splintr'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
