"""Lost reasoning: servers that refuse the results of calls without the reasoning before them, and clients that drop it.

The fifth cause of `test_root_causes.py`. Each server here answers 400, in the words of the real one, when its reasoning
does not come back exactly as it was; each client is one that drops it, on every wire, streamed and whole. Clients that
speak the server's own wire also carry it themselves: those go on after a restart of the gateway.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.hosted import Hosted, Reply, backend, model
from tests.integration.test_same_turn import heard
from tests.integration.turns import call, delta, said, spoken
from tests.integration.wires import MESSAGES, RESPONSES, WIRES, Call, Heard, Round, Wire
from tests.support.sampling import sample_rows
from tests.support.upstream import Script, Seen, Upstream, answer, refused, sse, whole

OSLO = Call("get_weather", {"city": "Oslo"})
THOUGHT = "They want\nthe weather."
ARGUMENTS = json.dumps(OSLO.arguments)

# ── the servers ──────────────────────────────────────────────────────────────────────────────────


def deepseek(body: dict[str, Any]) -> Script:
    """https://github.com/JohnnyZ93/oai-compatible-copilot/issues/215"""
    rounds = [message for message in body["messages"] if message["role"] == "assistant"]
    if any(message.get("reasoning_content") != THOUGHT for message in rounds):
        return refused(400, "The `reasoning_content` in the thinking mode must be passed back to the API.")
    if len(rounds) == 2:
        return spoken("Cold.")
    made = call(0, ARGUMENTS, id=f"call_{len(rounds)}", name=OSLO.name)
    return said(delta(reasoning_content=THOUGHT[:4]), delta(reasoning_content=THOUGHT[4:]), made, reason="tool_calls")


def gemini(body: dict[str, Any]) -> Script:
    """https://github.com/BerriAI/litellm/issues/16893"""
    rounds = [message for message in body["messages"] if message["role"] == "assistant"]
    for number, message in enumerate(rounds):
        if message["tool_calls"][0].get("extra_content") != _signature(number):
            return refused(400, "Function call is missing a thought_signature in functionCall parts.")
    if len(rounds) == 2:
        return spoken("Cold.")
    function = {"name": OSLO.name, "arguments": ARGUMENTS}
    made = {"index": 0, "id": f"call_{len(rounds)}", "type": "function", "function": function}
    return said(delta(tool_calls=[{**made, "extra_content": _signature(len(rounds))}]), reason="tool_calls")


def _signature(number: int) -> dict[str, Any]:
    return {"google": {"thought_signature": f"AY89{number}=="}}


def anthropic(body: dict[str, Any]) -> Script:
    """https://github.com/anomalyco/opencode/issues/3077"""
    rounds = [message["content"] for message in body["messages"] if message["role"] == "assistant"]
    for number, blocks in enumerate(rounds):
        if blocks[:2] != _thinking(number):
            return refused(400, f"Expected `thinking` or `redacted_thinking`, but found `{blocks[0]['type']}`.")
    number = len(rounds)
    use = {"type": "tool_use", "id": f"toolu_{number}", "name": OSLO.name, "input": {}}
    if number == 2:
        return answer(
            *_message([({"type": "text", "text": ""}, [{"type": "text_delta", "text": "Cold."}])], "end_turn")
        )
    signed, hidden = _thinking(number)
    deltas = [
        {"type": "thinking_delta", "thinking": THOUGHT[:4]},
        {"type": "thinking_delta", "thinking": THOUGHT[4:]},
        {"type": "signature_delta", "signature": signed["signature"]},
    ]
    blocks = [
        ({"type": "thinking", "thinking": "", "signature": ""}, deltas),
        (hidden, []),
        (use, [{"type": "input_json_delta", "partial_json": ARGUMENTS}]),
    ]
    return answer(*_message(blocks, "tool_use"))


def _thinking(number: int) -> list[dict[str, str]]:
    signed = {"type": "thinking", "thinking": THOUGHT, "signature": f"EqoB{number}=="}
    return [signed, {"type": "redacted_thinking", "data": f"Emw{number}=="}]


def _message(blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]], reason: str) -> Iterator[bytes]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    yield _event("message_start", message={"usage": usage})
    for index, (block, deltas) in enumerate(blocks):
        yield _event("content_block_start", index=index, content_block=block)
        for each in deltas:
            yield _event("content_block_delta", index=index, delta=each)
        yield _event("content_block_stop", index=index)
    yield _event("message_delta", delta={"stop_reason": reason}, usage=usage)
    yield _event("message_stop")


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\n".encode() + sse({"type": kind, **fields})


