"""Access to a running gateway: the URL and key options of commands, and its JSON endpoints."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from callwright.errors import BackendError

if TYPE_CHECKING:
    from callwright.cli.http_client import HttpClient

__all__ = ["add_key_option", "fetch_json", "fetch_models", "get_default_url", "normalize_url"]


def get_default_url() -> str:
    """Return the URL at which `callwright serve` listens on this machine."""
    return f"http://127.0.0.1:{os.environ.get('CALLWRIGHT_PORT') or 8787}"


def normalize_url(text: str) -> str:
    """Turn user input into a base URL: add a missing `http://` and drop a trailing `/v1`."""
    url = text if "://" in text else f"http://{text}"
    return url.rstrip("/").removesuffix("/v1").rstrip("/")


def add_key_option(parser: argparse.ArgumentParser) -> None:
    """Add the key option."""
    parser.add_argument(
        "--key",
        default=os.environ.get("CALLWRIGHT_API_KEY", ""),
        metavar="KEY",
        help="API key of the gateway (default: $CALLWRIGHT_API_KEY)",
    )


async def fetch_json(gateway: HttpClient, path: str) -> Any:
    """Fetch a JSON object from the gateway. Raises `BackendError`, which says what to do."""
    from callwright.cli.http_client import decode_json_or_none

    try:
        reply = await gateway.get(path)
    except BackendError as problem:
        raise BackendError(f"{problem}; start a gateway with: callwright serve", kind="unavailable") from None
    if reply.status in (401, 403):
        raise BackendError(f"{gateway.url} requires a key; pass --key or set $CALLWRIGHT_API_KEY", kind="auth")
    answer = decode_json_or_none(reply)
    if not isinstance(answer, dict):
        raise BackendError(f"{gateway.url}{path} returned HTTP {reply.status}; is this the URL of a gateway?")
    return answer


async def fetch_models(gateway: HttpClient) -> list[dict[str, Any]]:
    """Fetch the models of the gateway. Raises `BackendError` if there are none."""
    entries = (await fetch_json(gateway, "/v1/models")).get("data")
    found = [entry for entry in entries or [] if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
    if not found:
        raise BackendError(f"{gateway.url} has no models; check its configuration and its backends")
    return found
