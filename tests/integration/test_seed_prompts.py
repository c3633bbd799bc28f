"""The edge cases of seed S0 §4.4 (folding) and §6.8 (tool results) over the gateway: what the model's server gets.

Each test quotes the seed's own line. The model's server knows no tools and ignores system messages. Each case is asked
for as a stream and as a whole, and the prompt is the same. The parts of a prompt have tests of their own in
tests/unit/prompt; the cases of §5.8, about what the client gets, are in `test_seed_edges.py`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.hosted import Hosted, Reply, backend, model
from tests.integration.turns import spoken
from tests.integration.wires import CHAT
from tests.support.upstream import Upstream

Message = dict[str, Any]
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"properties": {"path": {"type": "string"}}}}}
    for name in ("read_file", "edit_file")
]
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
LONG = "Follow this rule. " * 600


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with Upstream(spoken("Done.")) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, server: Upstream) -> Iterator[Hosted]:
    taught = {"tools": "taught", "dialect": "invoke"}
    models = [
        model("fold", "main", prompt={"system": "fold"}, **taught),
        model("keeps", "main", prompt={"system": "fold_first"}, **taught),
        model("native", "main"),
    ]
    with Hosted(tmp_path_factory.mktemp("gateway"), backend("main", server.url) + "".join(models)) as gateway:
        yield gateway


def asked(gateway: Hosted, *messages: Message, name: str = "fold", tools: bool = False, stream: bool = True) -> Reply:
    offered = {"tools": TOOLS} if tools else {}
    return gateway.post(CHAT.path, {"model": name, "messages": messages, "stream": stream, **offered})


def told(gateway: Hosted, server: Upstream, *messages: Message, **more: Any) -> list[Message]:
    """The messages that the model's server gets: the same, streamed or not."""
    prompts = []
    for stream in (True, False):
        reply = asked(gateway, *messages, stream=stream, **more)
        assert reply.status == 200, reply.body
        prompts.append(server.requests[-1].json["messages"])
    assert prompts[0] == prompts[1]
    return prompts[0]


def warned(caplog: pytest.LogCaptureFixture) -> set[str]:
    """What the log says was mended. The last line is written after the client has its answer."""
    for _ in range(200):
        lines = [record.fields for record in caplog.records if hasattr(record, "fields")]
        if len(lines) == 2:
            return {kind for line in lines for kind in line.get("repairs", ())}
        time.sleep(0.01)
    raise AssertionError("the turns were not logged")


def system(content: object) -> Message:
    return {"role": "system", "content": content}


def user(content: object) -> Message:
    return {"role": "user", "content": content}


def called(*calls: tuple[str, str, str]) -> Message:
    made = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(call_id: str, content: object) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


README = ("call_1", "read_file", '{"path":"README.md"}')
EDIT = ("call_2", "edit_file", '{"path":"test.js"}')

# ── §4.4 ─────────────────────────────────────────────────────────────────────────────────────────


def test_4_4_1_no_system_messages(gateway: Hosted, server: Upstream) -> None:
    """“Client sends only user message … No injection needed, return as-is”"""
    assert told(gateway, server, user("Hello")) == [user("Hello")]


def test_4_4_2_multiple_system_messages(gateway: Hosted, server: Upstream) -> None:
    """“VSCode sends 3+ system messages (identity, context, experiment flags) … Inject ALL”"""
    (only,) = told(gateway, server, system("{First}"), system("{Second}"), system("{Third}"), user("Task"))
    assert only["role"] == "user"
    assert only["content"] == (
        "<system_context>\n=== Agent Instructions ===\n{First}\n\n=== System Context 2 ===\n{Second}\n\n"
        "=== System Context 3 ===\n{Third}\n\n</system_context>\n\nTask"
    )


@pytest.mark.parametrize(("words", "warnings"), [(LONG, {"large_system"}), ("Short.", set())])
def test_4_4_3_very_long_system_message(
    gateway: Hosted, server: Upstream, caplog: pytest.LogCaptureFixture, words: str, warnings: set[str]
) -> None:
    """“Accept the length … Log warning if exceeds threshold” of 10000 characters"""
    caplog.set_level(logging.INFO, "callwright.turns")
    (only,) = told(gateway, server, system(words), user("Hi"))
    assert words.rstrip() in only["content"]
    assert warned(caplog) == warnings


HISTORY = (system("Rules"), user("Read it"), called(README), result("call_1", "# My Project"), user("And now?"))


def test_4_4_4_conversation_history_with_tool_results(gateway: Hosted, server: Upstream) -> None:
    """“Message array contains: system, user, assistant, tool, user … Injection only happens if NO assistant messages”

    That is for a backend that keeps the conversation. The tool result is told as such, not as an instruction.
    """
    messages = told(gateway, server, *HISTORY, name="keeps", tools=True)
    assert not any("<system_context>" in message["content"] for message in messages)
    assert "Result [success]: # My Project" in messages[3]["content"]


def test_4_4_4_a_backend_that_keeps_no_conversation_is_told_every_time(gateway: Hosted, server: Upstream) -> None:
    """“this is conversation continuation”: a stateless backend would have lost the instructions (P-1)."""
    first, *rest = told(gateway, server, *HISTORY, tools=True)
    assert first["content"].startswith("<system_context>\n=== Agent Instructions ===\nRules\n")
    assert first["content"].endswith("</system_context>\n\nRead it")
    assert [message["role"] for message in rest] == ["assistant", "user", "user"]


