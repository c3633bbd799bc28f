"""Services that keep conversations, end to end: the same behaviour over HTTP and through pages on the bridge."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.integration.chats import TOKEN, ChatService, Pages, everything
from tests.integration.hosted import Hosted, Reply, backend, model
from tests.support.upstream import Upstream

READ = '<invoke name="read_file">\n<parameter name="path">README.md</parameter>\n</invoke>'
TOOL = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read a file",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}


class Setup:
    """A gateway before a service, on one of the transports."""

    def __init__(self, transport: str, folder: Path, stack: ExitStack) -> None:
        self.transport = transport
        self.folder = folder
        self.stack = stack
        self.service = ChatService()
        self.pages: Pages | None = None
        self.configuration = ""

    def start(self, *others: ChatService, keys: str = "", **settings: Any) -> Hosted:
        if self.transport == "http":
            server = self.stack.enter_context(Upstream(self.service.over_http))
            table = backend("chat", server.url, kind="conversation", **settings).replace("/v1", "")
        else:
            table = backend("chat", "", kind="conversation", key=TOKEN, **settings).replace('url = "/v1"\n', "")
        store = f'[store]\naddress = "sqlite:///{self.folder / "store.db"}"\n'
        self.configuration = store + keys + table + model("m", "chat", dialect="invoke")
        return self.gateway(*others)

    def gateway(self, *others: ChatService) -> Hosted:
        """The same once more, on the same store."""
        gateway = self.stack.enter_context(Hosted(self.folder, self.configuration))
        if self.transport == "bridge":
            self.pages = self.stack.enter_context(Pages(gateway.url, TOKEN, self.service, *others))
        return gateway


@pytest.fixture(params=["http", "bridge"])
def setup(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Setup]:
    with ExitStack() as stack:
        yield Setup(request.param, tmp_path, stack)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def post(gateway: Hosted, messages: list[dict[str, Any]], key: str = "", **fields: Any) -> Reply:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return gateway.post("/v1/chat/completions", {"model": "m", "messages": messages, **fields}, **headers)


def ask(gateway: Hosted, messages: list[dict[str, Any]], key: str = "", **fields: Any) -> dict[str, Any]:
    """Ask, and put the answer into the history."""
    reply = post(gateway, messages, key, **fields)
    assert reply.status == 200, reply.body
    message: dict[str, Any] = reply.json["choices"][0]["message"]
    messages.append(message)
    return message


async def settled(gateway: Hosted) -> None:
    """Wait until no turn is in flight; inside the gateway's loop."""
    while gateway.service._turns:
        await asyncio.sleep(0.01)


# ── a conversation ───────────────────────────────────────────────────────────────────────────────


def test_a_conversation_goes_on_and_only_what_is_new_is_said(setup: Setup) -> None:
    gateway = setup.start()
    history = [{"role": "system", "content": "Be brief."}, user("one")]
    first = ask(gateway, history)
    history.append(user("two"))
    second = ask(gateway, history)
    ((opening, then),) = setup.service.heard.values()
    assert opening.startswith("<system_context>\n=== Agent Instructions ===\nBe brief.\n")
    assert opening.endswith("</system_context>\n\none")
    assert then == "two", "the instructions are told once"
    assert first["content"] == opening
    assert second["content"] == f"{opening} | two"
    assert setup.service.systems == ["", ""]


def test_the_results_of_calls_are_one_message(setup: Setup) -> None:
    setup.service.says = lambda heard: f"{READ}\n{READ.replace('README', 'NOTES')}" if len(heard) == 1 else "Done."
    gateway = setup.start()
    history = [{"role": "system", "content": "Be brief."}, user("Read both")]
    calls = ask(gateway, history, tools=[TOOL])["tool_calls"]
    history += [{"role": "tool", "tool_call_id": call["id"], "content": f"text {n}"} for n, call in enumerate(calls)]
    assert ask(gateway, history, tools=[TOOL])["content"] == "Done."
    ((opening, results),) = setup.service.heard.values()
    assert '"name": "read_file"' in opening
    assert 'Call: read_file({"path": "README.md"})\nResult [success]: text 0' in results
    assert "text 1" in results
    assert "Be brief." not in results


