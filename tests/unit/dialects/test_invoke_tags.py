"""Invoke tags beyond the vectors: what the registry sees, results, special tokens, tools without a schema."""

from __future__ import annotations

import json

import pytest

from callwright import Dialect, Parser, collect, get_dialect
from callwright.dialects import find_model_dialect
from callwright.dialects.invoke_tags import DIALECTS as TAGS
from callwright.dialects.xtml import DIALECTS as XTML
from callwright.model import ToolResult
from tests.support.harness import TOOLS, read, told

EVERY = [*TAGS, *XTML]


@pytest.mark.parametrize("family", EVERY, ids=[family.name for family in EVERY])
def test_what_follows_an_opener_is_announced(family: Dialect) -> None:
    text = family.render_call(family.build_sample_call("ping", {}))
    opener = max((opener for opener in family.openers if text.startswith(opener)), key=len)
    assert text.removeprefix(opener).lstrip().startswith(family.body_starts)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("MiniMaxAI/MiniMax-M2.1", "minimax_m2"),
        ("deepseek-ai/DeepSeek-V3.2", "deepseek_v32"),
        ("deepseek-ai/DeepSeek-V4-Flash-0731", "deepseek_v4"),
        ("ai-sage/GigaChat3.5-432B-A28B", "gcml"),
        ("stepfun-ai/step3", "step3"),
        ("stepfun-ai/Step-3.5-Flash", "qwen3_coder"),
        ("openbmb/MiniCPM5-1B", "minicpm5"),
        ("moonshotai/Kimi-K3", "kimi_k3"),
    ],
)
def test_models_find_their_dialect(model: str, name: str) -> None:
    found = find_model_dialect(model)
    assert found is not None
    assert found.name == name


def test_results_look_as_the_templates_write_them() -> None:
    result = ToolResult("call_1", name="ping", content="pong")
    assert get_dialect("minimax_m2").render_result(result) == "<response>pong</response>"
    assert get_dialect("deepseek_v4").render_result(result) == "<tool_result>pong</tool_result>"
    assert get_dialect("kimi_k3").render_result(result).startswith('<|open|>message role="tool" tool="ping"')


def test_a_tag_that_is_no_special_token_is_text() -> None:
    text = get_dialect("kimi_k3").render_call(get_dialect("kimi_k3").build_sample_call("ping", {}))
    parser = Parser(get_dialect("kimi_k3"), TOOLS)
    turn = collect([*parser.feed(text, special=[]), *parser.close()])
    assert (turn.text, turn.tool_calls) == (text, ())


@pytest.mark.parametrize("family", EVERY, ids=[family.name for family in EVERY])
def test_without_tools_every_name_counts_and_values_type_themselves(family: Dialect) -> None:
    given = {"input": "x", "city": "Oslo", "days": 2, "tags": ["a"], "none": None}
    turn = read(family, family.render_call(family.build_sample_call("anything", given)), 3, tools=())
    assert told(turn) == [("anything", given)]


def test_a_key_of_any_kind_survives_xtml() -> None:
    family = get_dialect("kimi_k3")
    given = {'a "b" & &quot;': "v", "c": 1.5, "d": {"e": True}}
    assert told(read(family, family.render_call(family.build_sample_call("ping", given)), 2)) == [("ping", given)]
    assert json.loads(family.build_sample_call("ping", given).arguments) == given