def responses(body: dict[str, Any]) -> Script:
    """https://github.com/BerriAI/litellm/pull/15782: what was encrypted for one id is refused with another."""
    before: dict[str, Any] = {}
    number = 0
    for item in body["input"]:
        if item.get("type") == "function_call":
            if before.get("encrypted_content") != f"gAAA{number}" or before.get("id") not in (None, f"rs_{number}"):
                return refused(400, "The encrypted content could not be verified.")
            number += 1
        before = item
    made = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": OSLO.name}
    thought = {"type": "reasoning", "id": f"rs_{number}", "summary": [{"type": "summary_text", "text": THOUGHT}]}
    if number < 2:
        output = [{**thought, "encrypted_content": f"gAAA{number}"}, {**made, "arguments": ARGUMENTS}]
    else:
        output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Cold."}]}]
    done = [_event("response.output_item.done", output_index=at, item=item) for at, item in enumerate(output)]
    last = _event("response.completed", response={"object": "response", "status": "completed", "output": output})
    return answer(*done, last)


@dataclass(frozen=True)
class Server:
    """One of them: how it answers, what kind of backend it is and the model that it has."""

    answers: Callable[[dict[str, Any]], Script]
    kind: str
    model: str
    thinks: str = THOUGHT

    def script(self, seen: Seen) -> Script:
        return self.answers(seen.json) if seen.body else whole(b'{"data": []}')


SERVERS = {
    "deepseek": Server(deepseek, "openai", "deepseek-v4-pro"),
    "gemini": Server(gemini, "openai", "gemini-3-pro", ""),
    "anthropic": Server(anthropic, "anthropic", "claude-sonnet-4-5"),
    "responses": Server(responses, "responses", "gpt-5"),
}

# ── the clients ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream([]) as upstream:
        yield upstream


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, upstream: Upstream) -> Iterator[Hosted]:
    with Hosted(tmp_path_factory.mktemp("gateway"), tables(upstream)) as gateway:
        yield gateway


def tables(upstream: Upstream) -> str:
    return "".join(
        backend(name, upstream.url, kind=server.kind) + model(name, name, model=server.model)
        for name, server in SERVERS.items()
    )


def asked(wire: Wire, name: str, *, stream: bool, rounds: list[Round]) -> dict[str, Any]:
    """The request of a client that drops reasoning. One of Ollama's sends ids, as its VS Code extension 0.0.8 does."""
    body = wire.body(name, stream=stream, rounds=rounds)
    if wire.name == "ollama":
        answers = [message for message in body["messages"] if message["role"] == "assistant"]
        for message, one in zip(answers, rounds, strict=True):
            message["tool_calls"][0]["id"] = one.id
    return body


def told(wire: Wire, reply: Reply, *, stream: bool) -> Heard:
    assert reply.status == 200, reply.body
    return wire.streamed(reply.body) if stream else wire.whole(reply.body)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
@pytest.mark.parametrize("name", SERVERS)
def test_lost_reasoning(gateway: Hosted, upstream: Upstream, name: str, wire: Wire, stream: bool) -> None:
    """https://github.com/JohnnyZ93/oai-compatible-copilot/issues/215 and, for each server, the issue that it names:
    the second turn is refused. Two rounds of calls and an answer, by clients that send nothing of what was thought."""
    server = SERVERS[name]
    upstream.play(server.script)
    rounds: list[Round] = []
    for _ in range(2):
        turn = told(wire, gateway.post(wire.path, asked(wire, name, stream=stream, rounds=rounds)), stream=stream)
        assert turn.said == ("", server.thinks, (OSLO,), "tool_calls")
        rounds.append(Round(turn.ids[0], OSLO, "3 °C"))
    last = told(wire, gateway.post(wire.path, asked(wire, name, stream=stream, rounds=rounds)), stream=stream)
    assert last.said == ("Cold.", "", (), "stop")


@pytest.mark.parametrize("name", SERVERS)
def test_without_the_memory_the_server_refuses(upstream: Upstream, tmp_path: Path, name: str) -> None:
    """The counter-proof: another gateway, which never saw the first turn, has nothing to put back."""
    upstream.play(SERVERS[name].script)
    wire = WIRES["chat"]
    with Hosted(tmp_path, tables(upstream)) as gateway:
        body = wire.body(name, stream=False, rounds=[Round("call_0", OSLO, "3 °C")])
        reply = gateway.post(wire.path, body)
    assert reply.status == 400
    assert reply.json["error"]["code"] == "backend_refused"


def test_another_key_gets_nothing_of_it(upstream: Upstream, tmp_path: Path) -> None:
    """The same words, the same model, the same id of the call: whose it was decides."""
    upstream.play(SERVERS["deepseek"].script)
    keys = '[[keys]]\nname = "one"\nkey = "sk-one-aaaaaaaa"\n[[keys]]\nname = "two"\nkey = "sk-two-bbbbbbbb"\n'
    wire = WIRES["chat"]
    with Hosted(tmp_path, tables(upstream) + keys) as gateway:
        first = gateway.post(wire.path, wire.body("deepseek", stream=False), authorization="Bearer sk-one-aaaaaaaa")
        body = wire.body("deepseek", stream=False, rounds=[Round(wire.whole(first.body).ids[0], OSLO, "3 °C")])
        other = gateway.post(wire.path, body, authorization="Bearer sk-two-bbbbbbbb")
        same = gateway.post(wire.path, body, authorization="Bearer sk-one-aaaaaaaa")
    assert (first.status, other.status, same.status) == (200, 400, 200)


