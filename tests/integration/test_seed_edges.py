"""The edge cases of seed S0 §5.8 over the gateway, streamed and not, and its whole example of §6.7.2.

The model's server knows no tools and ignores system messages; the model writes `<invoke>` text, as the seed's does.
Each test quotes the seed's own line; those of §4.4 and §6.8, about what the model gets, are in `test_seed_prompts.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.hosted import Hosted, Reply, backend, model
from tests.integration.turns import spoken
from tests.integration.wires import CHAT, Call, Heard
from tests.support.upstream import Upstream

READ = '<invoke name="read_file">\n<parameter name="path">README.md</parameter>\n</invoke>'
FINAL = '<invoke name="final_answer">\n<parameter name="answer">The file\nis short.</parameter>\n</invoke>'
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
                "required": ["path"],
            },
        },
    }
    for name in ("read_file", "create_file")
]
SYSTEM = {"role": "system", "content": "You are Copilot."}
ASKED = {"role": "user", "content": "Read README.md and create SUMMARY.md with key points"}


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with Upstream([]) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, server: Upstream) -> Iterator[Hosted]:
    prompt = {"system": "fold", "final_answer": "call", "max_rounds": 3}
    rules = {"max_retries": 0}
    models = [
        model("m", "main", tools="taught", dialect="invoke", prompt=prompt, rules=rules),
        model("volatile", "main", prompt={"volatile": ["x-anthropic-billing-header:"]}),
        model("whole", "main", tools="taught", dialect="invoke", prompt=prompt, style={"arguments": "whole"}),
    ]
    with Hosted(tmp_path_factory.mktemp("gateway"), backend("main", server.url) + "".join(models)) as gateway:
        yield gateway


def ask(gateway: Hosted, *messages: dict[str, Any], stream: bool = True, name: str = "m") -> Reply:
    options = {"stream_options": {"include_usage": True}} if stream else {}
    return gateway.post(CHAT.path, {"model": name, "messages": messages, "tools": TOOLS, "stream": stream, **options})


def heard(gateway: Hosted, server: Upstream, words: str) -> Heard:
    """What the client gets of an answer: the same, streamed or not."""
    server.play(spoken(words))
    streamed = CHAT.streamed(ask(gateway, SYSTEM, ASKED).body)
    server.play(spoken(words))
    assert CHAT.whole(ask(gateway, SYSTEM, ASKED, stream=False).body).said == streamed.said
    return streamed


def test_5_8_1_tool_call_without_preceding_text(gateway: Hosted, server: Upstream) -> None:
    """“response starts directly with `<invoke>` tag”: no text, and the deltas in the seed's order."""
    answer = heard(gateway, server, READ)
    assert answer.said == ("", "", (Call("read_file", {"path": "README.md"}),), "tool_calls")
    server.play(spoken(READ))
    *lines, done = [line[6:] for line in ask(gateway, ASKED, name="whole").body.split(b"\n") if b"data:" in line]
    assert done == b"[DONE]"
    choices = [choice for line in lines for choice in json.loads(line)["choices"]]
    role, start, arguments, end = [choice["delta"] for choice in choices]
    assert role == {"role": "assistant", "content": ""}
    (begun,) = start["tool_calls"]
    assert begun | {"id": ""} == {
        "index": 0,
        "id": "",
        "type": "function",
        "function": {"name": "read_file", "arguments": ""},
    }
    (rest,) = arguments["tool_calls"]
    assert rest == {"index": 0, "function": {"arguments": '{"path": "README.md"}'}}
    assert (end, choices[-1]["finish_reason"]) == ({}, "tool_calls")


@pytest.mark.parametrize(
    "value", ['"quotes" \\ and \\u00zz', "{not: json", "a & b < c\n\t</param>", "\x07 bell", "{}", "null", "12"]
)
def test_5_8_2_invalid_json_in_tool_arguments(gateway: Hosted, server: Upstream, value: str) -> None:
    """“parameters contain values that can't be JSON-serialized”: whatever they are, they arrive as strings."""
    written = f'<invoke name="read_file"><parameter name="path">{value}</parameter></invoke>'
    assert heard(gateway, server, written).calls == (Call("read_file", {"path": value}),)


CALLED = ((Call("read_file", {"path": "README.md"}),), "tool_calls")
CUT = ((), "length")
MALFORMED_XML = {
    "names are not quoted": ("<invoke name=read_file><parameter name=path>README.md</parameter></invoke>", CALLED),
    "single quotes": ("<invoke name='read_file'><parameter name='path'>README.md</parameter></invoke>", CALLED),
    "a parameter is not closed": ('<invoke name="read_file"><parameter name="path">README.md</invoke>', CUT),
    "the call is not closed": ('<invoke name="read_file"><parameter name="path">README.md</parameter>', CUT),
}


@pytest.mark.parametrize(("written", "expected"), MALFORMED_XML.values(), ids=MALFORMED_XML)
def test_5_8_2_malformed_xml(gateway: Hosted, server: Upstream, written: str, expected: tuple[object, str]) -> None:
    """“Outlier returns malformed XML”: the call that is meant; one without an end may be half, and is not run."""
    answer = heard(gateway, server, written)
    assert (answer.text, answer.calls, answer.finish) == ("", *expected)


@pytest.mark.parametrize(("name", "most"), [("m", None), ("whole", 1)])
def test_5_8_3_very_long_tool_arguments(gateway: Hosted, server: Upstream, name: str, most: int | None) -> None:
    """“Tool arguments are 10KB+”: option A, all in one delta, by setting; else as they come, never each character."""
    content = "".join(f'line {number} "x"\n' for number in range(2000))
    parameters = f'<parameter name="path">a</parameter><parameter name="content">{content}</parameter>'
    server.play(spoken(f'<invoke name="create_file">{parameters}</invoke>'))
    body = ask(gateway, ASKED, name=name).body
    assert CHAT.streamed(body).calls == (Call("create_file", {"path": "a", "content": content}),)
    pieces = body.count(b'"arguments":"') - 1
    assert pieces == most if most else 1 < pieces < len(content)


