"""What a person sets about the service: where it listens, who may use it, and how much."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["DEFAULT_ORIGINS", "KeySettings", "ServerSettings"]

DEFAULT_ORIGINS = ("app://obsidian.md", "capacitor://localhost", "http://localhost")
"""Obsidian on the desktop, on iOS and on Android."""

_Name = Annotated[str, msgspec.Meta(min_length=1)]
_Limit = Annotated[int, msgspec.Meta(ge=1)]
_Quota = Annotated[int, msgspec.Meta(ge=0)]
_Seconds = Annotated[float, msgspec.Meta(ge=0)]


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[server]` table: where the service listens, and how much it takes on."""

    host: _Name = "127.0.0.1"
    """The address to listen on. Any other than loopback needs a key."""
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8787
    """The port to listen on; 0 takes a free one."""
    origins: tuple[str, ...] = DEFAULT_ORIGINS
    """Web origins that browsers may call from; `*` for all."""
    body_bytes: _Limit = 32 * 1024 * 1024
    """The largest body of a request."""
    prompt_characters: _Limit = 8_000_000
    """The longest conversation, all its text together."""
    choices: _Limit = 8
    """The largest `n`."""
    streams: _Limit = 1024
    """Turns at once; more are told to come back."""
    heartbeat_seconds: _Seconds = 10.0
    """How long a stream may be silent before a sign of life is sent; 0 for never."""
    shutdown_seconds: _Seconds = 30.0
    """How long streams may go on when the service is told to stop."""
    telemetry: bool = True
    """A comment at the end of each stream, and headers on whole answers, that say what became of its calls."""
    debug: bool = False
    """Write more into the log: what was decided in each turn, and why."""
    ledger: str = ""
    """The file that keeps the usage ledger; empty keeps it in memory."""


class KeySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[keys]]` table: who may use the service, and how much. 0 is no limit."""

    name: _Name
    """Whose it is; logs and the usage ledger say this name."""
    key: _Name
    """The secret; `env:NAME` takes it from the environment."""
    models: tuple[str, ...] = ()
    """The models that this key may use; empty for all."""
    requests_per_minute: _Quota = 0
    """Requests in any minute."""
    tokens_per_minute: _Quota = 0
    """Tokens in any minute, of prompts and answers together."""
    streams: _Quota = 0
    """Turns at once."""

    def __repr__(self) -> str:
        """Without the secret: this may end in a log or a traceback."""
        return f"KeySettings(name={self.name!r})"
