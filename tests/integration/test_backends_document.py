"""Every configuration of docs/backends.md and docs/bridge.md answers: its tables, with a server of ours at the address,
or a page of ours on the bridge."""

from __future__ import annotations

import json
import re
import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.integration.chats import TOKEN, ChatService, Pages
from tests.integration.hosted import Hosted, backend, model
from tests.integration.turns import delta, said, spoken
from tests.support.upstream import DONE, Seen, Upstream, answer, sse, whole
from tests.unit.config.test_backends_document import BLOCKS, DOCUMENT

ANSWER = "Good day."
FRAMED = f"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}<|return|>"
CHATS = ("openai", "responses", "anthropic", "ollama")
"""Kinds that a gateway can stand at the other end of."""
ELSEWHERE = {"codex", "embedded", "plugin"}
"""Those that need a program, a model file or a package: their own tests run them."""

(BRIDGE,) = re.findall(r"(?s)```toml\n(.*?)```", DOCUMENT.with_name("bridge.md").read_text(encoding="utf-8"))
DOCUMENTED = [
    *(pytest.param(block, id=title) for title, block in BLOCKS if title.split('"')[1] not in ELSEWHERE),
    pytest.param(BRIDGE + '[[models]]\nname = "m"\nbackend = "pages"\n', id="bridge"),
]


def _served(seen: Seen) -> Any:
    """A server of one's own: it lists a model, and says the same in every API that only takes text."""
    if seen.method == "GET":
        return whole(json.dumps({"data": [{"id": "m"}]}).encode())
    if seen.path.endswith("/conversations"):
        return whole(ANSWER.encode(), headers={"x-conversation-id": "7"})
    harmony = "<|start|>" in seen.json.get("prompt", "")
    return answer(sse({"choices": [{"text": FRAMED if harmony else ANSWER, "finish_reason": "stop"}]}), DONE)


@pytest.mark.parametrize("block", DOCUMENTED)
def test_the_documented_configuration_answers(tmp_path: Path, upstream: Upstream, block: str) -> None:
    tables = tomllib.loads(block)
    first = tables["backends"][0]
    kind, name = first.get("kind", "openai"), tables.get("models", [{"name": "m"}])[0]["name"]
    leaks = any(each.get("dialect") == "harmony" for each in tables.get("models", ()))
    block = re.sub(r"env:\w+", TOKEN, block).replace("sqlite:///", f"sqlite:///{tmp_path}/")
    with ExitStack() as stack:
        place = upstream.url
        if kind in CHATS:
            upstream.play(said(delta(content=FRAMED)) if leaks else spoken(ANSWER))
        else:
            upstream.play(_served)
        if kind in CHATS and not leaks:
            (tmp_path / "far").mkdir()
            tables_of_far = backend("main", upstream.url) + model("m", "main")
            place = stack.enter_context(Hosted(tmp_path / "far", tables_of_far)).url
        block = re.sub(r'(?m)^url = "https?://[^/"]+', f'url = "{place}', block)
        gateway = stack.enter_context(Hosted(tmp_path, block))
        if kind == "conversation" and "url" not in first:
            service = ChatService(lambda heard: ANSWER)
            stack.enter_context(Pages(gateway.url, TOKEN, service, origin=first["origins"][0]))
        body = {"model": "demo" if kind == "scripted" else name, "messages": [{"role": "user", "content": "Hello."}]}
        reply = gateway.post("/v1/chat/completions", body)
    assert reply.status == 200, reply.body
    content = reply.json["choices"][0]["message"]["content"]
    assert content if kind == "scripted" else content == ANSWER
