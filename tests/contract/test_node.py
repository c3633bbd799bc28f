"""JavaScript clients against the gateway: the loops of openai-node, the AI SDK, LangChain and VS Code Copilot Chat."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.contract.weather import EXPECTED, MODELS, Chat
from tests.support.npm import LIBRARIES, node
from tests.support.upstream import closed_port

CLIENTS = [
    ("openai_run_tools.mjs", "whole"),
    ("openai_run_tools.mjs", "stream"),
    *(("ai_sdk.mjs", wire, mode) for wire in ("chat", "responses", "messages") for mode in ("stream", "whole")),
    ("langchain.mjs", "chat"),
    ("langchain.mjs", "responses"),
    *(("copilot_chat.mjs", wire) for wire in ("chat", "responses", "messages")),
]

pytestmark = pytest.mark.usefixtures("libraries")


def run(script: str, *arguments: str) -> list[dict[str, Any]]:
    """What a script printed, line by line."""
    command = [str(node()), script, *arguments]
    done = subprocess.run(command, cwd=LIBRARIES, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("client", CLIENTS, ids=" ".join)
def test_a_tool_turn(gateway: str, client: tuple[str, ...]) -> None:
    script, *modes = client
    said = run(script, gateway, ",".join(MODELS), *modes)
    assert not [chat for chat in said if "error" in chat]
    seen = {
        chat["model"]: Chat(chat["text"].strip(), [call["arguments"] for call in chat["calls"]], chat["answer"].strip())
        for chat in said
    }
    assert seen == EXPECTED


def test_a_browser_lets_only_allowed_pages_ask(gateway: str, page_port: int) -> None:
    """The page's headers are those of openai-node, so the browser asks first whether it may send them."""
    other = closed_port()
    [answer] = run("browser.mjs", gateway, "talk", str(page_port), str(other))
    allowed, refused = answer["seen"][str(page_port)], answer["seen"][str(other)]
    assert allowed["status"] == 200
    assert allowed["text"].endswith("data: [DONE]\n\n")
    assert allowed["id"]
    assert allowed["refused"] == 400
    assert refused == {"error": "TypeError: Failed to fetch"}
