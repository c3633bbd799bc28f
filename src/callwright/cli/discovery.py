"""Finding model servers: which kind answers at an address, by what it says and never by its port alone.

`identify` is pure. The probes ask every address the same four questions at once, so that looking for the usual four
servers takes one short time-out, whether they are there or not.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from callwright.backends.settings import BackendKind
from callwright.errors import BackendError

if TYPE_CHECKING:
    from callwright.cli.http_client import HttpClient, HttpReply

__all__ = ["LOCAL_URLS", "ModelServer", "discover_servers", "find_server", "identify_server"]

LOCAL_URLS = tuple(f"http://127.0.0.1:{port}" for port in (11434, 8080, 1234, 8000))
"""Where Ollama, llama.cpp, LM Studio and vLLM listen unless they are told otherwise."""
_PROBE_PATHS = ("/v1/models", "/api/version", "/api/tags", "/props")
_OWNER_LABELS = {"llamacpp": "llama.cpp", "vllm": "vLLM", "organization_owner": "LM Studio", "library": "Ollama"}
"""What the servers themselves put into `owned_by`."""
_OWN_OWNER = "callwright"


class ModelServer(msgspec.Struct, frozen=True, kw_only=True):
    """A model server."""

    label: str
    kind: BackendKind
    url: str
    models: tuple[str, ...]


async def discover_servers(urls: Sequence[str] = LOCAL_URLS, *, seconds: float = 0.3) -> list[ModelServer]:
    """The model servers at these addresses, in this order. Silence and anything odd is nobody."""
    replies = await asyncio.gather(*(_probe_server(place, "", seconds) for place in urls))
    found = (identify_server(place, reply) for place, reply in zip(urls, replies, strict=True))
    return [each for each in found if each]


async def find_server(url: str, *, key: str = "", seconds: float = 5.0) -> ModelServer:
    """The model server at that address. Raises `BackendError` with what to do."""
    replies = await _probe_server(url, key, seconds)
    statuses = {reply.status for reply in replies.values() if reply}
    if found := identify_server(url, replies):
        return found
    if not statuses:
        raise BackendError(f"nothing answers at {url}: is the server running?", kind="unavailable")
    if statuses & {401, 403}:
        raise BackendError(f"{url} asks for a key: give it with --backend-key env:NAME", kind="auth")
    hint = "name a model with --model to use it all the same"
    raise BackendError(f"{url} does not list models as any server we know does; {hint}", kind="refused")


async def _probe_server(url: str, key: str, seconds: float) -> dict[str, HttpReply | None]:
    from callwright.cli.http_client import HttpClient

    async with HttpClient(url, key=key, seconds=seconds) as peer:
        replies = await asyncio.gather(*(_fetch_or_none(peer, path) for path in _PROBE_PATHS))
    return dict(zip(_PROBE_PATHS, replies, strict=True))


async def _fetch_or_none(peer: HttpClient, path: str) -> HttpReply | None:
    try:
        return await peer.get(path)
    except BackendError:
        return None


def identify_server(url: str, replies: Mapping[str, HttpReply | None]) -> ModelServer | None:
    """What these answers show; None when they show no model server, or another gateway of ours."""
    listing, version, tags, props = (_decode_object(replies.get(path)) for path in _PROBE_PATHS)
    entries = _list_entries(listing, "data", "id")
    owners = {str(entry.get("owned_by")) for entry in entries or ()}
    if _OWN_OWNER in owners:
        return None
    tagged = _list_entries(tags, "models", "name")
    # LM Studio answers unknown paths with status 200 and an error, so only the content counts. llama.cpp has some of
    # Ollama's paths as well, but owns its models itself.
    if isinstance(version.get("version"), str) and tagged is not None and "llamacpp" not in owners:
        return ModelServer(
            label="Ollama", kind="ollama", url=url, models=_sort_models(entry["name"] for entry in tagged)
        )
    if entries is None:
        return None
    models = _sort_models(entry["id"] for entry in entries)
    if entries and all(entry.get("type") == "model" and "object" not in entry for entry in entries):
        return ModelServer(label="Anthropic", kind="anthropic", url=url, models=models)
    named = next((_OWNER_LABELS[owner] for owner in sorted(owners) if owner in _OWNER_LABELS), "")
    label = named or ("llama.cpp" if "default_generation_settings" in props else "OpenAI-compatible server")
    return ModelServer(label=label, kind="openai", url=f"{url}/v1", models=models)


def _decode_object(reply: HttpReply | None) -> dict[str, Any]:
    from callwright.cli.http_client import decode_json_or_none

    answer = decode_json_or_none(reply) if reply else None
    return answer if isinstance(answer, dict) else {}


def _list_entries(answer: dict[str, Any], key: str, name: str) -> list[dict[str, Any]] | None:
    entries = answer.get(key)
    if not isinstance(entries, list):
        return None
    return [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get(name), str)]


def _sort_models(names: Any) -> tuple[str, ...]:
    """Models that only embed come last: the first one is what people are shown how to use."""
    return tuple(sorted(names, key=lambda name: bool(re.search(r"embed|rerank|bge-|minilm", name.lower()))))
