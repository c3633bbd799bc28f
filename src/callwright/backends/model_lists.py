"""Parses the model lists of servers. Pure, and never fails on unexpected values.

Every server has its own name for the context window; the table lists them in order of trust. The allocated window
counts for more than the one that the model was trained with, because servers silently truncate prompts that exceed it.
What a server does not report stays unknown: zero or None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.backends.base import ModelInfo
from callwright.wire.constraint import ConstraintFlavour

__all__ = [
    "parse_loaded_models",
    "parse_model_list",
    "parse_ollama_model",
    "parse_ollama_tags",
    "parse_ollama_windows",
    "parse_slot_window",
]

_WINDOW_PATHS: tuple[tuple[str, ...], ...] = (
    ("max_model_len",),  # vLLM, SGLang
    ("meta", "n_ctx"),  # llama.cpp: the allocated window …
    ("meta", "n_ctx_train"),  # … and the one that the model was trained with
    ("loaded_context_length",),  # LM Studio
    ("max_input_tokens",),  # Anthropic
    ("context_window",),  # Groq
    ("context_length",),  # OpenRouter, Together
    ("max_context_length",),  # Mistral, LM Studio
)


# Servers by the `owned_by` of each entry. LM Studio and SGLang constrain answers by OpenAI's `response_format`, and so
# does Ollama on its `/v1`.
_SERVER_FLAVOURS: dict[str, ConstraintFlavour] = {
    "llamacpp": "llamacpp",  # tools/server/server.cpp
    "vllm": "vllm",  # vllm/entrypoints/openai/protocol.py
    "sglang": "openai",  # sglang/srt/entrypoints/openai/protocol.py
    "organization_owner": "openai",  # LM Studio's /v1/models
    "library": "openai",  # ollama/openai/openai.go
}


def parse_model_list(answer: Any) -> tuple[ModelInfo, ...]:
    """Parse `GET /models` in the format of OpenAI, Anthropic and compatible servers."""
    return tuple(_parse_model(entry) for entry in _get_entries(answer, "data") if isinstance(entry.get("id"), str))


def parse_ollama_tags(answer: Any) -> tuple[str, ...]:
    """Parse the names in Ollama's `GET /api/tags`."""
    names = (entry.get("model") or entry.get("name") for entry in _get_entries(answer, "models"))
    return tuple(name for name in names if isinstance(name, str))


def parse_ollama_model(name: str, answer: Any) -> ModelInfo:
    """Parse one model of Ollama's `POST /api/show`. Servers before 0.6.4 report no capabilities."""
    capabilities, info = _get_path(answer, "capabilities"), _get_path(answer, "model_info")
    trained = (size for key, size in info.items() if key.endswith(".context_length")) if isinstance(info, dict) else ()
    return ModelInfo(
        name=name,
        context=_parse_num_ctx(_get_path(answer, "parameters")) or next(filter(_is_size, trained), 0),
        tools=_has_item(capabilities, "tools"),
        vision=_has_item(capabilities, "vision"),
        reasoning=_has_item(capabilities, "thinking"),
    )


def parse_ollama_windows(answer: Any) -> dict[str, int]:
    """Parse the windows in Ollama's `GET /api/ps`: models in memory often have 4096, whatever they support."""
    entries = _get_entries(answer, "models")
    sizes = [(entry.get("model") or entry.get("name"), entry.get("context_length", 0)) for entry in entries]
    return {name: size for name, size in sizes if isinstance(name, str) and _is_size(size)}


def parse_loaded_models(answer: Any) -> tuple[str, ...]:
    """List the models that a llama.cpp server has in memory. A routing server reports a status for each."""
    entries = [entry for entry in _get_entries(answer, "data") if entry.get("owned_by") == "llamacpp"]
    loaded = (entry.get("id") for entry in entries if _get_path(entry, "status", "value") in (None, "loaded"))
    return tuple(name for name in loaded if isinstance(name, str))


def parse_slot_window(answer: Any) -> int:
    """Parse the window of one slot from llama.cpp's `GET /props`, which divides the window among its slots."""
    size = _get_path(answer, "default_generation_settings", "n_ctx")
    return size if _is_size(size) else 0


def _parse_model(entry: Mapping[str, Any]) -> ModelInfo:
    parameters = _get_path(entry, "supported_parameters")  # OpenRouter
    return ModelInfo(
        name=entry["id"],
        context=next((size for path in _WINDOW_PATHS if _is_size(size := _get_path(entry, *path))), 0),
        tools=_find_flag(
            _has_item(parameters, "tools"), _get_path(entry, "capabilities", "function_calling")
        ),  # Mistral
        vision=_find_flag(
            _has_item(_get_path(entry, "architecture", "input_modalities"), "image"),  # OpenRouter
            _get_path(entry, "capabilities", "image_input", "supported"),  # Anthropic
            _get_path(entry, "capabilities", "vision"),  # Mistral
        ),
        reasoning=_find_flag(
            _has_item(parameters, "reasoning"), _get_path(entry, "capabilities", "thinking", "supported")
        ),
        server=_SERVER_FLAVOURS.get(str(entry.get("owned_by"))),
    )


def _parse_num_ctx(parameters: Any) -> int:
    """Parse `num_ctx` from the parameters of a Modelfile, a text such as `num_ctx    8192`."""
    lines = parameters.splitlines() if isinstance(parameters, str) else []
    values = [line.split()[1] for line in lines if line.startswith("num_ctx") and len(line.split()) == 2]
    return int(values[-1]) if values and values[-1].isdecimal() else 0


def _get_entries(answer: Any, key: str) -> list[Mapping[str, Any]]:
    entries = _get_path(answer, key)
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _get_path(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _has_item(items: Any, item: str) -> bool | None:
    return item in items if isinstance(items, list) else None


def _find_flag(*values: Any) -> bool | None:
    return next((value for value in values if isinstance(value, bool)), None)


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and value > 0
