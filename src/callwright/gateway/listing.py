"""Lists the models in the format of each API. Pure.

`/v1/models` has OpenAI's fields and Anthropic's side by side, because clients of both use that path. The Ollama routes
report what Copilot Chat 0.66 requires to offer a model in agent mode: `capabilities` with `tools`, and the context
window under the architecture's name. They omit `general.basename`, which that client would show instead of the name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from callwright.engine import ModelListing
from callwright.errors import RequestError
from callwright.gateway.profiles import split_model_name

__all__ = [
    "build_model_details",
    "build_model_list",
    "build_model_object",
    "build_running_models",
    "build_tags",
    "find_model",
    "iter_model_names",
]

OLLAMA_VERSION = "0.13.5"
"""The version that `/api/version` reports. Copilot Chat 0.66 requires 0.6.4, Codex 0.166 with --oss 0.13.4."""
_ARCHITECTURE = "callwright"


def iter_model_names(models: Iterable[ModelListing]) -> Iterable[tuple[str, ModelListing]]:
    """Yield every model under each of its names, aliases included."""
    return ((name, each) for each in models for name in (each.name, *each.aliases))


def find_model(models: Iterable[ModelListing], name: str) -> tuple[str, ModelListing]:
    """Find a model by name. `:latest`, which Ollama's clients append, and the suffix of a profile are ignored.

    Raises `RequestError` 404 when the model does not exist.
    """
    known = dict(iter_model_names(models))
    for wanted in (name, name.removesuffix(":latest"), split_model_name(name)[0]):
        if wanted in known:
            return wanted, known[wanted]
    raise RequestError(
        f"the model {name!r} does not exist. Available models: {', '.join(known) or 'none'}.",
        param="model",
        status=404,
        code="model_not_found",
    )


def build_model_list(models: Iterable[ModelListing], since: datetime) -> dict[str, Any]:
    """Build the response of `GET /v1/models`."""
    data = [build_model_object(name, each, since) for name, each in iter_model_names(models)]
    return {
        "object": "list",
        "data": data,
        "has_more": False,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
    }


def build_model_object(name: str, listing: ModelListing, since: datetime) -> dict[str, Any]:
    """Build the response of `GET /v1/models/{id}`."""
    return {
        "id": name,
        "object": "model",
        "created": int(since.timestamp()),
        "owned_by": "callwright",
        "type": "model",
        "display_name": name,
        "created_at": since.isoformat(),
        "context_length": listing.context,
        "max_model_len": listing.context,  # vLLM's name for it
    }


def build_tags(models: Iterable[ModelListing], since: datetime) -> dict[str, Any]:
    """Build the response of `GET /api/tags`."""
    return {"models": [_build_tag(name, each, since) for name, each in iter_model_names(models)]}


def build_running_models(models: Iterable[ModelListing], since: datetime) -> dict[str, Any]:
    """Build the response of `GET /api/ps`. It lists all models, loaded by their backend or not."""
    running = {"expires_at": "9999-12-31T23:59:59Z", "size_vram": 0}
    return {"models": [{**_build_tag(name, each, since), **running} for name, each in iter_model_names(models)]}


def build_model_details(listing: ModelListing, since: datetime) -> dict[str, Any]:
    """Build the response of `POST /api/show`."""
    return {
        "modelfile": "",
        "parameters": f"num_ctx {listing.context}",
        "template": "",
        "details": _DETAILS,
        "model_info": {
            "general.architecture": _ARCHITECTURE,
            f"{_ARCHITECTURE}.context_length": listing.context,
        },
        "capabilities": _list_capabilities(listing),
        "modified_at": since.isoformat(),
    }


_DETAILS: dict[str, Any] = {
    "parent_model": "",
    "format": "gguf",
    "family": _ARCHITECTURE,
    "families": [_ARCHITECTURE],
    "parameter_size": "",
    "quantization_level": "",
}


def _build_tag(name: str, listing: ModelListing, since: datetime) -> dict[str, Any]:
    return {
        "name": name,
        "model": name,  # Copilot Chat reads this one, the Ollama extension 0.0.8 the other
        "modified_at": since.isoformat(),
        "size": 0,
        "digest": hashlib.sha256(name.encode()).hexdigest(),
        "details": _DETAILS,
        "capabilities": _list_capabilities(listing),
        "context_length": listing.context,
    }


def _list_capabilities(listing: ModelListing) -> Sequence[str]:
    """List the capabilities of a model. `tools` is always there: the prompt teaches tools to models that lack them."""
    return ["completion", "tools", *["vision"] * bool(listing.vision), *["thinking"] * bool(listing.reasoning)]
