"""What the vectors of the array families do not show: results, ids, and what a list must hold to be one of calls."""

from __future__ import annotations

import json

import pytest

from callwright import Dialect, Parser, collect, get_dialect
from callwright.dialects.json_array import DIALECTS
from callwright.model import ToolResult
from tests.support.harness import read, told


def test_cohere_shows_results_as_json() -> None:
    shown = get_dialect("cohere").render_result(ToolResult("0", 'say "4"\n', "get_weather"))
    body = shown.removeprefix("<|START_TOOL_RESULT|>").removesuffix("<|END_TOOL_RESULT|>")
    assert json.loads(body) == [{"tool_call_id": "0", "results": {"0": 'say "4"\n'}, "is_error": None}]


def test_other_results_are_shown_as_they_are() -> None:
    assert get_dialect("nemotron").render_result(ToolResult("0", "4", "f")) == "<TOOL_RESPONSE>[4]</TOOL_RESPONSE>"


def test_ids_have_the_form_that_the_models_write() -> None:
    assert len(get_dialect("mistral_old").make_call_id("f", 3)) == 9
    assert get_dialect("mistral_old").make_call_id("f", 3).isalnum()
    assert get_dialect("cohere").make_call_id("f", 3) == "3"


def test_command_r_is_told_from_react_by_its_fence() -> None:
    assert "```" in get_dialect("cohere_r").body_starts


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral_old"),
        ("mistralai/Mistral-Large-Instruct-2407", "mistral_old"),
        ("ibm-granite/granite-3.1-8b-instruct", "granite3"),
        ("ai21labs/AI21-Jamba-1.5-Mini", "jamba"),
        ("tencent/Hunyuan-A13B-Instruct", "hunyuan"),
        ("ServiceNow-AI/Apriel-1.6-15b-Thinker", "apriel"),
        ("nvidia/NVIDIA-Nemotron-Nano-9B-v2", "nemotron"),
        ("nvidia/Llama-3_3-Nemotron-Super-49B-v1", "nemotron"),
        ("microsoft/Phi-4-mini-instruct", "functools"),
        ("CohereForAI/c4ai-command-r7b-12-2024", "cohere"),
        ("CohereLabs/c4ai-command-a-03-2025", "cohere"),
        ("CohereForAI/c4ai-command-r-plus", "cohere_r"),
        ("swiss-ai/Apertus-8B-Instruct-2509", "apertus"),
        ("Salesforce/Llama-xLAM-2-8b-fc-r", "xlam"),
    ],
)
def test_model_names(model: str, name: str) -> None:
    assert get_dialect(model).name == name


def test_every_call_of_a_list_is_read_when_no_tools_are_known() -> None:
    turn = read(get_dialect("xlam"), '[{"name": "a", "arguments": {}}, {"name": "b", "arguments": {"x": 1}}]', tools=[])
    assert told(turn) == [("a", {}), ("b", {"x": 1})]


def test_directly_answer_is_a_call_when_a_tool_has_that_name() -> None:
    tools = [{"type": "function", "function": {"name": "directly-answer", "parameters": {}}}]
    text = 'Action:\n```json\n[{"tool_name": "directly-answer", "parameters": {}}]```'
    assert told(read(get_dialect("cohere_r"), text, tools=tools)) == [("directly-answer", {})]


@pytest.mark.parametrize("given", DIALECTS, ids=lambda given: given.name)
def test_text_after_a_list_is_not_kept_in_memory(given: Dialect) -> None:
    parser = Parser(given, [{"type": "function", "function": {"name": "ping"}}])
    parser.feed(given.render_call(given.build_sample_call("ping", {})) + "\n")
    events = [event for _ in range(3) for event in parser.feed("words and words ")]
    assert parser._source.end_capture() == ""
    assert collect([*events, *parser.close()]).text.split()
