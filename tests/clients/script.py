"""What the model says to a coding agent: write a file, read a file, tell what it said. Lines for a scripted backend."""

from __future__ import annotations

import json
from typing import Any

from tests.clients.agents import Run, Tool

TASK = "Write hello.txt, then read secret.txt and tell me what it says."
ANSWER = "Done. The file says: ${result}"


def script(run: Run) -> str:
    """The turns of one run, as JSON lines. Turns are chosen by what the conversation holds: clients ask for titles in
    between, ask twice, and go on after the answer."""
    turns = _reads_text(run) if run.agent.answer else _offers_tools(run)
    return "".join(json.dumps(turn, ensure_ascii=False) + "\n" for turn in turns)


def _offers_tools(run: Run) -> list[dict[str, Any]]:
    agent = run.agent
    return [
        {"when": {"tools": False}, "steps": [{"text": "A short title"}]},
        {"when": {"results_from": 2}, "steps": [{"text": ANSWER}]},
        {"when": {"results": 1}, "steps": [_say(run, agent.read)]},
        {"when": {"user": "secret.txt"}, "steps": [{"text": "First the file.\n"}, _say(run, agent.write)]},
        {"steps": [{"text": "There is nothing to do."}]},
    ]


def _reads_text(run: Run) -> list[dict[str, Any]]:
    """For a client that offers no tools and finds calls in the text: its results are words of the user's."""
    agent = run.agent
    assert agent.answer
    return [
        {"when": {"user": f"[{agent.read.name} for"}, "steps": [_say(run, agent.answer)]},
        {"when": {"user": f"[{agent.write.name} for"}, "steps": [_say(run, agent.read)]},
        {"steps": [{"text": "First the file.\n"}, _say(run, agent.write)]},
    ]


def _say(run: Run, tool: Tool) -> dict[str, Any]:
    return {"say": {"name": tool.name, "arguments": tool.arguments, "anyway": True}, "dialect": run.dialect}