def _messages_again(reply: Reply, *, stream: bool) -> list[dict[str, Any]]:
    """What Anthropic's SDK makes of an answer, and sends back."""
    if not stream:
        content: list[dict[str, Any]] = reply.json["content"]
        return [{"role": "assistant", "content": content}]
    blocks: list[dict[str, Any]] = []
    grows = {"thinking_delta": "thinking", "signature_delta": "signature", "input_json_delta": "partial_json"}
    for line in reply.body.split(b"\n"):
        event = json.loads(line[6:]) if line.startswith(b"data:") else {}
        if event.get("type") == "content_block_start":
            blocks.append(event["content_block"])
        elif event.get("type") == "content_block_delta":
            field = grows[event["delta"]["type"]]
            blocks[-1][field] = blocks[-1].get(field, "") + event["delta"][field]
    for block in blocks:
        if "partial_json" in block:
            block["input"] = json.loads(block.pop("partial_json"))
    return [{"role": "assistant", "content": blocks}]


def _responses_again(reply: Reply, *, stream: bool) -> list[dict[str, Any]]:
    """The items of a response, as clients send them back."""
    if not stream:
        return list(reply.json["output"])
    frames = [json.loads(line[6:]) for line in reply.body.split(b"\n") if line.startswith(b"data:")]
    return list(frames[-1]["response"]["output"])


CARRIERS = {
    "anthropic": (MESSAGES, "messages", _messages_again),
    "responses": (RESPONSES, "input", _responses_again),
}


@pytest.mark.parametrize(("name", "stream"), sample_rows(list(CARRIERS), [True, False]))
def test_a_client_of_the_servers_own_wire_carries_the_reasoning_past_a_restart(
    upstream: Upstream, tmp_path: Path, name: str, stream: bool
) -> None:
    """Signatures and encrypted reasoning reach the client and come back as they were: nobody needs to remember them."""
    upstream.play(SERVERS[name].script)
    wire, key, again = CARRIERS[name]
    body = wire.body(name, stream=stream)
    for number in range(2):
        with Hosted(_folder(tmp_path, number), tables(upstream)) as gateway:
            reply = gateway.post(wire.path, body)
        turn = told(wire, reply, stream=stream)
        assert turn.said == ("", THOUGHT, (OSLO,), "tool_calls")
        *_, result = wire.body(name, stream=stream, rounds=[Round(turn.ids[0], OSLO, "3 °C")])[key]
        body[key] = [*body[key], *again(reply, stream=stream), result]
    with Hosted(_folder(tmp_path, 2), tables(upstream)) as gateway:
        last = told(wire, gateway.post(wire.path, body), stream=stream)
    assert last.said == ("Cold.", "", (), "stop")


def _folder(parent: Path, number: int) -> Path:
    folder = parent / str(number)
    folder.mkdir()
    return folder


def test_a_response_that_is_only_named_keeps_its_encrypted_reasoning(gateway: Hosted, upstream: Upstream) -> None:
    """`previous_response_id` stands for all that was said, and thought."""
    upstream.play(SERVERS["responses"].script)
    first = gateway.post(RESPONSES.path, RESPONSES.body("responses", stream=False)).json
    output = {"type": "function_call_output", "call_id": "call_0", "output": "3 °C"}
    body = RESPONSES.body("responses", stream=False) | {"input": [output], "previous_response_id": first["id"]}
    assert told(RESPONSES, gateway.post(RESPONSES.path, body), stream=False).calls == (OSLO,)


def test_a_server_that_demands_nothing_is_sent_nothing_that_the_client_dropped(
    upstream: Upstream, tmp_path: Path
) -> None:
    """Groq and others refuse a field that they do not know: words go back to who is known to want them, or if set."""
    thinks = said(delta(reasoning_content=THOUGHT), call(0, ARGUMENTS, id="call_0", name=OSLO.name))
    wire = WIRES["chat"]
    names = {"plain": {}, "set": {"history": {"reasoning": "restore"}}}
    settings = backend("main", upstream.url) + "".join(model(name, "main", **more) for name, more in names.items())
    sent = {}
    with Hosted(tmp_path, settings) as gateway:
        for name in names:
            upstream.play(thinks)
            turn = heard(gateway, wire, name, stream=True)
            upstream.play(spoken("Cold."))
            heard(gateway, wire, name, stream=True, rounds=[Round(turn.ids[0], OSLO, "3 °C")])
            sent[name] = upstream.requests[-1].json["messages"][1].get("reasoning_content")
    assert sent == {"plain": None, "set": THOUGHT}
