"""The example page in a real browser, as the chat service behind the gateway.

At one end Copilot Chat's own client code, at the other a page that keeps conversations, hears no system messages, and
has a model without tools write its answers (`deaf.py`): the multi-round file task of seed S0, §6.7.2.
"""

from __future__ import annotations

import json
import re
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.contract.deaf import Deaf
from tests.contract.test_copilot_traces import S0_ANSWER, S0_IDENTITY, S0_README, S0_SUMMARY, S0_THOUGHTS, S0_TRACE
from tests.contract.test_node import run
from tests.integration.chats import TOKEN
from tests.integration.hosted import Hosted, Reply, backend, model, opened
from tests.integration.turns import spoken
from tests.support.npm import LIBRARIES, node
from tests.support.upstream import Seen, Upstream, answer, sse, whole

BRIDGE_DOCUMENT = Path(__file__).parents[2] / "docs" / "bridge.md"

pytestmark = pytest.mark.usefixtures("libraries")


class Browser:
    """Chromium with pages of one gateway; `tests/contract/node/bridge.mjs` says what they can be told."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [str(node()), "bridge.mjs"], cwd=LIBRARIES, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.states: list[str] = []

    @contextmanager
    def browsing(self, gateway: Hosted, *fragments: str) -> Iterator[Browser]:
        """Fresh pages. A gateway has a port of its own, so that nothing that earlier pages stored is theirs."""
        self.states = self._asked(f"open {gateway.url} {' '.join(fragments)}")["said"]
        try:
            yield self
        finally:
            self._asked("end")

    def tell(self, command: str) -> Any:
        heard = self._asked(command)
        assert heard["problems"] == []
        return heard["said"]

    def close(self) -> None:
        self._process.communicate("", timeout=120)

    def _asked(self, command: str) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the browser ended"
        return json.loads(line)


@pytest.fixture(scope="module")
def chromium(libraries: None) -> Iterator[Browser]:
    """One browser for all tests: to start it takes longer than most of them."""
    with closing(Browser()) as browser:
        yield browser


@pytest.fixture
def server() -> Iterator[Upstream]:
    with Upstream([]) as server:
        yield server


@pytest.fixture
def gateway(tmp_path: Path, server: Upstream) -> Iterator[Hosted]:
    tables = [
        f'[store]\naddress = "sqlite:///{tmp_path / "store.db"}"\n',
        backend("main", server.url),
        backend("pages", "", kind="conversation", key=TOKEN, connect_seconds=2).replace('url = "/v1"\n', ""),
        model("writer", "main"),
        model("s0", "pages", dialect="invoke", prompt={"final_answer": "call"}),
    ]
    with Hosted(tmp_path, "".join(tables)) as gateway:
        yield gateway


def test_copilot_chat_does_the_file_task_of_seed_s0_through_a_page(
    gateway: Hosted, chromium: Browser, server: Upstream
) -> None:
    deaf = Deaf(S0_THOUGHTS)
    deaf.play_on(server)
    with chromium.browsing(gateway, f"token={TOKEN}&model=writer") as browser:
        assert browser.states == ["connected"]
        one, two, three = run("copilot_trace.mjs", gateway.url, "s0", json.dumps(S0_TRACE))
        seen = browser.tell("seen 0")
    assert [(each["name"], json.loads(each["arguments"])) for each in one["calls"] + two["calls"]] == [
        ("read_file", {"path": "README.md"}),
        ("create_file", {"path": "SUMMARY.md", "content": S0_SUMMARY}),
    ]
    assert one["text"].rstrip() == "I'll read the README first."
    assert (three["text"], three["calls"]) == (S0_ANSWER, [])

    # The page has one conversation, told what is new each time and the instructions once.
    assert [who for who, _ in seen] == ["user", "assistant"] * 3
    said = [text for who, text in seen if who == "user"]
    assert [S0_IDENTITY in text for text in said] == [True, False, False]
    assert f'Call: read_file({{"path": "README.md"}})\nResult [success]: {S0_README}' in said[1]
    assert deaf.prompts[2][0]["content"] == said[0]


def test_fifty_interleaved_conversations_over_two_pages_never_mix(
    gateway: Hosted, chromium: Browser, server: Upstream
) -> None:
    """Five clients without keys, so nothing but the histories tells their conversations apart."""

    def everything(seen: Seen) -> Any:
        said = [each["content"] for each in seen.json["messages"] if each["role"] == "user"]
        return spoken(" | ".join(said))

    server.play(lambda seen: everything(seen) if seen.body else whole(b'{"object": "list", "data": []}'))

    def client(number: int) -> list[str]:
        histories: list[list[dict[str, str]]] = [[] for _ in range(10)]
        for said in ("Hello", "I am {}", "Go on"):
            for at, history in enumerate(histories):
                history.append({"role": "user", "content": said.format(f"{number}.{at}")})
                reply = gateway.post("/v1/chat/completions", {"model": "s0", "messages": history})
                history.append(reply.json["choices"][0]["message"])
        return [history[-1]["content"] for history in histories]

    with chromium.browsing(gateway, *[f"token={TOKEN}&model=writer"] * 2) as browser:
        with ThreadPoolExecutor(5) as pool:
            answers = list(pool.map(client, range(5)))
        served = [len(browser.tell(f"listed {number}")) for number in range(2)]
    assert answers == [[f"Hello | I am {number}.{at} | Go on" for at in range(10)] for number in range(5)]
    assert sum(served) == 50
    assert all(served)


def test_a_closed_page_fails_what_it_was_answering_and_the_next_request_goes_to_another(
    gateway: Hosted, chromium: Browser, server: Upstream
) -> None:
    asked = []

    def slowly(seen: Seen) -> Any:
        asked.append(seen)
        if len(asked) > 1:
            return answer(sse("Here."), sse({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
        return answer(sse("Wait"), "hang", end=False)

    server.play(slowly)
    body = {"model": "s0", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    with chromium.browsing(gateway, *[f"token={TOKEN}&model=writer"] * 2) as browser:
        with opened(gateway.url, "/v1/chat/completions", body) as stream:
            stream.until(b"Wait")
            busy = [bool(browser.tell(f"seen {number}")) for number in range(2)].index(True)
            browser.tell(f"close {busy}")
            ending = stream.rest()
        assert b"lost the page that was answering" in ending
        assert ending.endswith(b"data: [DONE]\n\n")
        again = gateway.post("/v1/chat/completions", body | {"stream": False})
        assert again.json["choices"][0]["message"]["content"] == "Here."
        assert browser.tell(f"seen {1 - busy}")[-1] == ["assistant", "Here."]


def test_a_page_whose_connection_breaks_comes_back_and_ends_its_answer(gateway: Hosted, chromium: Browser) -> None:
    body = {"model": "s0", "messages": [{"role": "user", "content": "Hello"}]}
    with chromium.browsing(gateway, f"token={TOKEN}") as browser, ThreadPoolExecutor(1) as pool:
        reply = pool.submit(gateway.post, "/v1/chat/completions", body)
        browser.tell("asked 0")
        browser.tell("broken 0")
        browser.tell("type 0 By hand, after all.")
        assert reply.result(20).json["choices"][0]["message"]["content"] == "By hand, after all."


def test_a_page_with_a_wrong_token_is_refused_and_stays_away(gateway: Hosted, chromium: Browser) -> None:
    with chromium.browsing(gateway, f"token={TOKEN}x") as browser:
        assert browser.states == ["wrong token"]
        refused = gateway.post("/v1/chat/completions", {"model": "s0", "messages": [{"role": "user", "content": "x"}]})
    assert refused.status == 503
    assert "no page connected" in refused.json["error"]["message"]
    assert TOKEN not in refused.body.decode()


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        ("async ({ opened }) => (opened(1), 'Whole.')", "Whole."),
        ("({ opened }) => (opened(1), 'At once.')", "At once."),
        ("async function* ({ opened }) { opened(1); yield 'In '; yield 'pieces.' }", "In pieces."),
        ("function* ({ opened }) { opened(1); yield 'In '; yield 'steps.' }", "In steps."),
        ("async ({ opened }) => (opened(1), (async function* () { yield 'Later.' })())", "Later."),
        ("async ({ opened }) => (opened(1), 42)", "42"),
    ],
)
def test_a_page_may_answer_in_any_way_that_javascript_has(
    gateway: Hosted, chromium: Browser, handler: str, said: str
) -> None:
    with chromium.browsing(gateway, f"token={TOKEN}") as browser:
        browser.tell(f"run 0 bridge.handlers.create = {handler}")
        assert _asked(gateway).json["choices"][0]["message"]["content"] == said


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        ("({ opened }) => { throw new Error('out of credit') }", "out of credit"),
        ("async ({ opened }) => { opened(1); throw 'no more' }", "no more"),
        ("async () => 'nameless'", "sent no id for its new conversation"),
        ("async ({ opened }) => { opened(1) }", "it is empty"),
    ],
)
def test_a_page_that_fails_says_why_and_stays(gateway: Hosted, chromium: Browser, handler: str, words: str) -> None:
    with chromium.browsing(gateway, f"token={TOKEN}") as browser:
        browser.tell(f"run 0 bridge.handlers.create = {handler}")
        failed = _asked(gateway)
        assert failed.status >= 400
        assert words in failed.json["error"]["message"]
        browser.tell("run 0 bridge.handlers.create = async ({ opened }) => (opened(1), 'Well.')")
        assert _asked(gateway).json["choices"][0]["message"]["content"] == "Well."


def _asked(gateway: Hosted) -> Reply:
    return gateway.post("/v1/chat/completions", {"model": "s0", "messages": [{"role": "user", "content": "Hello"}]})


def test_the_example_page_shows_that_its_model_failed(gateway: Hosted, chromium: Browser, server: Upstream) -> None:
    server.play(answer(sse("Wait"), sse({"error": {"message": "out of memory"}})))
    with chromium.browsing(gateway, f"token={TOKEN}&model=writer") as browser:
        assert "out of memory" in _asked(gateway).json["error"]["message"]
        _, head = browser.tell("heads 0")
        assert head.startswith("failed: ")
        assert "out of memory" in head


def test_nobody_is_asked_for_an_answer_that_no_client_waits_for(gateway: Hosted, chromium: Browser) -> None:
    body = {"model": "s0", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    with chromium.browsing(gateway, f"token={TOKEN}") as browser:
        with closing(gateway.send("/v1/chat/completions", body)):
            browser.tell("asked 0")
        browser.tell("unasked 0")
        assert browser.tell("heads 0") == ["request", "failed: the request was cancelled"]


SERVICE = """
globalThis.myService = {
  said: new Map(),
  begin: async () => myService.find(myService.said.set("7", []) && "7"),
  find: (id) => myService.said.has(id) && {
    id,
    async *say(prompt) { myService.said.get(id).push(prompt); yield* myService.said.get(id).join(" | ") },
  },
};
"""
"""What the example of the document calls its own service: it answers with all that a conversation has heard."""


def test_the_script_of_the_document_serves_conversations(gateway: Hosted, chromium: Browser) -> None:
    (script,) = re.findall(r"(?s)```js\n(.*?)```", BRIDGE_DOCUMENT.read_text(encoding="utf-8"))
    script = script.replace("ws://127.0.0.1:8787", gateway.url.replace("http", "ws")).replace('"…"', f'"{TOKEN}"')
    code = b64encode(f"{SERVICE}; (() => {{ {script} }})()".encode("latin-1")).decode()
    with chromium.browsing(gateway, f"token={TOKEN}x") as browser:
        browser.tell(f"run 0 (0, eval)(atob('{code}'))")
        history = [{"role": "user", "content": "one"}]
        for said in ("one", "one | two"):
            reply = gateway.post("/v1/chat/completions", {"model": "s0", "messages": history})
            assert reply.json["choices"][0]["message"]["content"] == said, reply.body
            history += [reply.json["choices"][0]["message"], {"role": "user", "content": "two"}]
