"""gpt-oss through the whole gateway: behind raw completions, and behind chat servers that leak what it writes (BK-4,
T-11, T-15, S4)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harmony_rows import ROWS, Row
from tests.integration.hosted import Hosted, backend, model, opened
from tests.integration.turns import delta, said
from tests.integration.wires import CHAT, WIRES, Call, Heard, Round, Wire
from tests.support.sampling import sample
from tests.support.upstream import DONE, READ, SILENCE, Script, Step, Upstream, answer, refused, sse, whole

MARKER = re.compile(r"<\|\w+\|>|assistant(?:final|commentary)|to=")
PAUSE = 0.003
"""Enough for what was sent before to be a read of its own."""
EACH_ROW = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with Upstream([]) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, server: Upstream) -> Iterator[Hosted]:
    tables = [
        backend("raw", server.url, kind="harmony"),
        f'[[backends]]\nname = "tgi"\nkind = "harmony"\napi = "generate_stream"\nurl = "{server.url}"\nretries = 0\n',
        backend("chat", server.url),
        model("raw", "raw", model="local-model"),
        model("tgi", "tgi"),
        model("leaky", "chat", model="gpt-oss-20b"),
        model("kilo", "raw", profile="kilocode-xml"),
    ]
    with Hosted(tmp_path_factory.mktemp("gateway"), "".join(tables)) as gateway:
        yield gateway


def piece(text: str, reason: str | None = None) -> bytes:
    """An event of a raw completion."""
    return sse({"choices": [{"index": 0, "text": text, "finish_reason": reason}]})


def raw(*pieces: Step, reason: str = "stop") -> Script:
    """A whole raw completion."""
    return answer(*pieces, piece("", reason), DONE)


def cut(text: str, at: int) -> Script:
    return raw(piece(text[:at]), PAUSE, piece(text[at:]))


def heard(gateway: Hosted, name: str = "raw", *, stream: bool = True, wire: Wire = CHAT, **body: Any) -> Heard:
    reply = gateway.post(wire.path, {**wire.body(name, stream=stream), **body})
    assert reply.status == 200, reply.body
    return wire.streamed(reply.body) if stream else wire.whole(reply.body)


# ── every malformation, cut everywhere (T-15) ────────────────────────────────────────────────────


@EACH_ROW
def test_what_is_malformed_is_heard_right_wherever_its_markers_are_cut(
    gateway: Hosted, server: Upstream, row: Row
) -> None:
    inside = {at for found in MARKER.finditer(row.sent) for at in range(found.start() + 1, found.end())}
    for at in sample(sorted(inside) or [len(row.sent) // 2], 12):
        server.play(cut(row.sent, at))
        assert heard(gateway).said == row.heard, f"cut after {row.sent[:at]!r}"


@EACH_ROW
def test_what_is_malformed_is_the_same_on_every_wire(gateway: Hosted, server: Upstream, row: Row) -> None:
    for wire in WIRES.values():
        for stream in (True, False):
            server.play(raw(piece(row.sent)))
            assert heard(gateway, wire=wire, stream=stream).said == row.heard, wire.name


# ── chat servers that leak it (S4) ───────────────────────────────────────────────────────────────

CALLING = ROWS["as it should be"]


def letters(field: str, text: str, reason: str = "stop") -> Script:
    """A chat answer with every letter in a read of its own, as far as the network lets it."""
    pieces = [step for letter in text for step in (delta(**{field: letter}), PAUSE / 10)]
    return said(*pieces, reason=reason)


@EACH_ROW
def test_harmony_in_the_content_of_a_chat_answer_is_read(gateway: Hosted, server: Upstream, row: Row) -> None:
    server.play(letters("content", row.sent))
    assert heard(gateway, "leaky").said == row.heard


@pytest.mark.parametrize(
    "name", [name for name in ROWS if ROWS[name].sent.startswith("<|channel|>analysis<|message|>Hm.")]
)
def test_harmony_in_the_reasoning_of_a_chat_answer_is_read(gateway: Hosted, server: Upstream, name: str) -> None:
    row = ROWS[name]
    server.play(letters("reasoning_content", row.sent.removeprefix("<|channel|>analysis<|message|>")))
    assert heard(gateway, "leaky").said == row.heard


def test_a_call_that_leaks_and_comes_natively_too_is_one_call(gateway: Hosted, server: Upstream) -> None:
    native = {"index": 0, "id": "call_x", "type": "function", "function": {"name": "get_weather", "arguments": ""}}
    arguments = {"index": 0, "function": {"arguments": '{"city":"Oslo"}'}}
    leaked = delta(reasoning_content=CALLING.sent.removeprefix("<|channel|>analysis<|message|>"))
    server.play(said(leaked, delta(tool_calls=[native]), delta(tool_calls=[arguments]), reason="tool_calls"))
    assert heard(gateway, "leaky").said == CALLING.heard


@pytest.mark.parametrize("left", ["<|channel|>commentary", "<|constrain|>json", "json"])
@pytest.mark.parametrize("prefix", ["", "functions."])
def test_what_leaks_into_the_name_of_a_native_call_is_no_part_of_it(
    gateway: Hosted, server: Upstream, prefix: str, left: str
) -> None:
    named = {"name": f"{prefix}get_weather{left}", "arguments": '{"city": "Oslo"}'}
    native = {"index": 0, "id": "call_x", "type": "function", "function": named}
    for leaked in ((), (delta(content=CALLING.sent),)):
        server.play(said(*leaked, delta(tool_calls=[native]), reason="tool_calls"))
        assert heard(gateway, "leaky").calls == CALLING.calls


@pytest.mark.parametrize("end", [-1, -6, -20, -60, -75])
def test_an_answer_cut_inside_a_header_shows_nothing_of_it(gateway: Hosted, server: Upstream, end: int) -> None:
    header = CALLING.sent.partition("{")[0]
    server.play(raw(piece(header[:end]), reason="length"))
    assert heard(gateway).said == ("", "Hm.", (), "length")


def test_a_tool_with_dots_in_its_name_is_called_by_the_name_that_the_model_is_told(
    gateway: Hosted, server: Upstream
) -> None:
    tools = [{"type": "function", "function": {"name": "files.read", "parameters": {"type": "object"}}}]
    for form in ("{}", "functions.{}", "functions.{}json"):
        server.play(lambda seen, form=form: raw(piece(_calling(form.format(_told(seen.json["prompt"]))))))
        assert heard(gateway, tools=tools).calls == (Call("files.read", {}),)


def _told(prompt: str) -> str:
    (name,) = re.findall(r"type (\S+) = \(", prompt)
    return str(name)


def _calling(recipient: str) -> str:
    return f"<|channel|>commentary to={recipient} <|constrain|>json<|message|>{{}}<|call|>"


def test_reasoning_and_content_that_are_clean_stay_as_they_are(gateway: Hosted, server: Upstream) -> None:
    server.play(
        said(delta(reasoning_content="Final thoughts. "), delta(reasoning_content="Hm."), delta(content="Done."))
    )
    assert heard(gateway, "leaky").said == ("Done.", "Final thoughts. Hm.", (), "stop")


@pytest.mark.parametrize("name", ["raw", "leaky"])
def test_channels_are_read_where_no_tools_are_offered(gateway: Hosted, server: Upstream, name: str) -> None:
    sent = ROWS["return eaten by the server"].sent
    server.play(raw(piece(sent)) if name == "raw" else said(delta(content=sent)))
    reply = gateway.post(CHAT.path, CHAT.body(name, stream=True, tools=False))
    assert CHAT.streamed(reply.body).said == ("Done.", "Hm.", (), "stop")


def test_a_call_that_nobody_can_run_is_asked_about_again(gateway: Hosted, server: Upstream) -> None:
    server.play(raw(piece(CALLING.sent)), raw(piece("<|channel|>final<|message|>In words.<|return|>")))
    reply = gateway.post(CHAT.path, CHAT.body("raw", stream=True, tools=False))
    assert CHAT.streamed(reply.body).said == ("In words.", "Hm.", (), "stop")


def test_a_call_of_a_tool_that_the_request_does_not_have_is_text(gateway: Hosted, server: Upstream) -> None:
    server.play(raw(piece("<|channel|>analysis to=container.exec code<|message|>ls<|call|>")))
    reply = gateway.post(CHAT.path, CHAT.body("raw", stream=False))
    assert reply.status == 200
    assert "to=container.exec code<|message|>ls" in reply.json["choices"][0]["message"]["content"]


def test_a_call_that_stays_unusable_is_named_in_the_error(gateway: Hosted, server: Upstream) -> None:
    server.play(raw(piece("<|channel|>analysis to=container.exec code<|message|>ls<|call|>")))
    reply = gateway.post(CHAT.path, CHAT.body("raw", stream=False, tools=False))
    message, code = CHAT.problem(reply.json)
    assert (reply.status, code) == (502, "backend_unusable")
    assert "in 3 attempts: its call cannot be used: unknown tool 'container.exec'" in message


# ── what went wrong in the proxy of the seed (S4) ────────────────────────────────────────────────

HEAD = [piece(word) for word in ("<|start|>", "assistant", "<|channel|>", "final", "<|message|>", "First")]


@pytest.mark.parametrize("head", [HEAD, HEAD[2:]], ids=["role apart", "from the channel on"])
def test_an_answer_is_not_held_until_its_end(gateway: Hosted, server: Upstream, head: list[bytes]) -> None:
    server.play(answer(*head, "hang", end=False))
    with opened(gateway.url, CHAT.path, CHAT.body("raw", stream=True)) as stream:
        stream.until(b"First")
        assert b'"role":"assistant"' in stream.body.partition(b"First")[0]
        assert b'finish_reason":"' not in stream.body


def test_arguments_stream_while_they_are_written(gateway: Hosted, server: Upstream) -> None:
    head = "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
    server.play(answer(piece(head), PAUSE, piece('{"city": "Os'), "hang", end=False))
    with opened(gateway.url, CHAT.path, CHAT.body("raw", stream=True)) as stream:
        stream.until(b"Os")
        assert stream.body.index(b'"role":"assistant"') < stream.body.index(b'"name":"get_weather"')


def test_a_turn_of_calls_alone_says_its_role_first_and_nothing_else(gateway: Hosted, server: Upstream) -> None:
    server.play(raw(piece(ROWS["two calls"].sent)))
    chunks = [json.loads(line[6:]) for line in _lines(gateway.post(CHAT.path, CHAT.body("raw", stream=True)).body)]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert not any(each.get("content") for each in deltas)
    assert [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]][-1] == "tool_calls"
    assert b"event:" not in gateway.post(CHAT.path, CHAT.body("raw", stream=True)).body


def _lines(body: bytes) -> list[bytes]:
    return [line for line in body.split(b"\n") if line.startswith(b"data: {")]


def test_ids_of_calls_are_new_in_every_answer(gateway: Hosted, server: Upstream) -> None:
    server.play(raw(piece(ROWS["two calls"].sent)))
    ids = [each for _ in range(3) for each in heard(gateway).ids]
    assert len(set(ids)) == 6
    assert all(re.fullmatch(r"call_\w{24}", each) for each in ids)


def test_text_and_a_call_end_on_the_call_whatever_the_server_said(gateway: Hosted, server: Upstream) -> None:
    row = ROWS["a preamble, then a call"]
    for stream in (True, False):
        server.play(raw(piece(row.sent), reason="stop"))
        assert heard(gateway, stream=stream).said == row.heard


def test_tokens_are_those_that_the_server_counts(gateway: Hosted, server: Upstream) -> None:
    usage = sse({"choices": [], "usage": {"prompt_tokens": 70, "completion_tokens": 9}})
    server.play(answer(piece(CALLING.sent), piece("", "stop"), usage, DONE))
    assert heard(gateway).usage == (70, 9)


def test_each_of_several_choices_has_its_own_answer(gateway: Hosted, server: Upstream) -> None:
    server.play(raw(piece(CALLING.sent)), raw(piece("<|channel|>final<|message|>Done.<|return|>")))
    body = gateway.post(CHAT.path, CHAT.body("raw", stream=False) | {"n": 2}).json
    assert sorted(choice["finish_reason"] for choice in body["choices"]) == ["stop", "tool_calls"]


@pytest.mark.parametrize("stream", [True, False])
def test_a_refusal_before_the_first_byte_is_an_error_with_its_status(
    gateway: Hosted, server: Upstream, stream: bool
) -> None:
    server.play(refused(400, "prompt is not a string"))
    reply = gateway.post(CHAT.path, CHAT.body("raw", stream=stream))
    assert reply.status == 400
    assert "prompt is not a string" in CHAT.problem(reply.json)[0]


def test_a_failure_inside_a_stream_is_told_and_the_stream_ends(gateway: Hosted, server: Upstream) -> None:
    server.play(answer(piece("<|channel|>final<|message|>It is"), sse({"error": {"message": "out of memory"}})))
    failed = heard(gateway)
    assert (failed.text, failed.finish) == ("It is", "")
    assert "out of memory" in failed.error


def test_a_server_that_falls_silent_is_noticed_without_another_event(tmp_path: Path, upstream: Upstream) -> None:
    upstream.play(answer(piece("<|channel|>final<|message|>It is"), READ, SILENCE, end=False))
    tables = backend("raw", upstream.url, kind="harmony", idle_seconds=600, key="a-secret-key") + model("m", "raw")
    with Hosted(tmp_path, tables, clock=True) as gateway:
        upstream.pass_time = lambda: gateway.pass_time(601)
        failed = CHAT.streamed(gateway.post(CHAT.path, CHAT.body("m", stream=True)).body)
        assert failed.text == "It is"
        assert failed.ending == "finish `error`, error `backend_timeout`, `[DONE]`"
    assert upstream.requests[-1].headers["authorization"] == "Bearer a-secret-key"


def test_it_is_ready_when_its_server_is(tmp_path: Path, upstream: Upstream) -> None:
    listed = whole(json.dumps({"data": [{"id": "gpt-oss-20b", "max_model_len": 4096}]}).encode())
    upstream.play(listed)
    with Hosted(tmp_path, backend("raw", upstream.url, kind="harmony")) as gateway:
        assert gateway.get("/readyz").status == 200
        gateway.wait(gateway.service.state.engine.refresh_models())
        assert [each["id"] for each in gateway.get("/v1/models").json["data"]] == ["gpt-oss-20b"]
    upstream.play(refused(503, "loading the model"))
    with Hosted(tmp_path, backend("raw", upstream.url, kind="harmony")) as gateway:
        assert gateway.get("/readyz").status == 503


# ── what the model is told ───────────────────────────────────────────────────────────────────────


def prompt(server: Upstream) -> str:
    text: str = server.requests[-1].json["prompt"]
    return text


def test_thoughts_come_back_while_a_chain_of_calls_goes_on(gateway: Hosted, server: Upstream) -> None:
    server.play(raw(piece(CALLING.sent)))
    first = heard(gateway)
    server.play(raw(piece("<|channel|>final<|message|>Cold.<|return|>")))
    rounds = [Round(first.ids[0], first.calls[0], "3 °C")]
    body = CHAT.body("raw", stream=True, rounds=rounds)
    assert CHAT.streamed(gateway.post(CHAT.path, body).body).text == "Cold."
    assert prompt(server).endswith(
        "<|start|>assistant<|channel|>analysis<|message|>Hm.<|end|>"
        "<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
        '{"city": "Oslo"}<|call|>'
        "<|start|>functions.get_weather to=assistant<|channel|>commentary<|message|>3 °C<|end|><|start|>assistant"
    )
    body["messages"] += [{"role": "assistant", "content": "Cold."}, {"role": "user", "content": "Thanks."}]
    server.play(raw(piece("<|channel|>final<|message|>Sure.<|return|>")))
    gateway.post(CHAT.path, body)
    assert "Hm." not in prompt(server)
    assert "<|start|>assistant<|channel|>final<|message|>Cold.<|end|><|start|>user<|message|>Thanks." in prompt(server)


@pytest.mark.parametrize(
    ("choice", "begun", "sent"),
    [
        ("required", "<|start|>assistant<|channel|>commentary to=functions", ".ping <|constrain|>json<|message|>{}"),
        (
            {"type": "function", "function": {"name": "ping"}},
            "<|start|>assistant<|channel|>commentary to=functions.ping <|constrain|>json<|message|>",
            "{}",
        ),
    ],
    ids=["any", "one"],
)
def test_a_call_that_must_come_is_begun_in_the_prompt(
    gateway: Hosted, server: Upstream, choice: Any, begun: str, sent: str
) -> None:
    server.play(raw(piece(sent)))
    assert heard(gateway, tool_choice=choice).said == ("", "", (Call("ping", {}),), "tool_calls")
    assert prompt(server).endswith(begun)


def test_no_tools_are_told_where_none_may_be_called(gateway: Hosted, server: Upstream) -> None:
    server.play(raw(piece("<|channel|>final<|message|>Done.<|return|>")))
    assert heard(gateway, tool_choice="none").text == "Done."
    assert "functions" not in prompt(server)


LEAKED = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello.<|return|>"


@pytest.mark.parametrize("sent", [LEAKED, "analysisWe greet.assistantfinalHello."], ids=["markers", "labels"])
@pytest.mark.parametrize("tools", [True, False])
def test_what_leaked_into_earlier_answers_is_cleaned(gateway: Hosted, server: Upstream, sent: str, tools: bool) -> None:
    history = [{"role": "assistant", "content": sent}, {"role": "user", "content": "And now?"}]
    server.play(raw(piece("<|channel|>final<|message|>Done.<|return|>")))
    body = CHAT.body("raw", stream=True, tools=tools)
    gateway.post(CHAT.path, body | {"messages": body["messages"] + history})
    assert "<|start|>assistant<|channel|>final<|message|>Hello.<|end|><|start|>user<|message|>And now?" in prompt(
        server
    )
    server.play(said(delta(content="Done.")))
    gateway.post(CHAT.path, body | {"messages": body["messages"] + history, "model": "leaky"})
    assert server.requests[-1].json["messages"][1]["content"] == "Hello."


def test_a_picture_is_refused_and_not_dropped(gateway: Hosted) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    body = CHAT.body("raw", stream=True) | {"messages": [{"role": "user", "content": [image]}]}
    reply = gateway.post(CHAT.path, body)
    assert (reply.status, CHAT.problem(reply.json)[1]) == (400, "images_not_supported")


# ── other servers ────────────────────────────────────────────────────────────────────────────────


def test_tokens_of_text_generation_inference_are_read_one_by_one(gateway: Hosted, server: Upstream) -> None:
    words = re.findall(r"<\|\w+\|>|\w+|\W", CALLING.sent)
    tokens = [sse({"index": at, "token": {"id": 5, "text": word, "special": False}}) for at, word in enumerate(words)]
    details = {"finish_reason": "eos_token", "generated_tokens": 9, "input_length": 70}
    last = {"token": {"id": 200012, "text": "", "special": True}, "generated_text": "…", "details": details}
    server.play(answer(*tokens[:-1], sse(last)))
    spoken = heard(gateway, "tgi", temperature=0, top_p=1.0, max_tokens=50)
    assert (spoken.said, spoken.usage) == (CALLING.heard, (70, 9))
    asked = server.requests[-1]
    assert asked.path == "/generate_stream"
    assert asked.json["parameters"] == {
        "max_new_tokens": 50,
        "stop": ["<|call|>", "<|return|>"],
        "do_sample": False,
        "details": True,
    }


def test_an_answer_cut_by_the_limit_is_no_call(gateway: Hosted, server: Upstream) -> None:
    server.play(raw(piece(CALLING.sent[:-20]), reason="length"))
    assert heard(gateway).said == ("", "Hm.", (), "length")


# ── tags of the agent's own, where gpt-oss was told of them (S4) ─────────────────────────────────

TAGGED = "<get_weather>\n<city>Oslo & 'more'</city>\n</get_weather>"
OTHER = Call("get_weather", {"city": "Oslo & 'more'"})
PLACES = {
    "final": f"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>{TAGGED}<|return|>",
    "preamble": f"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>{TAGGED}",
    "no frame": TAGGED,
    "thoughts": f"<|channel|>analysis<|message|>{TAGGED}<|end|>",
}


@pytest.mark.parametrize("place", PLACES)
def test_a_call_in_the_tags_of_an_agent_is_a_call_wherever_it_is_cut(
    gateway: Hosted, server: Upstream, place: str
) -> None:
    sent = PLACES[place]
    for at in range(sent.index("<get"), len(sent), 3):
        server.play(cut(sent, at))
        answered = heard(gateway)
        assert (answered.text, answered.calls, answered.finish) == ("", (OTHER,), "tool_calls"), sent[:at]


@pytest.mark.parametrize("field", ["content", "reasoning_content"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_call_in_tags_that_a_chat_server_hands_on_is_a_call(
    gateway: Hosted, server: Upstream, field: str, stream: bool
) -> None:
    server.play(said(delta(**{field: TAGGED}), reason="stop"))
    answered = heard(gateway, "leaky", stream=stream)
    assert (answered.text, answered.calls, answered.finish) == ("", (OTHER,), "tool_calls")


@pytest.mark.parametrize(
    "words",
    [
        f"Write it so:\n```xml\n{TAGGED}\n```\nand wait.",
        "The tag `<get_weather>` names a tool, and <get_weather> too.",
        "<b>bold</b> and <city>Oslo</city>",
        f"```\n{TAGGED}",
    ],
)
def test_tags_that_are_shown_or_mentioned_stay_text(gateway: Hosted, server: Upstream, words: str) -> None:
    server.play(raw(piece(f"<|channel|>final<|message|>{words}<|return|>")))
    assert heard(gateway).said == (words, "", (), "stop")


# ── old Kilo Code (C-4, C-4b) ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("tools", [True, False], ids=["tools", "no tools"])
def test_old_kilo_code_gets_the_call_as_xml_too_and_no_filler(
    gateway: Hosted, server: Upstream, stream: bool, tools: bool
) -> None:
    filler = "<|start|>assistant<|channel|>final<|message|>The task is now in progress.<|return|>"
    server.play(raw(piece(CALLING.sent + filler)))
    reply = gateway.post(CHAT.path, CHAT.body("kilo", stream=stream, tools=tools))
    answered = (CHAT.streamed if stream else CHAT.whole)(reply.body)
    assert answered.text == "<get_weather>\n<city>Oslo</city>\n</get_weather>"
    assert (answered.calls, answered.finish) == (CALLING.calls, "tool_calls")
