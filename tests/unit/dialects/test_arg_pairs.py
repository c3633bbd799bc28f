"""What vectors cannot show of the argument pairs: hints about special tokens, tools without a schema."""

from __future__ import annotations

from callwright import Parser, collect, get_dialect
from tests.support.harness import TOOLS, read, told

TOKENS = ("<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")


def test_tags_that_are_known_to_be_no_tokens_are_data() -> None:
    value = "a</arg_value></tool_call><tool_call>ping</tool_call>"
    before = "<tool_call>write_file<arg_key>path</arg_key><arg_value>"
    parser = Parser(get_dialect("glm47"), TOOLS)
    events = parser.feed(before, [before.index(tag) for tag in TOKENS if tag in before])
    events += parser.feed(value, [])
    events += parser.feed("</arg_value></tool_call>", [0, len("</arg_value>")])
    assert told(collect(events + parser.close())) == [("write_file", {"path": value})]


def test_a_tool_that_declares_nothing_takes_any_key_after_a_value_with_an_own_tag() -> None:
    call = get_dialect("glm47").build_sample_call("any", {"a": "see <tool_call> there", "b": 2})
    turn = read(get_dialect("glm47"), get_dialect("glm47").render_call(call), tools=[{"name": "any"}])
    assert told(turn) == [("any", {"a": "see <tool_call> there", "b": 2})]


def test_names_of_parsers_and_models_lead_to_the_dialects() -> None:
    names = {
        "glm45": "glm45",
        "zai-org/GLM-4.6": "glm45",
        "zai-org/GLM-5.3-FP8": "glm47",
        "poolside_v1": "glm47",
        "IQuestLab/IQuest-Q1": "iquest",
        "meituan-longcat/LongCat-2.0": "longcat2",
        "hy_v3": "hy3",
        "tencent/Hy4-preview": "hy4",
        "IFM/K2-Horizon-7B": "k2_horizon",
        "ByteDance-Seed/Seed-OSS-36B-Instruct": "seed_oss",
        "XiaomiMiMo/MiMo-V2.5": "mimo",
        "Qwen/Qwen3-Coder-30B-A3B-Instruct": "qwen3_coder",
    }
    assert {name: get_dialect(name).name for name in names} == names