def test_5_8_4_final_answer_after_tool_calls(gateway: Hosted, server: Upstream) -> None:
    """“both tool calls AND final answer in same response”: the call is run, the answer is text.

    The seed ends such a turn on `stop`; the calls are there and must be run, so it ends on them (W-7).
    """
    answer = heard(gateway, server, f"Let me see.\n{READ}\n{FINAL}")
    assert answer.calls == (Call("read_file", {"path": "README.md"}),)
    assert answer.text == "Let me see.\nThe file\nis short."
    assert answer.finish == "tool_calls"


def test_5_8_4_a_final_answer_alone_is_text(gateway: Hosted, server: Upstream) -> None:
    assert heard(gateway, server, FINAL).said == ("The file\nis short.", "", (), "stop")
    assert heard(gateway, server, "<final_answer>Done.</final_answer>").said == ("Done.", "", (), "stop")


@pytest.mark.parametrize("words", ["", " ", "\n\n\t "])
def test_5_8_5_empty_response(gateway: Hosted, server: Upstream, words: str) -> None:
    """“empty string or whitespace-only”: well-formed, and an error.

    The seed ends it on `stop`. Agents take an empty answer for the end of the work, so it is an error that says so:
    with a status of its own where nothing was sent yet, else in the stream, which ends as every stream does.
    """
    server.play(spoken(words))
    reply = ask(gateway, ASKED)
    if reply.status == 200:
        streamed = CHAT.streamed(reply.body)
        assert (streamed.calls, streamed.text.strip()) == ((), "")
        assert "it is empty" in streamed.error
    else:
        assert reply.status == 502
        assert "it is empty" in reply.json["error"]["message"]


def test_5_8_5_an_empty_response_is_asked_for_again(gateway: Hosted, server: Upstream) -> None:
    server.play(spoken(""), spoken("Here I am."))
    assert CHAT.streamed(ask(gateway, ASKED, name="whole").body).text == "Here I am."


def test_6_7_2_the_whole_example(gateway: Hosted, server: Upstream) -> None:
    summary = "# Summary\n\n- Install dependencies with npm install\n- Start server with npm start\n"
    path, content = '<parameter name="path">SUMMARY.md</parameter>', f'<parameter name="content">{summary}</parameter>'
    create = f'<invoke name="create_file">\n{path}\n{content}\n</invoke>'
    done = "I've completed both tasks:\n1. ✓ Read README.md\n2. ✓ Created SUMMARY.md with the key points"
    history: list[dict[str, Any]] = [SYSTEM, ASKED]
    before: list[Any] = []
    rounds = [
        (f"I'll read the README first.\n{READ}", "# My Project\n\nInstall: npm install\nUsage: npm start"),
        (f"Now I'll create the summary file.\n{create}", "Created SUMMARY.md successfully"),
    ]
    for words, result in rounds:
        server.play(spoken(words))
        message = ask(gateway, *history, stream=False).json["choices"][0]["message"]
        told = server.requests[-1].json["messages"]
        assert told[: len(before)] == before, "the prompt cache holds"
        before = told
        (call,) = message["tool_calls"]
        history += [message, {"role": "tool", "tool_call_id": call["id"], "content": result}]
    server.play(spoken(f'<invoke name="final_answer">\n<parameter name="answer">{done}</parameter>\n</invoke>'))
    answer = CHAT.streamed(ask(gateway, *history).body)
    assert (answer.text, answer.calls, answer.finish) == (done, (), "stop")
    told = server.requests[-1].json
    assert "tools" not in told
    assert [message["role"] for message in told["messages"]] == ["user", "assistant", "user", "assistant", "user"]
    assert told["messages"][0]["content"].startswith("<system_context>\n=== Agent Instructions ===\nYou are Copilot.")
    assert told["messages"][-1]["content"].count("Result [success]: Created SUMMARY.md successfully") == 1
    assert json.loads(history[4]["tool_calls"][0]["function"]["arguments"])["content"] == summary


def test_a_round_too_many_is_a_clear_400(gateway: Hosted, server: Upstream) -> None:
    history = [ASKED]
    for number in range(3):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
        history += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": "x"},
        ]
    server.play(spoken("Go on"))
    reply = ask(gateway, *history)
    assert reply.status == 400
    assert reply.json["error"]["code"] == "tool_rounds_exceeded"
    assert "send another message" in reply.json["error"]["message"]
    assert ask(gateway, *history, {"role": "user", "content": "go on"}).status == 200


def test_a_line_that_is_set_as_volatile_does_not_spoil_the_prompt_cache(gateway: Hosted, server: Upstream) -> None:
    told = []
    for number in (1, 2):
        server.play(spoken("Hi"))
        line = {"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.37; cch={number};"}
        rest = {"type": "text", "text": "You are Claude Code, Anthropic's official CLI for Claude."}
        body = {"model": "volatile", "max_tokens": 9, "system": [line, rest], "messages": [ASKED]}
        assert gateway.post("/v1/messages", body, user_agent="claude-cli/2.1.37").status == 200
        told.append(server.requests[-1].json["messages"][-1]["content"])
    one, two = told
    assert one.partition("x-anthropic-billing-header")[0] == two.partition("x-anthropic-billing-header")[0]
    assert one.endswith("cch=1;")
