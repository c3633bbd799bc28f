"""The embedded model itself: SmolLM2-135M in its own process, through the whole gateway.

Answers are short, so that each test takes seconds on one busy processor. Without the packages of the extra `local`
these are skipped, except in continuous integration.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from callwright.backends.embedded import EmbeddedBackend, find_model_file, is_embedded_available
from callwright.events import TextDelta
from callwright.model import Constraint, Message, Request, Text
from tests.integration.hosted import Hosted

pytestmark = [
    pytest.mark.skipif(
        not is_embedded_available() and not os.environ.get("CI"), reason="the extra `local` is not installed"
    ),
    pytest.mark.timeout(300),
]

MODEL = "SmolLM2-135M-Instruct.Q4_1"
CHAT = "/v1/chat/completions"
TABLES = '[[backends]]\nname = "own"\nkind = "embedded"\ncontext = 2048\nthreads = 1\n[[models]]\nname = "m"\n'
ENDLESS = {"type": "object", "properties": {"of": {"type": "array", "minItems": 400}}, "required": ["of"]}
YES_OR_NO = 'root ::= "yes" | "no"'
SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Oslo", "Paris"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    models = f'model = "{MODEL}"\naliases = ["refuse"]\n[[models]]\nname = "send"\nmodel = "{MODEL}"\n'
    models += 'tool_limits = {overflow = "send"}\n'
    with Hosted(tmp_path_factory.mktemp("gateway"), TABLES + models) as gateway:
        # As `callwright serve` does when it starts.
        assert gateway.wait(gateway.service.state.engine.refresh_models()) == {}
        yield gateway


@pytest.fixture
def own(gateway: Hosted) -> EmbeddedBackend:
    backend = gateway.service.state.engine.backends["own"]
    assert isinstance(backend, EmbeddedBackend)
    return backend


def body(words: str, tokens: int = 16, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": words}], "max_tokens": tokens, **more}


def chunks(data: bytes) -> list[dict[str, Any]]:
    frames = [line.removeprefix(b"data: ") for line in data.split(b"\n\n") if line.startswith(b"data: ")]
    assert frames[-1] == b"[DONE]"
    return [json.loads(frame) for frame in frames[:-1]]


PATIENCE = 30.0
"""A slot that is not free would be so after a minute, on a busy machine later still."""


def endless(gateway: Hosted) -> Any:
    """A stream of a turn that takes a minute or more, its first bytes read."""
    stream = gateway.send(CHAT, body("Tell me everything about the sea.", 1500, stream=True, ignore_eos=True))
    data = b""
    while b'"content":"' not in data.replace(b'"content":""', b""):
        data += stream.recv(65536)
    return stream


def test_it_streams_an_answer_and_says_its_usage(gateway: Hosted) -> None:
    options = {"stream_options": {"include_usage": True}, "ignore_eos": True}
    reply = gateway.post(CHAT, body("What is the sea?", stream=True, **options))
    assert reply.status == 200
    told = chunks(reply.body)
    pieces = [choice["delta"].get("content") for chunk in told for choice in chunk["choices"]]
    assert len([piece for piece in pieces if piece]) > 1, "word by word"
    assert told[-1]["usage"]["completion_tokens"] == 16
    assert [choice["finish_reason"] for chunk in told for choice in chunk["choices"]][-1] == "length"


def test_it_is_listed_with_its_window_and_without_tools(gateway: Hosted, own: EmbeddedBackend) -> None:
    (info,) = gateway.wait(own.list_models())
    assert (info.name, info.context, info.tools) == (MODEL, 2048, None)
    assert gateway.get("/readyz").status == 200


def test_leaving_a_stream_frees_the_slot(gateway: Hosted) -> None:
    gateway.post(CHAT, body("Hi", 1))
    stream = endless(gateway)
    stream.close()
    left = time.monotonic()
    assert gateway.post(CHAT, body("Hi", 1)).status == 200
    assert time.monotonic() - left < PATIENCE


def test_leaving_a_call_that_does_not_stream_frees_the_slot(gateway: Hosted) -> None:
    tool = {"type": "function", "function": {"name": "list", "parameters": ENDLESS}}
    long = body("Count to a thousand.", 1500, tools=[tool], tool_choice="required")
    connection = gateway.send(CHAT, long)
    while not gateway.streams:
        time.sleep(0.05)
    assert select.select([connection], [], [], 2.0)[0] == [], "it is being written"
    connection.close()
    left = time.monotonic()
    assert gateway.post(CHAT, body("Hi", 1)).status == 200
    assert time.monotonic() - left < PATIENCE


def test_turns_at_once_are_all_answered(gateway: Hosted) -> None:
    with ThreadPoolExecutor() as threads:
        asked = [threads.submit(gateway.post, CHAT, body(f"Say {word}.", 8)) for word in ("yes", "no", "maybe")]
        # A model may say less than it is allowed to.
        assert all(0 < each.result().json["usage"]["completion_tokens"] <= 8 for each in asked)


@pytest.mark.parametrize("overflow", ["refuse", "send"])
def test_a_prompt_beyond_the_window_is_refused_with_the_numbers(gateway: Hosted, overflow: str) -> None:
    """By us, and by llama.cpp where it is left to that."""
    reply = gateway.post(CHAT, body("sea " * 3000, 16) | {"model": overflow})
    assert reply.status == 400
    problem = reply.json["error"]
    assert problem["code"] == "context_length_exceeded"
    assert re.search(r"\b30\d\d\b.*\b2048\b", problem["message"]), problem["message"]


def test_while_a_long_turn_is_written_the_gateway_answers(gateway: Hosted) -> None:
    stream = endless(gateway)
    try:
        assert gateway.get("/health").status == 200
        assert gateway.streams == 1, "it is still being written"
    finally:
        stream.close()


def held(gateway: Hosted, own: EmbeddedBackend, constraint: Constraint) -> str:
    """An answer under a constraint, from the backend: which constraint to set is the engine's business."""
    # A schema leaves white space free, so a small model that is let loose fills it until its tokens are spent.
    options = {"max_tokens": 200, "temperature": 0 if constraint.schema else 1.0}
    asked = Request(MODEL, (Message("user", (Text("Is the sea blue?"),)),), options=options, constraint=constraint)

    async def story() -> str:
        heard = [event async for events in own.stream_response(asked, {}) for event in events]
        return "".join(event.text for event in heard if isinstance(event, TextDelta))

    return gateway.wait(story())


