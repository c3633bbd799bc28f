"""A running gateway: its address and key as options of a command, and what it says of itself."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from callwright.errors import BackendError

if TYPE_CHECKING:
    from callwright.cli.http_client import HttpClient

__all__ = ["add_key_option", "fetch_json", "fetch_models", "get_default_url", "normalize_url"]


def get_default_url() -> str:
    """Where `callwright serve` listens on this machine."""
    return f"http://127.0.0.1:{os.environ.get('CALLWRIGHT_PORT') or 8787}"


def normalize_url(text: str) -> str:
    """An address as people write it, as an address: without a scheme it is `http`, without its API's path the root."""
    url = text if "://" in text else f"http://{text}"
    return url.rstrip("/").removesuffix("/v1").rstrip("/")


def add_key_option(parser: argparse.ArgumentParser) -> None:
    """Add the key option."""
    parser.add_argument(
        "--key",
        default=os.environ.get("CALLWRIGHT_API_KEY", ""),
        metavar="KEY",
        help="the gateway's key, if it has one ($CALLWRIGHT_API_KEY)",
    )


async def fetch_json(gateway: HttpClient, path: str) -> Any:
    """What the gateway answers there; a sentence when it does not."""
    from callwright.cli.http_client import decode_json_or_none

    try:
        reply = await gateway.get(path)
    except BackendError as problem:
        raise BackendError(f"{problem}; start a gateway with: callwright serve", kind="unavailable") from None
    if reply.status in (401, 403):
        raise BackendError(f"{gateway.url} asks for a key: give it with --key or in $CALLWRIGHT_API_KEY", kind="auth")
    answer = decode_json_or_none(reply)
    if not isinstance(answer, dict):
        raise BackendError(f"{gateway.url}{path} answers with status {reply.status}: is that address a gateway's?")
    return answer


async def fetch_models(gateway: HttpClient) -> list[dict[str, Any]]:
    """The models that it serves, at least one."""
    entries = (await fetch_json(gateway, "/v1/models")).get("data")
    found = [entry for entry in entries or [] if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
    if not found:
        raise BackendError(f"{gateway.url} lists no models: see what it was started with, or name one with --model")
    return found
