"""A conversation that grows keeps its beginning, byte for byte, so that the server's prompt cache holds (P-15).

Ten rounds go through the gateway; what the model's server received in each must go on from what it received before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from callwright.dialects import REGISTRY
from callwright.model import ToolCall
from tests.integration.hosted import Hosted, backend, model
from tests.integration.turns import call, said, spoken, text
from tests.integration.wires import QUESTION, TOOLS
from tests.support.sampling import sample_rows
from tests.support.upstream import Script, Upstream

ROUNDS = 10
HERMES = REGISTRY["hermes"]
OFFERED = [{"type": "function", "function": {"name": name, "parameters": each}} for name, each in TOOLS.items()]
PROFILES = ["openai", "copilot", "claude-code", "kilocode", "kilocode-xml", "obsidian-xml", "cline", "codex"]
MODELS: dict[str, dict[str, Any]] = {
    "native": {"tools": "native"},
    "native, strict roles": {"tools": "native", "history": {"roles": "strict"}},
    "native, folded": {"tools": "native", "prompt": {"system": "fold"}},
    "native, final answer": {"tools": "native", "prompt": {"final_answer": "call", "house_rules": "Be kind."}},
    "taught": {"tools": "taught"},
    "taught, strict roles": {"tools": "taught", "history": {"roles": "strict"}},
    "taught, as code": {"tools": "taught", "prompt": {"teach": "code"}},
    "taught, folded": {"tools": "taught", "prompt": {"system": "fold", "redundant_system": True}},
    "taught, told again": {"tools": "taught", "prompt": {"reteach_after": 4}},
    "taught, folded and told again": {"tools": "taught", "prompt": {"system": "fold", "reteach_after": 3}},
    "taught, own templates": {"tools": "taught", "prompt": {"system": "fold", "reteach_after": 5, "templates": "OWN"}},
    "taught, one tool of two": {"tools": "taught", "tool_limits": {"max_tools": 1, "trim_schemas": True}},
    "constrained": {"tools": "constrained", "backend": "llamacpp"},
    "constrained, folded and told again": {
        "tools": "constrained",
        "backend": "llamacpp",
        "prompt": {"system": "fold", "reteach_after": 3},
    },
    "constrained to an object": {"tools": "constrained", "backend": "openai"},
}


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with Upstream([]) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, server: Upstream) -> Iterator[Hosted]:
    folder: Path = tmp_path_factory.mktemp("gateway")
    own = folder / "own"
    own.mkdir()
    (own / "results.j2").write_text("{% for one in results %}{{ one.name }}: {{ one.text }}\n{% endfor %}{{ tools }}\n")
    tables = [backend("main", server.url)]
    tables += [backend(flavour, server.url, constrain=flavour) for flavour in ("llamacpp", "openai")]
    for name, settings in MODELS.items():
        values = json.loads(json.dumps(settings).replace('"OWN"', json.dumps(str(own))))
        tables.append(model(name, values.pop("backend", "main"), dialect="hermes", **values))
    with Hosted(folder, "".join(tables)) as gateway:
        yield gateway


def native(number: int) -> Script:
    arguments = json.dumps({"city": f"Oslo {number}"})
    return said(*text("Let me see."), call(0, arguments, id=f"call_{number}", name="get_weather"), reason="tool_calls")


def written(number: int) -> Script:
    made = ToolCall("", "get_weather", json.dumps({"city": f"Oslo {number}"}))
    return spoken(f"Let me see.\n{HERMES.render_call(made)}")


def an_object(number: int) -> Script:
    return spoken(json.dumps({"name": "get_weather", "arguments": {"city": f"Oslo {number}"}}))


def answers(name: str) -> Callable[[int], Script]:
    return native if name.startswith("native") else an_object if name.endswith("object") else written


def conversation(gateway: Hosted, server: Upstream, name: str, profile: str) -> list[dict[str, Any]]:
    """The bodies that the server got in ten rounds; the client sends back what it was told."""
    system = {"role": "system", "content": "You are an agent.\n<instructions>Be brief.</instructions>"}
    history: list[dict[str, Any]] = [system, {"role": "user", "content": QUESTION}]
    before = len(server.requests)
    for number in range(ROUNDS):
        server.play(answers(name)(number))
        reply = gateway.post(
            "/v1/chat/completions",
            {"model": name, "messages": history, "tools": OFFERED},
            x_callwright_profile=profile,
        )
        assert reply.status == 200, reply.body
        message = reply.json["choices"][0]["message"]
        (made,) = message["tool_calls"]
        assert json.loads(made["function"]["arguments"]) == {"city": f"Oslo {number}"}
        history += [message, {"role": "tool", "tool_call_id": made["id"], "content": f"{number} °C"}]
        if number == ROUNDS // 2:
            history += [{"role": "user", "content": "And tomorrow?"}]
    return [msgspec.json.decode(seen.body) for seen in server.requests[before:]]


@pytest.mark.parametrize(("name", "profile"), sample_rows(list(MODELS), list(PROFILES)))
def test_ten_rounds_keep_their_beginning(gateway: Hosted, server: Upstream, name: str, profile: str) -> None:
    bodies = conversation(gateway, server, name, profile)
    assert len(bodies) == ROUNDS
    for earlier, later in pairwise(bodies):
        told = json.dumps(earlier.pop("messages"))
        assert json.dumps(later["messages"]).startswith(told.removesuffix("]"))
        rest = {key: value for key, value in later.items() if key != "messages"}
        assert rest == earlier, "the tools, and what an answer is held to, are the same"


def test_tools_are_told_again_and_again(gateway: Hosted, server: Upstream) -> None:
    *_, last = conversation(gateway, server, "taught, told again", "openai")
    lessons = [message for message in last["messages"] if "You can call these tools" in str(message["content"])]
    assert len(lessons) == 4
