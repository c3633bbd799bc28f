"""What users suffer from most, each cause as a server or a client that has it, and a turn that works all the same.

The causes and their order are those of the public issues that each test names. Servers misbehave as the issues show;
clients are those of all four wires, each asking for a stream and for a whole answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.hosted import Hosted, backend, model
from tests.integration.test_same_turn import heard
from tests.integration.turns import call, delta, finish, said, spoken, text
from tests.integration.wires import WIRES, Call, Heard, Round, Wire
from tests.support.upstream import DONE, Script, Seen, Upstream, answer, refused, whole

PARIS = Call("get_weather", {"city": "Paris", "days": 3})
OSLO = Call("get_weather", {"city": "Oslo"})
PING = Call("ping", {})


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with Upstream([]) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, server: Upstream) -> Iterator[Hosted]:
    names = ("m", "qwen3-coder:30b", "gpt-oss:20b")
    tables = [backend("main", server.url), *(model(name, "main") for name in names)]
    with Hosted(tmp_path_factory.mktemp("gateway"), "".join(tables)) as gateway:
        yield gateway


def both(gateway: Hosted, server: Upstream, wire: Wire, script: Script, name: str = "m", **more: Any) -> Heard:
    """What a client hears of a server's answer: the same, streamed and whole."""
    turns = []
    for stream in (True, False):
        server.play(script)
        turns.append(heard(gateway, wire, name, stream=stream, **more))
    streamed, at_once = turns
    assert streamed.said == at_once.said
    return streamed


every_wire = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)

# ── 1. the call is there, but as text ────────────────────────────────────────────────────────────

QWEN = (
    "Let me look.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n"
    "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"
)
AS_TEXT = {
    "ollama/ollama#13519, fenced JSON with parameters": (
        '```json\n{"name": "get_weather", "parameters": {"city": "Oslo"}}\n```',
        (OSLO,),
    ),
    "anomalyco/opencode#46625, bare JSON": ('{"name": "get_weather", "arguments": {"city": "Oslo"}}', (OSLO,)),
    "vllm-project/vllm#22975, Qwen's tags after prose": (
        QWEN,
        (PARIS,),
    ),
    "NousResearch/hermes-agent#87900, several objects and no arguments": (
        '{"name": "ping"}\n{"name": "get_weather", "arguments": {"city": "Oslo"}}',
        (PING, OSLO),
    ),
    "anthropics/claude-code#77061, a stray word and invoke tags": (
        'count\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n</invoke>',
        (OSLO,),
    ),
}


@every_wire
@pytest.mark.parametrize(("words", "calls"), AS_TEXT.values(), ids=AS_TEXT)
def test_calls_as_text(gateway: Hosted, server: Upstream, wire: Wire, words: str, calls: tuple[Call, ...]) -> None:
    """https://github.com/ollama/ollama/issues/13519 and four more: `content` holds the call, `tool_calls` is empty and
    the turn ends on `stop`. The client gets calls that it can run, and no markup."""
    turn = both(gateway, server, wire, spoken(words))
    assert (turn.calls, turn.finish) == (calls, "tool_calls")
    assert turn.text.strip() in ("", "Let me look.", "count")


# ── 2. the stream differs from the whole ─────────────────────────────────────────────────────────

MESSAGE = {"role": "assistant", "content": QWEN}
SENT = {
    "one character at a time": said(*text(QWEN, 1)),
    "three characters at a time": said(*text(QWEN, 3)),
    "all at once": said(*text(QWEN, 1000)),
    "not as a stream at all": whole(json.dumps({"choices": [{"message": MESSAGE, "finish_reason": "stop"}]}).encode()),
}


@every_wire
@pytest.mark.parametrize("script", SENT.values(), ids=SENT)
def test_the_stream_differs_from_the_whole(gateway: Hosted, server: Upstream, wire: Wire, script: Script) -> None:
    """https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1071: with `stream: true` the same answer of
    Qwen3-Coder is raw XML. Here it is the same turn, whatever the client asked for and however the server cut it."""
    turn = both(gateway, server, wire, script, "qwen3-coder:30b")
    assert (turn.text.strip(), turn.calls, turn.finish) == ("Let me look.", (PARIS,), "tool_calls")


@every_wire
def test_the_stream_forgets_a_call_without_arguments(gateway: Hosted, server: Upstream, wire: Wire) -> None:
    """https://github.com/vllm-project/vllm/issues/19056: `{}` never comes for a tool without parameters."""
    turn = both(gateway, server, wire, said(call(0, "", id="call_a", name="ping"), reason="tool_calls"))
    assert turn.calls == (PING,)


