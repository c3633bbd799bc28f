"""What the vectors of the J3 families do not reach: ids when writing, tools not known, announced tokens."""

from __future__ import annotations

import pytest

from callwright import Dialect, Parser, collect, get_dialect
from callwright.events import Event, TextDelta
from callwright.model import ToolCall, ToolResult
from tests.support.harness import TOOLS, drive, read, told

KIMI = get_dialect("kimi_k2")
MISTRAL = get_dialect("mistral")
SECTION = "<|tool_calls_section_begin|>{}<|tool_calls_section_end|>"
CALL = "<|tool_call_begin|>{}<|tool_call_argument_begin|>{{}}<|tool_call_end|>"


def test_kimi_writes_foreign_ids_as_its_own() -> None:
    calls = (ToolCall("call_9", "ping", "{}"), ToolCall("functions.ping:7", "ping", "{}"))
    assert KIMI.render_call(*calls) == SECTION.format(CALL.format("functions.ping:0") + CALL.format("functions.ping:7"))


@pytest.mark.parametrize("header", ["0", ":4", "call_abc", "functions.", ""])
def test_a_kimi_header_without_a_name_is_no_call_when_no_tool_is_known(header: str) -> None:
    text = SECTION.format(CALL.format(header))
    turn = read(KIMI, text, 3, tools=())
    assert (turn.text, turn.tool_calls) == (text, ())


def test_without_known_tools_every_name_counts() -> None:
    text = SECTION.format(CALL.format("functions.anything-at.all:3"))
    assert told(read(KIMI, text, 3, tools=())) == [("anything-at.all", {})]


@pytest.mark.parametrize("name", ["mistral", "kimi_k2", "deepseek_v3", "deepseek_v31", "solar", "plamo3"])
def test_an_unknown_tool_can_be_passed_on(name: str) -> None:
    family = get_dialect(name)
    text = family.render_call(family.build_sample_call("fly", {"to": "Oslo"}))
    assert told(collect(drive(family, [text], unknown_tool="pass"))) == [("fly", {"to": "Oslo"})]


def test_tokens_that_were_not_announced_are_text() -> None:
    parser = Parser(MISTRAL, TOOLS)
    events: list[Event] = parser.feed("[TOOL_CALLS]ping[ARGS]{} ", ())
    events += parser.feed("[TOOL_CALLS]ping[ARGS]{}", (0, 16))
    turn = collect([*events, *parser.close()])
    assert turn.text == "[TOOL_CALLS]ping[ARGS]{} "
    assert told(turn) == [("ping", {})]


def test_a_mention_does_not_hold_the_text_after_it() -> None:
    parser = Parser(MISTRAL, TOOLS)
    parser.feed("The marker [TOOL_CALLS] begins a")
    assert parser.feed(" call.") == [TextDelta(" call.")]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("kimi_k2", "## Return of id1\nsunny"),
        ("mistral", "[TOOL_RESULTS]sunny[/TOOL_RESULTS]"),
        ("functionary31", "sunny"),
        (
            "solar",
            "<|tool_response:begin|>id1<|tool_response:name|>ping<|tool_response:result|>sunny<|tool_response:end|>",
        ),
    ],
)
def test_results_look_as_in_the_template(name: str, expected: str) -> None:
    assert get_dialect(name).render_result(ToolResult("id1", "sunny", "ping")) == expected


@pytest.mark.parametrize(
    ("known_as", "name"),
    [
        ("deepseekv3", "deepseek_v3"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek_v3"),
        ("deepseek-ai/DeepSeek-V3.1-Terminus", "deepseek_v31"),
        ("moonshotai/Kimi-K2-Thinking", "kimi_k2"),
        ("mistralai/Devstral-Small-2507", "mistral"),
        ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistral"),
        ("mistralai/Ministral-3-14B-Reasoning-2512", "mistral"),
        ("upstage/Solar-Open-100B", "solar"),
        ("meetkai/functionary-small-v3.1", "functionary31"),
        ("meetkai/functionary-medium-v3.2", "functionary32"),
        ("pfnet/plamo-3-nict-8b", "plamo3"),
    ],
)
def test_servers_and_models_are_known(known_as: str, name: str) -> None:
    found: Dialect = get_dialect(known_as)
    assert found.name == name
