"""The traces of the seeds, run by VS Code Copilot Chat's own client code against a model that is hard to use.

The model hears no system messages, its server has no tools, and it writes `<invoke>` text (`deaf.py`). The client is
`@vscode/chat-lib`: it writes every request, reads every stream and decides when its loop is over. In between stands the
gateway, which finds the profile `copilot` by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.deaf import Deaf
from tests.contract.test_node import run
from tests.integration.hosted import Hosted, backend, model
from tests.support.upstream import Upstream

pytestmark = pytest.mark.usefixtures("libraries")


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with Upstream([]) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, server: Upstream) -> Iterator[Hosted]:
    models = [
        model("s3", "main", dialect="invoke", prompt={"system": "fold"}),
        model("s0", "main", dialect="invoke", prompt={"system": "fold", "final_answer": "call"}),
    ]
    with Hosted(tmp_path_factory.mktemp("gateway"), backend("main", server.url) + "".join(models)) as gateway:
        yield gateway


def played(gateway: Hosted, name: str, trace: dict[str, Any]) -> list[dict[str, Any]]:
    """The rounds of a trace, as Copilot Chat had them."""
    before = _turns(gateway)
    rounds = run("copilot_trace.mjs", gateway.url, name, json.dumps(trace))
    assert _turns(gateway) == before + len(rounds), "every request was known as Copilot Chat's"
    return rounds


def _turns(gateway: Hosted) -> int:
    return sum(row["requests"] for row in gateway.get("/v1/usage?by=client").json["data"] if row["client"] == "copilot")


def tool(name: str, description: str, *parameters: str) -> dict[str, Any]:
    """A tool whose parameters are strings, all of them required."""
    schema = {"type": "object", "properties": {each: {"type": "string"} for each in parameters}}
    function = {"name": name, "description": description, "parameters": {**schema, "required": list(parameters)}}
    return {"type": "function", "function": function}


def joined(events: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """What the client's stream reader told, with neighbouring texts as one."""
    out: list[tuple[str, Any]] = []
    for event in events:
        ((kind, value),) = event.items()
        if kind == "text" and out and out[-1][0] == "text":
            value = out.pop()[1] + value
        out.append((kind, value))
    return out


# ── seed S3 ──────────────────────────────────────────────────────────────────────────────────────

S3_SYSTEM = "You are Copilot Chat"
S3_QUESTION = "Explain briefly how SSE streaming parsers handle partial deltas"
S3_WORDS = "Sure — I can look this up and summarize.I’m going to search the web for SSE streaming parser details..."
S3_CALL = '<invoke name="search">\n<parameter name="query">SSE streaming parser</parameter>\n</invoke>'
S3_RESULT = (
    '{"results":[{"title":"SSE parsing guide","snippet":"Server-sent events (SSE) can stream data; '
    'partial JSON arrays may be chunked into multiple messages..."}]}'
)
S3_ANSWER = (
    "SSE streaming parsers handle partial deltas by reading chunks as they arrive, buffering incomplete JSON "
    "fragments, and assembling them into a whole message."
)
S3_TRACE = {
    "messages": [("system", S3_SYSTEM), ("user", S3_QUESTION)],
    "tools": [tool("search", "Search the web for info", "query")],
    "results": {"search": S3_RESULT},
}


def test_the_whole_trace_of_seed_s3(gateway: Hosted, server: Upstream) -> None:
    """Request, text, tool call, tool message, final answer: the ten steps of the annex, with its own words."""
    deaf = Deaf({S3_RESULT: S3_ANSWER, S3_QUESTION: f"{S3_WORDS}\n{S3_CALL}"})
    deaf.play_on(server)
    first, second = played(gateway, "s3", S3_TRACE)

    # Steps 1 and 2: what the client sends.
    assert first["sent"]["body"]["stream"] is True
    assert [each["function"]["name"] for each in first["sent"]["body"]["tools"]] == ["search"]
    assert {"authorization", "x-request-id", "x-interaction-type", "openai-intent"} <= set(first["sent"]["headers"])

    # Steps 3 to 5: text while it comes, the sign that calls begin, the whole call; the client takes the turn for one
    # that ended on calls.
    (call,) = first["calls"]
    assert call["name"] == "search"
    assert json.loads(call["arguments"]) == {"query": "SSE streaming parser"}
    (text, words), (begin, names), (calls, listed) = joined(first["events"])
    assert (text, begin, calls) == ("text", "begin", "calls")
    assert words.rstrip() == S3_WORDS
    assert names == ["search"]
    assert listed == [call]

    # Steps 6 to 8: the tool's result comes back with the id that we gave the call.
    *_, asked, result = second["sent"]["body"]["messages"]
    assert asked["tool_calls"][0]["id"] == result["tool_call_id"] == call["id"]
    assert (result["role"], result["content"]) == ("tool", S3_RESULT)

    # Steps 9 and 10: the answer, and no call more.
    assert joined(second["events"]) == [("text", S3_ANSWER)]
    assert second["calls"] == []


