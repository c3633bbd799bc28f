"""What servers say of their models: every server's own words, and nonsense that must not hurt."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.backends.base import ModelInfo
from callwright.backends.model_lists import (
    parse_loaded_models,
    parse_model_list,
    parse_ollama_model,
    parse_ollama_tags,
    parse_ollama_windows,
    parse_slot_window,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
)
KEYS = (
    "id",
    "model",
    "context_length",
    "owned_by",
    "status",
    "meta",
    "n_ctx",
    "capabilities",
    "architecture",
    "input_modalities",
    "supported_parameters",
    "thinking",
)
ENTRY = st.dictionaries(st.sampled_from(KEYS), JSON)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({}, {}),
        ({"max_model_len": 32768}, {"context": 32768}),
        ({"meta": {"n_ctx_train": 131072}}, {"context": 131072}),
        ({"meta": {"n_ctx_train": 131072, "n_ctx": 8192}}, {"context": 8192}),
        ({"context_window": 8192}, {"context": 8192}),
        ({"max_model_len": None, "context_length": 9}, {"context": 9}),
        ({"max_model_len": "big"}, {}),
        ({"owned_by": "llamacpp"}, {"server": "llamacpp"}),
        ({"owned_by": "vllm"}, {"server": "vllm"}),
        ({"owned_by": "library"}, {"server": "openai"}),
        ({"owned_by": ["vllm"]}, {}),
        ({"owned_by": "system"}, {}),
        ({"max_model_len": -1}, {}),
        (
            {
                "max_input_tokens": 200_000,
                "capabilities": {"image_input": {"supported": True}, "thinking": {"supported": False}},
            },
            {"context": 200_000, "vision": True, "reasoning": False},
        ),
        (
            {"supported_parameters": ["tools", "seed"], "architecture": {"input_modalities": ["text", "image"]}},
            {"tools": True, "vision": True, "reasoning": False},
        ),
        ({"capabilities": {"function_calling": True, "vision": False}}, {"tools": True, "vision": False}),
        ({"capabilities": ["completion"]}, {}),
    ],
)
def test_each_servers_own_words_are_understood(entry: dict[str, Any], expected: dict[str, Any]) -> None:
    assert parse_model_list({"data": [{"id": "m", **entry}]}) == (ModelInfo(name="m", **expected),)


def test_ollama_names_its_models() -> None:
    answer = {"models": [{"name": "a:latest", "model": "a:latest"}, {"name": "b"}, {"size": 3}]}
    assert parse_ollama_tags(answer) == ("a:latest", "b")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            {"capabilities": ["completion", "tools", "thinking"], "model_info": {"qwen3.context_length": 40960}},
            {"context": 40960, "tools": True, "vision": False, "reasoning": True},
        ),
        (
            {"model_info": {"a": 1, "llama.context_length": 8192}, "parameters": 'stop "x"\nnum_ctx      4096\n'},
            {"context": 4096},
        ),
        ({"parameters": "num_ctx many"}, {}),
        ({"model_info": {"llama.context_length": None}}, {}),
        ({}, {}),
    ],
)
def test_ollama_shows_what_a_model_can_do(answer: Any, expected: dict[str, Any]) -> None:
    assert parse_ollama_model("m", answer) == ModelInfo(name="m", **expected)


def test_llama_has_the_models_that_it_loaded() -> None:
    entries = [
        {"id": "only", "owned_by": "llamacpp"},
        {"id": "here", "owned_by": "llamacpp", "status": {"value": "loaded"}},
        {"id": "away", "owned_by": "llamacpp", "status": {"value": "unloaded"}},
        {"id": "else", "owned_by": "vllm"},
    ]
    assert parse_loaded_models({"data": entries}) == ("only", "here")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"default_generation_settings": {"n_ctx": 8192, "params": {}}, "total_slots": 4}, 8192),
        ({"default_generation_settings": {"n_ctx": 0}}, 0),
        ({"error": {"code": 404}}, 0),
        ([], 0),
    ],
)
def test_llama_says_what_one_conversation_has(answer: Any, expected: int) -> None:
    assert parse_slot_window(answer) == expected


@given(JSON | st.fixed_dictionaries({"data": st.lists(ENTRY)}) | st.fixed_dictionaries({"models": st.lists(ENTRY)}))
def test_no_answer_is_too_odd(answer: Any) -> None:
    assert all(isinstance(model.name, str) for model in parse_model_list(answer))
    assert all(isinstance(name, str) for name in (*parse_ollama_tags(answer), *parse_loaded_models(answer)))
    assert all(isinstance(size, int) and size > 0 for size in parse_ollama_windows(answer).values())
    assert parse_slot_window(answer) >= 0
    parse_ollama_model("m", answer)


@given(st.fixed_dictionaries({}, optional={"capabilities": JSON, "model_info": JSON, "parameters": JSON}))
def test_no_show_is_too_odd(answer: Any) -> None:
    assert isinstance(parse_ollama_model("m", answer).context, int)
