"""Models: what servers say of the models that they have, read from their own lists. Pure, and never fails on oddities.

Every server has its own name for the window; the table below has them in order of trust. What is allocated counts for
more than what a model was trained on: a server that got more than the first cuts it off without a word. What a server
does not say stays unknown: zero or None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.backends.base import ModelInfo
from callwright.wire.constraint import ConstraintFlavour

__all__ = ["allocated", "listed", "loaded_by_llama", "shown", "slot_window", "tagged"]

_WINDOWS: tuple[tuple[str, ...], ...] = (
    ("max_model_len",),  # vLLM, SGLang
    ("meta", "n_ctx"),  # llama.cpp: what is allocated …
    ("meta", "n_ctx_train"),  # … and what the model was trained on
    ("loaded_context_length",),  # LM Studio
    ("max_input_tokens",),  # Anthropic
    ("context_window",),  # Groq
    ("context_length",),  # OpenRouter, Together
    ("max_context_length",),  # Mistral, LM Studio
)


# The `owned_by` of each entry. LM Studio and SGLang hold answers to OpenAI's `response_format`, and so does Ollama
# behind its `/v1`.
_SERVERS: dict[str, ConstraintFlavour] = {
    "llamacpp": "llamacpp",  # tools/server/server.cpp
    "vllm": "vllm",  # vllm/entrypoints/openai/protocol.py
    "sglang": "openai",  # sglang/srt/entrypoints/openai/protocol.py
    "organization_owner": "openai",  # LM Studio's /v1/models
    "library": "openai",  # ollama/openai/openai.go
}


def listed(answer: Any) -> tuple[ModelInfo, ...]:
    """The models of `GET /models` as OpenAI, Anthropic and those who follow them give it."""
    return tuple(_model(entry) for entry in _entries(answer, "data") if isinstance(entry.get("id"), str))


def tagged(answer: Any) -> tuple[str, ...]:
    """The names of Ollama's `GET /api/tags`."""
    names = (entry.get("model") or entry.get("name") for entry in _entries(answer, "models"))
    return tuple(name for name in names if isinstance(name, str))


def shown(name: str, answer: Any) -> ModelInfo:
    """One model as Ollama's `POST /api/show` describes it. Servers before 0.6.4 name no capabilities."""
    abilities, info = _at(answer, "capabilities"), _at(answer, "model_info")
    trained = (size for key, size in info.items() if key.endswith(".context_length")) if isinstance(info, dict) else ()
    return ModelInfo(
        name=name,
        context=_set_window(_at(answer, "parameters")) or next(filter(_is_size, trained), 0),
        tools=_has(abilities, "tools"),
        vision=_has(abilities, "vision"),
        reasoning=_has(abilities, "thinking"),
    )


def allocated(answer: Any) -> dict[str, int]:
    """The windows of the models that Ollama's `GET /api/ps` has in memory: often 4096, whatever the model could do."""
    entries = _entries(answer, "models")
    sizes = [(entry.get("model") or entry.get("name"), entry.get("context_length", 0)) for entry in entries]
    return {name: size for name, size in sizes if isinstance(name, str) and _is_size(size)}


def loaded_by_llama(answer: Any) -> tuple[str, ...]:
    """The names in a list of models that a llama.cpp server has in memory; one that routes says so of each."""
    entries = [entry for entry in _entries(answer, "data") if entry.get("owned_by") == "llamacpp"]
    loaded = (entry.get("id") for entry in entries if _at(entry, "status", "value") in (None, "loaded"))
    return tuple(name for name in loaded if isinstance(name, str))


def slot_window(answer: Any) -> int:
    """What llama.cpp's `GET /props` says that one conversation has: the window divided among the slots."""
    size = _at(answer, "default_generation_settings", "n_ctx")
    return size if _is_size(size) else 0


def _model(entry: Mapping[str, Any]) -> ModelInfo:
    takes = _at(entry, "supported_parameters")  # OpenRouter
    return ModelInfo(
        name=entry["id"],
        context=next((size for path in _WINDOWS if _is_size(size := _at(entry, *path))), 0),
        tools=_first_flag(_has(takes, "tools"), _at(entry, "capabilities", "function_calling")),  # Mistral
        vision=_first_flag(
            _has(_at(entry, "architecture", "input_modalities"), "image"),  # OpenRouter
            _at(entry, "capabilities", "image_input", "supported"),  # Anthropic
            _at(entry, "capabilities", "vision"),  # Mistral
        ),
        reasoning=_first_flag(_has(takes, "reasoning"), _at(entry, "capabilities", "thinking", "supported")),
        server=_SERVERS.get(str(entry.get("owned_by"))),
    )


def _set_window(parameters: Any) -> int:
    """`num_ctx` from the text of a Modelfile's parameters: `num_ctx    8192`."""
    lines = parameters.splitlines() if isinstance(parameters, str) else []
    values = [line.split()[1] for line in lines if line.startswith("num_ctx") and len(line.split()) == 2]
    return int(values[-1]) if values and values[-1].isdecimal() else 0


def _entries(answer: Any, key: str) -> list[Mapping[str, Any]]:
    entries = _at(answer, key)
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _has(words: Any, word: str) -> bool | None:
    return word in words if isinstance(words, list) else None


def _first_flag(*values: Any) -> bool | None:
    return next((value for value in values if isinstance(value, bool)), None)


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and value > 0