def test_what_the_model_of_seed_s3_is_told(gateway: Hosted, server: Upstream) -> None:
    deaf = Deaf({S3_RESULT: S3_ANSWER, S3_QUESTION: f"{S3_WORDS}\n{S3_CALL}"})
    deaf.play_on(server)
    played(gateway, "s3", S3_TRACE)
    (opening,), (again, answered, results) = deaf.prompts
    assert opening["role"] == "user"
    assert opening["content"].startswith(
        f"<system_context>\n=== Agent Instructions ===\n{S3_SYSTEM}\n\n=== Tools ===\n"
    )
    assert '"name": "search"' in opening["content"]
    assert "Search the web for info" in opening["content"]
    assert opening["content"].endswith(f"</system_context>\n\n{S3_QUESTION}")
    assert again == opening, "the prompt cache holds"
    assert answered["role"] == "assistant"
    assert answered["content"].startswith(S3_WORDS)
    assert S3_CALL in answered["content"]
    assert results["role"] == "user"
    assert f'Call: search({{"query": "SSE streaming parser"}})\nResult [success]: {S3_RESULT}' in results["content"]


def test_a_server_that_refuses_tools_is_offered_them_once(gateway: Hosted, server: Upstream) -> None:
    deaf = Deaf({S3_QUESTION: S3_ANSWER})
    deaf.play_on(server)
    for _ in range(2):
        played(gateway, "s3", S3_TRACE)
    offers = [seen for seen in server.requests if seen.body and seen.json["model"] == "s3" and "tools" in seen.json]
    assert len(offers) <= 1


def test_a_model_that_hears_no_system_messages_learns_nothing_without_the_fold(
    tmp_path_factory: pytest.TempPathFactory, server: Upstream
) -> None:
    """The counter-proof: system messages sent as they are, the same model knows of no tool and the loop ends."""
    deaf = Deaf({S3_RESULT: S3_ANSWER, S3_QUESTION: f"{S3_WORDS}\n{S3_CALL}"})
    deaf.play_on(server)
    plain = backend("main", server.url) + model("plain", "main", dialect="invoke")
    with Hosted(tmp_path_factory.mktemp("plain"), plain) as gateway:
        (only,) = played(gateway, "plain", S3_TRACE)
    assert (only["text"], only["calls"]) == ("I have no tool search.", [])


# ── seed S0, §6.7.2 ──────────────────────────────────────────────────────────────────────────────

