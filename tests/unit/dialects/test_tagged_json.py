"""What the vectors of the J1 families do not reach."""

from __future__ import annotations

import pytest

from callwright import get_dialect
from tests.support.harness import read, told


def test_objects_may_be_joined_by_commas() -> None:
    turn = read(get_dialect("hermes"), '<tool_call>{"name": "ping"}, {"name": "ping"};</tool_call>', 2)
    assert told(turn) == [("ping", {}), ("ping", {})]
    assert turn.text == ""


def test_json_follows_an_opener() -> None:
    assert get_dialect("hermes").body_starts == ("{", "[")


def test_inkling_without_known_tools_takes_every_name() -> None:
    text = '<|message_model|>look<|content_invoke_tool_json|>{"at": "this"}<|end_message|>'
    assert told(read(get_dialect("inkling"), text, 3, tools=())) == [("look", {"at": "this"})]


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("NousResearch/Hermes-3-Llama-3.1-8B", "hermes"),
        ("Groq/Llama-3-Groq-8B-Tool-Use", "hermes"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama3_json"),
        ("internlm/internlm2_5-7b-chat", "internlm"),
        ("baidu/ERNIE-4.5-21B-A3B-Thinking", "ernie45"),
        ("ai-sage/GigaChat3-10B-A1.8B", "gigachat3"),
        ("thinkingmachines/Inkling-Small", "inkling"),
        ("granite-20b-fc", "granite_20b"),
        ("interns1", "internlm"),
    ],
)
def test_models_and_parsers_find_their_dialect(model: str, name: str) -> None:
    assert get_dialect(model).name == name
