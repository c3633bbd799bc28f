"""Every kind of backend, set up as docs/backends.md says, answers: its tables, with a server of ours at the address."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.integration.hosted import Hosted, backend, model
from tests.integration.turns import spoken
from tests.unit.config.test_backends_document import BLOCKS
from tests.upstream import DONE, Seen, Upstream, answer, sse, whole

ANSWER = "Good day."
FIRST = {title.split('"')[1]: block for title, block in reversed(BLOCKS)}
"""The first configuration of each section."""
ELSEWHERE = {"codex", "embedded"}
"""Those that need a program or a model file: their own tests run them."""


def _served(seen: Seen) -> Any:
    """A server of one's own: it lists a model, and says the same in every API that only takes text."""
    if seen.method == "GET":
        return whole(json.dumps({"data": [{"id": "m"}]}).encode())
    if seen.path.endswith("/conversations"):
        return whole(ANSWER.encode(), headers={"x-conversation-id": "7"})
    harmony = "<|start|>" in seen.json.get("prompt", "")
    said = f"<|channel|>final<|message|>{ANSWER}<|return|>" if harmony else ANSWER
    return answer(sse({"choices": [{"text": said, "finish_reason": "stop"}]}), DONE)


@pytest.mark.parametrize("kind", sorted(FIRST.keys() - ELSEWHERE))
def test_the_documented_configuration_answers(tmp_path: Path, upstream: Upstream, kind: str) -> None:
    block = re.sub(r"env:\w+", "a-secret-of-some-length", FIRST[kind]).replace("sqlite:///", f"sqlite:///{tmp_path}/")
    (tmp_path / "far").mkdir()
    with Hosted(tmp_path / "far", backend("main", upstream.url) + model("m", "main")) as far:
        speaks_chat = kind in ("openai", "responses", "anthropic", "ollama")
        upstream.play(spoken(ANSWER) if speaks_chat else _served)
        place = far.url if speaks_chat else upstream.url
        tables = re.sub(r'(?m)^url = "https?://[^/"]+', f'url = "{place}', block)
        with Hosted(tmp_path, tables) as gateway:
            name = tomllib.loads(block).get("models", [{"name": "demo" if kind == "scripted" else "m"}])[0]["name"]
            body = {"model": name, "messages": [{"role": "user", "content": "Hello."}]}
            reply = gateway.post("/v1/chat/completions", body)
    assert reply.status == 200, reply.body
    said = reply.json["choices"][0]["message"]["content"]
    assert said if kind == "scripted" else said == ANSWER