# The system messages and the tags are those of §4.2.3, the reminder is the one that Copilot Chat 0.42 puts beside them.
S0_IDENTITY = "You are Copilot, an AI coding assistant. You help developers write, understand, and improve code."
S0_WORKSPACE = "Workspace: /home/user/project\nOpen files: src/main.ts, package.json\nGit branch: main"
S0_TAGS = (
    "<attachments>\n  README.md\n</attachments>\n<context>\n  <vscode.d.ts symbols definitions>\n</context>\n"
    "<reminderInstructions>\nKeep going until the task is done.\n</reminderInstructions>\n"
)
S0_REQUEST = f"{S0_TAGS}<userRequest>\nRead README.md and create SUMMARY.md with key points\n</userRequest>"
S0_README = "# My Project\n\nInstall: npm install\nUsage: npm start"
S0_SUMMARY = "# Summary\n\n- Install dependencies with npm install\n- Start server with npm start\n"
S0_READ = '<invoke name="read_file">\n<parameter name="path">README.md</parameter>\n</invoke>'
S0_CREATE = (
    '<invoke name="create_file">\n<parameter name="path">SUMMARY.md</parameter>\n'
    f'<parameter name="content">{S0_SUMMARY}</parameter>\n</invoke>'
)
S0_CREATED = "Created SUMMARY.md successfully"
S0_ANSWER = (
    "I've completed both tasks:\n1. ✓ Read README.md\n2. ✓ Created SUMMARY.md with the key points\n\n"
    "The summary file is now available in your workspace."
)
S0_THOUGHTS = {
    S0_CREATED: f'<invoke name="final_answer">\n<parameter name="answer">{S0_ANSWER}</parameter>\n</invoke>',
    S0_README: f"Now I'll create the summary file.\n{S0_CREATE}",
    S0_REQUEST: f"I'll read the README first.\n{S0_READ}",
}
S0_TRACE = {
    "messages": [("system", S0_IDENTITY), ("system", S0_WORKSPACE), ("user", S0_REQUEST)],
    "tools": [
        tool("read_file", "Read a file", "path"),
        tool("create_file", "Create a file", "path", "content"),
    ],
    "results": {"read_file": S0_README, "create_file": S0_CREATED},
}


def test_the_multi_round_example_of_seed_s0_6_7_2(gateway: Hosted, server: Upstream) -> None:
    deaf = Deaf(S0_THOUGHTS)
    deaf.play_on(server)
    one, two, three = played(gateway, "s0", S0_TRACE)
    assert one["text"].rstrip() == "I'll read the README first."
    assert [(each["name"], json.loads(each["arguments"])) for each in one["calls"]] == [
        ("read_file", {"path": "README.md"})
    ]
    assert two["text"].rstrip() == "Now I'll create the summary file."
    assert [(each["name"], json.loads(each["arguments"])) for each in two["calls"]] == [
        ("create_file", {"path": "SUMMARY.md", "content": S0_SUMMARY})
    ]
    assert (three["text"], three["calls"]) == (S0_ANSWER, []), "a final answer is text, and ends the loop"
    assert one["calls"][0]["id"] != two["calls"][0]["id"]


def test_what_the_model_of_seed_s0_is_told_round_by_round(gateway: Hosted, server: Upstream) -> None:
    deaf = Deaf(S0_THOUGHTS)
    deaf.play_on(server)
    played(gateway, "s0", S0_TRACE)
    first, second, third = deaf.prompts
    assert [message["role"] for message in third] == ["user", "assistant", "user", "assistant", "user"]
    assert (third[:3], second[:1]) == (second, first), "what was told stays, byte for byte"

    opening = first[0]["content"]
    instructions = (
        f"<system_context>\n=== Agent Instructions ===\n{S0_IDENTITY}\n\n=== System Context 2 ===\n{S0_WORKSPACE}\n"
    )
    assert opening.startswith(instructions)
    assert opening.endswith(f"</system_context>\n\n{S0_REQUEST}"), "the client's tags stay as they are"
    for name in ("read_file", "create_file", "final_answer"):
        assert f'"name": "{name}"' in opening

    assert second[1]["content"].startswith("I'll read the README first.\n")
    assert S0_READ in second[1]["content"], "the call as the model wrote it"
    assert f'Call: read_file({{"path": "README.md"}})\nResult [success]: {S0_README}' in second[2]["content"]
    assert third[3]["content"].startswith("Now I'll create the summary file.\n")
    assert S0_CREATE in third[3]["content"]
    assert 'Call: create_file({"path": "SUMMARY.md", "content": "# Summary' in third[4]["content"]
    assert f"Result [success]: {S0_CREATED}" in third[4]["content"]


def test_a_tool_that_failed_is_told_as_an_error_to_the_model_of_seed_s0(gateway: Hosted, server: Upstream) -> None:
    """§6.8.2 inside the loop: the model sees `[error]` and says so instead of going on."""
    failure = "Error: File not found - README.md does not exist in workspace"
    deaf = Deaf({f"Result [error]: {failure}": "There is no README.md.", **S0_THOUGHTS})
    deaf.play_on(server)
    _, last = played(gateway, "s0", {**S0_TRACE, "results": {"read_file": failure}})
    assert (last["text"], last["calls"]) == ("There is no README.md.", [])