def test_a_streamed_answer_is_the_whole_one_in_pieces(setup: Setup) -> None:
    setup.service.says = lambda heard: "Grüße, 世界 😀 " * 20
    gateway = setup.start()
    body = post(gateway, [user("Hi")], stream=True).body.decode()
    chunks = [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: {")]
    words = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks if chunk["choices"]]
    assert "".join(words) == "Grüße, 世界 😀 " * 20
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert body.endswith("data: [DONE]\n\n")


def test_an_edited_history_is_told_whole_to_a_new_conversation(setup: Setup) -> None:
    gateway = setup.start()
    history = [user("one")]
    ask(gateway, history)
    ask(gateway, [user("other"), history[1], user("two")])
    kept, new = setup.service.heard.values()
    assert kept == ["one"]
    assert new == ["What was said so far:\n\n=== User ===\nother\n\n=== Assistant ===\none\n\n=== Now ===\ntwo"]


def test_a_conversation_that_the_service_lost_is_created_anew_with_the_whole_history(setup: Setup) -> None:
    gateway = setup.start()
    history = [{"role": "system", "content": "Be brief."}, user("one")]
    ask(gateway, history)
    setup.service.heard.clear()
    history.append(user("two"))
    ask(gateway, history)
    history.append(user("three"))
    ask(gateway, history)
    ((whole, then),) = setup.service.heard.values()
    assert whole.count("Be brief.") == 2, "once told, and once quoted by the service in its answer"
    assert whole.endswith("=== Now ===\ntwo")
    assert then == "three"


def test_a_conversation_survives_a_restart(setup: Setup) -> None:
    gateway = setup.start()
    history = [user("one")]
    ask(gateway, history)
    gateway.__exit__()
    gateway = setup.gateway()
    history.append(user("two"))
    assert ask(gateway, history)["content"] == "one | two"


def test_two_that_go_on_from_the_same_answer_go_apart(setup: Setup) -> None:
    gateway = setup.start()
    history = [user("one")]
    ask(gateway, history)
    left, right = [*history, user("left")], [*history, user("right")]
    ask(gateway, left)
    ask(gateway, right)
    assert ask(gateway, [*left, user("L")])["content"] == "one | left | L"
    assert ask(gateway, [*right, user("R")])["content"].endswith("right | R")
    assert not any("left" in text for text in list(setup.service.heard.values())[1])


def test_one_caller_never_goes_on_with_another_callers_conversation(setup: Setup) -> None:
    keys = "".join(f'[[keys]]\nname = "{name}"\nkey = "key-of-{name}-123"\n' for name in ("ann", "bob"))
    gateway = setup.start(keys=keys)
    for name in ("ann", "bob"):
        history = [user("one")]
        ask(gateway, history, f"key-of-{name}-123")
        history.append(user(name))
        assert ask(gateway, history, f"key-of-{name}-123")["content"] == f"one | {name}"
    foreign = [user("one"), {"role": "assistant", "content": "one"}, user("ann")]
    ask(gateway, [*foreign, {"role": "assistant", "content": "one | ann"}, user("x")], "key-of-bob-123")
    assert [len(heard) for heard in setup.service.heard.values()] == [2, 2, 1]


def test_an_answer_that_is_empty_is_asked_for_again_in_the_same_conversation(setup: Setup) -> None:
    setup.service.says = lambda heard: "" if len(heard) == 1 else f"heard {len(heard)}"
    gateway = setup.start()
    history = [user("one")]
    assert ask(gateway, history)["content"] == "heard 2"
    history.append(user("two"))
    assert ask(gateway, history)["content"] == "heard 3"
    ((one, nudge, two),) = setup.service.heard.values()
    assert (one, two) == ("one", "two")
    assert nudge.startswith("Your last answer cannot be used")


def test_late_instructions_are_heard(setup: Setup) -> None:
    gateway = setup.start()
    history = [user("one")]
    ask(gateway, history)
    history += [{"role": "system", "content": "Now in French."}, user("two")]
    ask(gateway, history)
    ((_, then),) = setup.service.heard.values()
    assert then == "<system_context>\nNow in French.\n</system_context>\n\ntwo"


def test_a_client_that_leaves_leaves_no_conversation_behind_that_knows_more(setup: Setup) -> None:
    heard, gate = threading.Event(), threading.Event()

    def slow(words: list[str]) -> str:
        if words[-1] == "wait":
            heard.set()
            gate.wait(5)
        return everything(words)

    setup.service.says = slow
    gateway = setup.start()
    history = [user("one")]
    ask(gateway, history)
    connection = gateway.send("/v1/chat/completions", {"model": "m", "messages": [*history, user("wait")]})
    assert heard.wait(10)
    connection.close()
    gate.set()
    gateway.wait(settled(gateway))
    ask(gateway, [*history, user("two")])
    first, second = setup.service.heard.values()
    assert first == ["one", "wait"]
    assert second[0].endswith("=== Now ===\ntwo"), "the other has heard what this history does not hold"


@pytest.mark.parametrize("fields", [{"response_format": {"type": "json_object"}}])
def test_what_a_conversation_has_no_place_for_is_refused(setup: Setup, fields: dict[str, Any]) -> None:
    gateway = setup.start()
    picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]
    for reply in (post(gateway, [user("x")], **fields), post(gateway, [{"role": "user", "content": picture}])):
        assert reply.status == 400
    assert not setup.service.heard


# ── many ─────────────────────────────────────────────────────────────────────────────────────────


def test_fifty_interleaved_conversations_of_five_clients_never_mix(setup: Setup) -> None:
    names = [f"client{number}" for number in range(5)]
    keys = "".join(f'[[keys]]\nname = "{name}"\nkey = "key-of-{name}-123"\n' for name in names)
    other = ChatService(name="d")
    gateway = setup.start(other, keys=keys)

    def talk(number: int) -> list[str]:
        """Every conversation begins with the same words, so only its history tells it apart."""
        key = f"key-of-{names[number % 5]}-123"
        history: list[dict[str, Any]] = []
        answers = []
        for said in ("Hello", f"I am {number}", "Go on", f"Still {number}"):
            history.append(user(said))
            answers.append(ask(gateway, history, key)["content"])
        return answers

    with ThreadPoolExecutor(10) as pool:
        talks = list(pool.map(talk, range(50)))
    for number, answers in enumerate(talks):
        assert answers[-1].split(" | ") == ["Hello", f"I am {number}", "Go on", f"Still {number}"]
    heard = [*setup.service.heard.values(), *other.heard.values()]
    assert len(heard) == 50, "each client conversation has one of its own"
    assert len({tuple(each) for each in heard}) == 50
    if setup.pages is not None:
        assert {page for page, _ in setup.pages.served} == {"page1", "page2"}
