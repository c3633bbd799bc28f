"""What a person sets about the service: where it listens, who may use it, and how much."""

from __future__ import annotations

import msgspec

__all__ = ["DEFAULT_ORIGINS", "KeySettings", "ServerSettings"]

DEFAULT_ORIGINS = ("app://obsidian.md", "capacitor://localhost", "http://localhost")
"""Obsidian on the desktop, on iOS and on Android."""


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[server]` table."""

    host: str = "127.0.0.1"
    """Any other address than loopback needs a key."""
    port: int = 8787
    origins: tuple[str, ...] = DEFAULT_ORIGINS
    """Web origins that browsers may call from; `*` for all."""
    body_bytes: int = 32 * 1024 * 1024
    prompt_characters: int = 8_000_000
    choices: int = 8
    """The largest `n`."""
    streams: int = 1024
    """Turns at once; more are told to come back."""
    heartbeat_seconds: float = 10.0
    """How long a stream may be silent before a sign of life is sent; 0 for never."""
    shutdown_seconds: float = 30.0
    """How long streams may go on when the service is told to stop."""
    telemetry: bool = True
    """A comment at the end of each stream, and headers on whole answers, that say what became of its calls."""
    debug: bool = False
    ledger: str = ""
    """The file that keeps the usage ledger; empty keeps it in memory."""


class KeySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[keys]]` table. 0 is no limit."""

    name: str
    key: str
    """The secret; `env:NAME` takes it from the environment."""
    models: tuple[str, ...] = ()
    """The models that this key may use; empty for all."""
    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    streams: int = 0
    """Turns at once."""