# ── 3. wrong indices ─────────────────────────────────────────────────────────────────────────────


def _whole_call(one: Call, call_id: str, **place: int) -> dict[str, Any]:
    function = {"name": one.name, "arguments": json.dumps(one.arguments)}
    return {**place, "id": call_id, "type": "function", "function": function}


INDICES = {
    "ollama/ollama#15457, every call has index 0": said(
        delta(tool_calls=[_whole_call(PARIS, "call_a", index=0)]),
        delta(tool_calls=[_whole_call(OSLO, "call_b", index=0)]),
    ),
    "no index at all": said(delta(tool_calls=[_whole_call(PARIS, "call_a"), _whole_call(OSLO, "call_b")])),
    "QwenLM/Qwen-Agent#943, interleaved, with the id on the first piece only": said(
        call(0, "", id="call_a", name="get_weather"),
        call(1, "", id="call_b", name="get_weather"),
        call(0, '{"city": "Paris", '),
        call(1, '{"city": '),
        call(0, '"days": 3}'),
        call(1, '"Oslo"}'),
    ),
    "indices that begin with 1": said(
        delta(tool_calls=[_whole_call(PARIS, "call_a", index=1)]),
        delta(tool_calls=[_whole_call(OSLO, "call_b", index=2)]),
    ),
}


@every_wire
@pytest.mark.parametrize("script", INDICES.values(), ids=INDICES)
def test_wrong_indices(gateway: Hosted, server: Upstream, wire: Wire, script: Script) -> None:
    """https://github.com/BerriAI/litellm/issues/33678: clients put calls together by index, get
    `{"city": "Paris"}{"city": "Oslo"}`, and crash one turn later. `wires.py` reads as they do."""
    turn = both(gateway, server, wire, script)
    assert (turn.calls, turn.finish) == ((PARIS, OSLO), "tool_calls")
    assert len(set(turn.ids)) == 2


# ── 4. Harmony leaks ─────────────────────────────────────────────────────────────────────────────

HARMONY = {
    "cline/cline#5393, all markers": (
        "<|channel|>analysis<|message|>They want Oslo.<|end|><|start|>assistant<|channel|>commentary "
        'to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>'
    ),
    "the server ate the last marker": (
        "<|channel|>analysis<|message|>They want Oslo.<|end|><|start|>assistant<|channel|>commentary "
        'to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}'
    ),
    "Kilo-Org/kilocode#1775, the recipient before the channel": (
        "<|channel|>analysis<|message|>They want Oslo.<|end|><|start|>assistant to=functions.get_weather"
        '<|channel|>commentary json<|message|>{"city": "Oslo"}<|call|>'
    ),
}


@every_wire
@pytest.mark.parametrize("words", HARMONY.values(), ids=HARMONY)
def test_harmony_leaks(gateway: Hosted, server: Upstream, wire: Wire, words: str) -> None:
    """https://github.com/cline/cline/issues/5393: `<|channel|>commentary to=…` in place of a call, "works 5 % of the
    time". Thinking is reasoning, the call is a call, and no marker is ever shown."""
    assert both(gateway, server, wire, spoken(words), "gpt-oss:20b").said == (
        "",
        "They want Oslo.",
        (OSLO,),
        "tool_calls",
    )


@every_wire
def test_harmony_leaks_into_an_answer(gateway: Hosted, server: Upstream, wire: Wire) -> None:
    """https://github.com/johnbean393/Sidekick/issues/75: the channels of a plain answer stand in the chat."""
    words = "<|channel|>analysis<|message|>A greeting.<|end|><|start|>assistant<|channel|>final<|message|>Hello!"
    turn = both(gateway, server, wire, spoken(words), "gpt-oss:20b")
    assert turn.said == ("Hello!", "A greeting.", (), "stop")


# ── 5. lost reasoning: see test_lost_reasoning.py ────────────────────────────────────────────────
# ── 6. backend 500s with the call inside ─────────────────────────────────────────────────────────

