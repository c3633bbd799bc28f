"""Find model servers and tell which API each has, by its responses and never by its port alone.

`identify_server` is pure. The probes send the same four requests to every URL at once, so looking for the four usual
servers takes one short timeout, whether they run or not.
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
"""Default URLs of Ollama, llama.cpp, LM Studio and vLLM."""
_PROBE_PATHS = ("/v1/models", "/api/version", "/api/tags", "/props")
_OWNER_LABELS = {"llamacpp": "llama.cpp", "vllm": "vLLM", "organization_owner": "LM Studio", "library": "Ollama"}
"""Values of `owned_by` in the model lists of these servers."""
_OWN_OWNER = "callwright"


class ModelServer(msgspec.Struct, frozen=True, kw_only=True):
    """A model server."""

    label: str
    kind: BackendKind
    url: str
    models: tuple[str, ...]


async def discover_servers(urls: Sequence[str] = LOCAL_URLS, *, seconds: float = 0.3) -> list[ModelServer]:
    """Return the model servers at these URLs, in this order. URLs without a known server are skipped."""
    replies = await asyncio.gather(*(_probe_server(url, "", seconds) for url in urls))
    servers = (identify_server(url, reply) for url, reply in zip(urls, replies, strict=True))
    return [server for server in servers if server]


async def find_server(url: str, *, key: str = "", seconds: float = 5.0) -> ModelServer:
    """Return the model server at this URL. Raises `BackendError`, which says what to do."""
    replies = await _probe_server(url, key, seconds)
    statuses = {reply.status for reply in replies.values() if reply}
    if server := identify_server(url, replies):
        return server
    if not statuses:
        raise BackendError(f"cannot connect to {url}; is the server running?", kind="unavailable")
    if statuses & {401, 403}:
        raise BackendError(f"{url} requires a key; pass it with --backend-key env:NAME", kind="auth")
    hint = "pass --model NAME to use it anyway"
    raise BackendError(f"cannot detect the API of {url}: it has no known model list; {hint}", kind="refused")


async def _probe_server(url: str, key: str, seconds: float) -> dict[str, HttpReply | None]:
    from callwright.cli.http_client import HttpClient

    async with HttpClient(url, key=key, seconds=seconds) as server:
        replies = await asyncio.gather(*(_fetch_or_none(server, path) for path in _PROBE_PATHS))
    return dict(zip(_PROBE_PATHS, replies, strict=True))


async def _fetch_or_none(server: HttpClient, path: str) -> HttpReply | None:
    try:
        return await server.get(path)
    except BackendError:
        return None


def identify_server(url: str, replies: Mapping[str, HttpReply | None]) -> ModelServer | None:
    """Return the server that gives these replies; None if it is no model server, or is a Callwright gateway."""
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
    """Put embedding models last: the first model is the one that examples use."""
    return tuple(sorted(names, key=lambda name: bool(re.search(r"embed|rerank|bge-|minilm", name.lower()))))