def test_an_answer_is_in_the_grammar_each_time(gateway: Hosted, own: EmbeddedBackend) -> None:
    said = [held(gateway, own, Constraint(grammar=YES_OR_NO)) for _ in range(10)]
    assert set(said) <= {"yes", "no"}, said


def test_an_answer_fits_the_schema(gateway: Hosted, own: EmbeddedBackend) -> None:
    said = json.loads(held(gateway, own, Constraint(schema=SCHEMA)))
    assert said.keys() == {"city", "days"}
    assert said["city"] in {"Oslo", "Paris"}
    assert said["days"] in range(1, 10)


def test_a_model_that_never_learnt_tools_makes_a_call_that_fits(gateway: Hosted) -> None:
    tool = {"type": "function", "function": {"name": "forecast", "parameters": SCHEMA}}
    words = "What will the weather be in Oslo in the next 3 days?"
    once = {"tool_choice": "required", "parallel_tool_calls": False, "temperature": 0}
    reply = gateway.post(CHAT, body(words, 200, tools=[tool], **once))
    (call,) = reply.json["choices"][0]["message"]["tool_calls"]
    said = json.loads(call["function"]["arguments"])
    assert call["function"]["name"] == "forecast"
    assert said["city"] in {"Oslo", "Paris"}
    assert said["days"] in range(1, 10)


def test_a_crash_is_told_and_the_next_turn_works(gateway: Hosted, own: EmbeddedBackend) -> None:
    told: list[bytes] = []

    def read(stream: Any) -> None:
        while data := stream.recv(65536):
            told.append(data)

    stream = endless(gateway)
    reading = threading.Thread(target=read, args=[stream])
    reading.start()
    first = own.child.pid
    os.kill(first, signal.SIGKILL)
    reading.join(20)
    stream.close()
    assert b"lost its process in the middle of an answer" in b"".join(told)
    assert gateway.post(CHAT, body("Hi", 1)).status == 200
    assert own.child.pid not in {0, first}


def test_the_child_ends_with_the_gateway(tmp_path: Path) -> None:
    with Hosted(tmp_path, TABLES + f'model = "{MODEL}"\n') as gateway:
        assert gateway.post(CHAT, body("Hi", 1)).status == 200
        backend = gateway.service.state.engine.backends["own"]
        assert isinstance(backend, EmbeddedBackend)
        pid = backend.child.pid
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_any_other_file_is_a_model_by_its_path(tmp_path: Path) -> None:
    packaged = find_model_file("")
    assert packaged is not None
    (tmp_path / "another.gguf").symlink_to(packaged)
    with Hosted(tmp_path, TABLES.replace("context", f'path = "{tmp_path / "another.gguf"}"\ncontext')) as gateway:
        gateway.wait(gateway.service.state.engine.refresh_models())
        backend = gateway.service.state.engine.backends["own"]
        assert [info.name for info in gateway.wait(backend.list_models())] == ["another"]
        assert gateway.post(CHAT, body("Hi", 1)).status == 200


def test_a_file_that_is_no_model_is_told(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_text("broken")
    table = TABLES.replace("context", f'path = "{tmp_path / "broken.gguf"}"\nretries = 0\ncontext')
    with Hosted(tmp_path, table) as gateway:
        reply = gateway.post(CHAT, body("Hi", 1))
    assert reply.status == 503
    assert "expected 'GGUF'" in reply.json["error"]["message"]


@pytest.mark.parametrize("root", ["", "/v1"])
def test_llama_cpp_takes_what_is_asked_of_a_server_of_harmony(
    gateway: Hosted, own: EmbeddedBackend, tmp_path: Path, root: str
) -> None:
    """The model knows no Harmony, but its server is one of those that gpt-oss runs on."""
    table = '[[backends]]\nname = "raw"\nkind = "harmony"\nretries = 0\n'
    where = f'url = "{gateway.wait(own.child.get_address())}{root}"\nkey = "{own.settings.key}"\n'
    with Hosted(
        tmp_path, f'{table}{where}[[models]]\nname = "m"\nmodel = "{MODEL}"\nrules = {{max_retries = 0}}\n'
    ) as raw:
        reply = raw.post(CHAT, body("Hi", 4))
        assert reply.status == 200, reply.body
        assert 0 < reply.json["usage"]["completion_tokens"] <= 4
        assert raw.get("/readyz").status == 200