TOOL_CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
QUOTED = {
    "ggml-org/llama.cpp#20260, text before the call": refused(
        500, f"Failed to parse input at pos 13: Let me look.\n{TOOL_CALL}"
    ),
    "ggml-org/llama.cpp#24644, in a stream that had begun": answer(
        *text("Let me look.\n"),
        b'data: {"error": {"code": 500, "message": '
        + json.dumps(f"Failed to parse input at pos 13: {TOOL_CALL}").encode()
        + b', "type": "server_error"}}\n\n',
    ),
    "tashfeenahmed/freellmapi#291, Groq's failed_generation": whole(
        json.dumps(
            {
                "error": {
                    "message": "Failed to call a function. Please adjust your prompt.",
                    "code": "tool_use_failed",
                    "failed_generation": '<function=get_weather{"city": "Oslo"}</function>',
                }
            }
        ).encode(),
        status=400,
    ),
    "ollama/ollama#12884, the call in `raw`": refused(
        500, f"error parsing tool call: raw='{json.dumps(OSLO._asdict())}', err=invalid character ']'"
    ),
}


@every_wire
@pytest.mark.parametrize("script", QUOTED.values(), ids=QUOTED)
def test_backend_500s_with_the_call_inside(gateway: Hosted, server: Upstream, wire: Wire, script: Script) -> None:
    """https://github.com/ggml-org/llama.cpp/issues/20260: the server cannot read its own model, answers 500 and the
    agent dies, though the error quotes the call. It is read from there, and the model is not asked again."""
    before = len(server.requests)
    turn = both(gateway, server, wire, script)
    assert (turn.calls, turn.finish) == ((OSLO,), "tool_calls")
    assert turn.text.strip() in ("", "Let me look.")
    assert len(server.requests) == before + 2


@every_wire
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_backend_500_that_quotes_half_a_call_is_asked_again(
    gateway: Hosted, server: Upstream, wire: Wire, stream: bool
) -> None:
    """https://github.com/ollama/ollama/issues/17638: `raw` holds arguments alone. Nobody guesses whose; the model gets
    another try, told what was wrong, where a blind repeat would fail the same way (oh-my-pi #3909)."""
    server.play(
        refused(500, 'error parsing tool call: raw=\'{"city":"Oslo"}]\', err=invalid character'),
        said(call(0, '{"city": "Oslo"}', id="call_a", name="get_weather"), reason="tool_calls"),
    )
    turn = heard(gateway, wire, "m", stream=stream)
    assert (turn.calls, turn.finish) == ((OSLO,), "tool_calls")
    first, second = (seen.json["messages"] for seen in server.requests[-2:])
    assert len(second) > len(first), "the second time it is told what was wrong"


# ── 7. almost-right arguments ────────────────────────────────────────────────────────────────────

ALMOST = {
    "AtomicBot-ai/atomic-agent#182, a number as a string": ('{"city": "Paris", "days": "3"}', PARIS),
    "AtomicBot-ai/atomic-agent#182, a number with a point": ('{"city": "Paris", "days": 3.0}', PARIS),
    "sgl-project/sglang#7863, the object as a string": (json.dumps('{"city": "Paris", "days": 3}'), PARIS),
    "LibreChat-AI/agents#250, another spelling of the name": ('{"City": "Paris", "days": 3}', PARIS),
    "a comma too many": ('{"city": "Paris", "days": 3,}', PARIS),
    "single quotes": ("{'city': 'Paris', 'days': 3}", PARIS),
    "nothing at all": ("", PING),
}


@every_wire
@pytest.mark.parametrize(("arguments", "meant"), ALMOST.values(), ids=ALMOST)
def test_almost_right_arguments(gateway: Hosted, server: Upstream, wire: Wire, arguments: str, meant: Call) -> None:
    """https://github.com/AtomicBot-ai/atomic-agent/issues/182: 45 calls of one run failed because numbers, lists or
    objects came as strings. The tool's schema says what they are."""
    script = said(call(0, arguments, id="call_a", name=meant.name), reason="tool_calls")
    assert both(gateway, server, wire, script).calls == (meant,)


@every_wire
@pytest.mark.parametrize("name", ["Get_Weather", "functions.get_weather", "get-weather"])
def test_almost_right_names(gateway: Hosted, server: Upstream, wire: Wire, name: str) -> None:
    """https://github.com/LibreChat-AI/agents/pull/250: the same for names."""
    script = said(call(0, '{"city": "Oslo"}', id="call_a", name=name), reason="tool_calls")
    assert both(gateway, server, wire, script).calls == (OSLO,)


# ── 8. poisoned history ──────────────────────────────────────────────────────────────────────────

CUT = [call(0, "", id="call_a", name="get_weather"), call(0, '{"city": "Os')]