@pytest.mark.parametrize("tag", ["<system_context>", "</system_context>"])
def test_4_4_5_user_message_contains_existing_system_context_tag(gateway: Hosted, server: Upstream, tag: str) -> None:
    """“If found, use different tag name `<agent_system_context>`”"""
    (only,) = told(gateway, server, system("Rules"), user(f"What does {tag} mean?"))
    assert only["content"].startswith("<agent_system_context>\n")
    assert only["content"].endswith(f"</agent_system_context>\n\nWhat does {tag} mean?")


def test_4_4_6_multi_part_user_content(gateway: Hosted, server: Upstream) -> None:
    """“User content is a list of parts (text + images) … Preserves all content parts, system context comes first”"""
    parts = [{"type": "text", "text": "Check this image"}, PICTURE, {"type": "text", "text": "and that"}]
    (only,) = told(gateway, server, system("Rules"), user(parts))
    first, *rest = only["content"]
    assert first["text"].startswith("<system_context>\n=== Agent Instructions ===\nRules\n")
    assert first["text"].endswith("</system_context>\n\nCheck this image")
    assert rest == parts[1:]


def test_4_4_6_content_that_begins_with_an_image(gateway: Hosted, server: Upstream) -> None:
    """“Insert system context as first text part”"""
    (only,) = told(gateway, server, system("Rules"), user([PICTURE]))
    first, second = only["content"]
    assert first["text"].endswith("</system_context>")
    assert second == PICTURE


# ── §6.8 ─────────────────────────────────────────────────────────────────────────────────────────


def test_6_8_1_missing_tool_results(gateway: Hosted, server: Upstream, caplog: pytest.LogCaptureFixture) -> None:
    """“Assistant made 2 tool calls, but only 1 tool result received … Add placeholder error result”"""
    caplog.set_level(logging.INFO, "callwright.turns")
    *_, last = told(gateway, server, user("Go"), called(README, EDIT), result("call_1", "# My Project"), tools=True)
    assert 'Call: read_file({"path":"README.md"})\nResult [success]: # My Project' in last["content"]
    assert 'Call: edit_file({"path":"test.js"})\nResult [error]: Error: no result was received' in last["content"]
    assert warned(caplog) == {"missing_result"}


def test_6_8_1_a_server_with_tools_of_its_own_gets_the_placeholder_as_a_result(
    gateway: Hosted, server: Upstream
) -> None:
    """The same where results are not told in words: such servers refuse a call without a result."""
    history = (user("Go"), called(README, EDIT), result("call_2", "edited"), user("And?"))
    results = [each for each in told(gateway, server, *history, name="native", tools=True) if each["role"] == "tool"]
    assert [each["tool_call_id"] for each in results] == ["call_1", "call_2"]
    assert results[0]["content"].startswith("Error: no result was received")


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ("Error: File not found - README.md does not exist in workspace", "error"),
        ("ERROR: no", "error"),
        ("Successfully read file", "success"),
        ("No errors: all is well", "success"),
    ],
)
def test_6_8_2_tool_execution_errors(gateway: Hosted, server: Upstream, content: str, status: str) -> None:
    """“Tool was invoked but returned an error … Result [✗ ERROR]: Error: File not found”"""
    *_, last = told(gateway, server, user("Go"), called(README), result("call_1", content), tools=True)
    assert f'Call: read_file({{"path":"README.md"}})\nResult [{status}]: {content}' in last["content"]


@pytest.mark.parametrize("name", ["fold", "native"])
def test_6_8_3_extra_tool_results(
    gateway: Hosted, server: Upstream, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """“More tool results than tool calls … Ignore extra results (don't include in prompt)”, with a warning"""
    caplog.set_level(logging.INFO, "callwright.turns")
    history = (user("Go"), called(README), result("call_1", "right"), result("call_0", "stale"))
    messages = told(gateway, server, *history, name=name, tools=True)
    assert "right" in str(messages)
    assert "stale" not in str(messages)
    assert warned(caplog) == {"extra_result"}


def test_6_8_3_duplicate_results(gateway: Hosted, server: Upstream) -> None:
    """“duplicate results from previous round”: one call, one result, and nothing of either is lost"""
    history = (user("Go"), called(README), result("call_1", "old"), result("call_1", "new"))
    *_, last = told(gateway, server, *history, tools=True)
    assert last["content"].count("Call: read_file") == 1
    assert "Result [success]: old\nnew" in last["content"]


@pytest.mark.parametrize("stream", [True, False])
def test_6_8_4_no_last_assistant_message(gateway: Hosted, server: Upstream, stream: bool) -> None:
    """“Tool results exist but no assistant message with tool_calls found … Return error to client”"""
    before = len(server.requests)
    reply = asked(gateway, user("Go"), result("call_1", "x"), tools=True, stream=stream)
    assert reply.status == 400
    assert "no message before this result made call 'call_1'" in reply.json["error"]["message"]
    assert reply.json["error"]["param"] == "messages[1].tool_call_id"
    assert len(server.requests) == before, "the model was not asked"
