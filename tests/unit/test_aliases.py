"""The names by which people and servers know a dialect."""

from __future__ import annotations

import pytest

from callwright import get_dialect
from callwright.dialects import REGISTRY, find_model_dialect
from callwright.errors import MisuseError


@pytest.mark.parametrize(
    ("parser", "name"),
    [
        # vLLM's --tool-call-parser values
        ("granite", "granite3"),
        ("granite-20b-fc", "granite_20b"),
        ("granite4", "hermes"),
        ("hunyuan_a13b", "hunyuan"),
        ("llama4_json", "llama3_json"),
        ("llama4_pythonic", "pythonic"),
        ("minimax", "minimax_m1"),
        ("openai", "harmony"),
        ("phi4_mini_json", "functools"),
        ("qwen3_xml", "qwen3_coder"),
        ("step3p5", "qwen3_coder"),
        # SGLang's
        ("deepseekv3", "deepseek_v3"),
        ("deepseekv31", "deepseek_v31"),
        ("deepseekv32", "deepseek_v32"),
        ("glm", "glm45"),
        ("gpt-oss", "harmony"),
        ("interns1", "internlm"),
        ("llama3", "llama3_json"),
        ("minimax-m2", "minimax_m2"),
        ("qwen25", "hermes"),
        ("trinity", "hermes"),
    ],
)
def test_parser_names_of_servers(parser: str, name: str) -> None:
    assert get_dialect(parser).name == name


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("openai/gpt-oss-20b", "harmony"),
        ("Qwen/Qwen3-32B", "hermes"),
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct", "qwen3_coder"),
        ("qwen2.5-coder:7b", "hermes"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama3_json"),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "pythonic"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral_old"),
        ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistral"),
        ("moonshotai/Kimi-K2-Instruct", "kimi_k2"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek_v3"),
        ("deepseek-ai/DeepSeek-V3.1", "deepseek_v31"),
        ("deepseek-ai/DeepSeek-V3.2", "deepseek_v32"),
        ("zai-org/GLM-4.6", "glm45"),
        ("zai-org/GLM-4.7", "glm47"),
        ("MiniMaxAI/MiniMax-M2", "minimax_m2"),
        ("ibm-granite/granite-4.2-8b", "qwen3_coder"),
        ("google/gemma-4-31B-it", "gemma4"),
        ("google/functiongemma-270m-it", "functiongemma"),
        ("CohereForAI/c4ai-command-r7b-12-2024", "cohere"),
        ("CohereForAI/c4ai-command-r-plus", "cohere_r"),
        ("baidu/ERNIE-4.5-21B-A3B-Thinking", "ernie45"),
    ],
)
def test_model_names(model: str, name: str) -> None:
    found = find_model_dialect(model)
    assert found is not None
    assert found.name == get_dialect(model).name == name


def test_a_parser_name_belongs_to_one_dialect() -> None:
    owners: dict[str, list[str]] = {}
    for one in REGISTRY.values():
        for parser in one.parsers:
            owners.setdefault(parser, []).append(one.name)
    assert not {parser: names for parser, names in owners.items() if len(names) > 1}
    assert not {parser: names for parser, names in owners.items() if parser in REGISTRY and names != [parser]}


def test_ids_may_be_written_with_dashes() -> None:
    assert get_dialect("kimi-k2") is get_dialect("kimi_k2")


def test_an_unknown_name_is_an_error_that_lists_the_known_ones() -> None:
    assert find_model_dialect("nobody-knows-this") is None
    with pytest.raises(MisuseError, match=r"'nobody-knows-this'; the dialects are: .*\bhermes\b"):
        get_dialect("nobody-knows-this")