def _strict(seen: Seen) -> Script:
    """A server that refuses what OpenAI, Anthropic and strict templates refuse."""
    open_calls: list[str] = []
    for message in seen.json["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                return refused(400, "messages with role 'tool' must be a response to a preceding message")
            open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            return refused(400, f"tool_call_ids did not have response messages: {open_calls}")
        if message["role"] == "assistant" and not message.get("tool_calls") and not message["content"]:
            return refused(400, "an assistant message must have content or tool calls")
        for made in message.get("tool_calls", ()):
            if not isinstance(json.loads(made["function"]["arguments"]), dict):
                return refused(400, "arguments must be a JSON object")
            open_calls.append(made["id"])
    return spoken("Cold.") if not open_calls else refused(400, "tool calls without results")


def _without_results(wire: Wire, body: dict[str, Any]) -> dict[str, Any]:
    """The client was stopped before it had a result, and the user goes on."""
    key = "input" if wire.name == "responses" else "messages"
    kept = [
        each
        for each in body[key]
        if each.get("role") != "tool" and "output" not in each and "tool_result" not in json.dumps(each)
    ]
    return {**body, key: [*kept, {"role": "user", "content": "Never mind. And now?"}]}


@every_wire
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_poisoned_history(gateway: Hosted, server: Upstream, wire: Wire, stream: bool) -> None:
    """https://github.com/earendil-works/pi/issues/4189: one call without a result, and every later request of the
    session is refused, the one that would compact it too. Every call is told as answered."""
    server.play(_strict)
    body = _without_results(wire, wire.body("m", stream=stream, rounds=[Round("call_1", OSLO, "3 °C")]))
    reply = gateway.post(wire.path, body)
    assert reply.status == 200, reply.body
    turn = wire.streamed(reply.body) if stream else wire.whole(reply.body)
    assert turn.said == ("Cold.", "", (), "stop")


def _chat(*messages: dict[str, Any], stream: bool) -> dict[str, Any]:
    return {**WIRES["chat"].body("m", stream=stream), "messages": [{"role": "user", "content": "Go"}, *messages]}


def _made(arguments: str, call_id: str = "call_1") -> dict[str, Any]:
    function = {"name": "get_weather", "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "3 °C"}
POISONED = {
    "arguments that are no JSON": (_made('{"city": "Os'), RESULT),
    "an empty answer": ({"role": "assistant", "content": ""}, {"role": "user", "content": "Hello?"}),
    "the same id in two rounds": (_made('{"city": "Oslo"}'), RESULT, _made('{"city": "Bergen"}'), RESULT),
    "a result of a call that a compaction removed": (_made("{}"), RESULT, {**RESULT, "tool_call_id": "call_0"}),
    "results in another order, after other words": (
        _made("{}"),
        {"role": "user", "content": "Quick!"},
        RESULT,
    ),
}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("messages", POISONED.values(), ids=POISONED)
def test_a_history_that_went_wrong_in_another_way(
    gateway: Hosted, server: Upstream, messages: tuple[dict[str, Any], ...], stream: bool
) -> None:
    """https://github.com/anomalyco/opencode/pull/22001: what else clients send back for ever."""
    server.play(_strict)
    assert gateway.post(WIRES["chat"].path, _chat(*messages, stream=stream)).status == 200


def test_a_leaked_call_in_the_history_is_told_as_a_call(gateway: Hosted, server: Upstream) -> None:
    """https://github.com/anthropics/claude-code/issues/77061: after an example of a leaked call 34 % leak again."""
    server.play(_strict)
    leak = {"role": "assistant", "content": f"Let me look.\n{TOOL_CALL}"}
    body = _chat(leak, {"role": "user", "content": "You did not call it."}, stream=True)
    assert gateway.post(WIRES["chat"].path, body).status == 200
    told = server.requests[-1].json["messages"]
    assert "<tool_call>" not in json.dumps(told)
    assert told[1]["tool_calls"][0]["function"]["name"] == "get_weather"


@every_wire
@pytest.mark.parametrize("reason", ["length", "tool_calls"])
def test_a_call_cut_by_the_limit_never_gets_into_a_history(
    gateway: Hosted, server: Upstream, wire: Wire, reason: str
) -> None:
    """https://github.com/ahwurm/localharness/issues/77: half a call was run, half a file written; some servers say
    `tool_calls` at the end of it."""
    server.play(answer(*text("Let me look."), *CUT, finish(reason), DONE))
    for stream in (True, False):
        reply = gateway.post(wire.path, wire.body("m", stream=stream))
        assert reply.status == 200, reply.body
        turn = wire.streamed(reply.body) if stream else wire.whole(reply.body)
        assert turn.calls == ()
        assert turn.finish == "length"
