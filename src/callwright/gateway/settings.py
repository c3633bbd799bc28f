"""Settings of the service: the `[server]` and `[[keys]]` tables."""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["DEFAULT_ORIGINS", "KeySettings", "ServerSettings"]

DEFAULT_ORIGINS = ("app://obsidian.md", "capacitor://localhost", "http://localhost")
"""Origins of Obsidian on the desktop, on iOS and on Android."""

_Name = Annotated[str, msgspec.Meta(min_length=1)]
_Limit = Annotated[int, msgspec.Meta(ge=1)]
_Quota = Annotated[int, msgspec.Meta(ge=0)]
_Seconds = Annotated[float, msgspec.Meta(ge=0)]


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `[server]` table: the address to listen on, and the limits of the service."""

    host: _Name = "127.0.0.1"
    """The address to listen on. Any address but loopback requires a key."""
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8787
    """The port to listen on. 0 = any free port."""
    origins: tuple[str, ...] = DEFAULT_ORIGINS
    """Web origins that browsers may send requests from; `*` allows all."""
    body_bytes: _Limit = 32 * 1024 * 1024
    """Maximum size of a request body, in bytes."""
    prompt_characters: _Limit = 8_000_000
    """Maximum length of a conversation: the characters of all its messages."""
    choices: _Limit = 8
    """Maximum value of a request's `n`, the number of choices."""
    streams: _Limit = 1024
    """Maximum number of turns at a time. Further requests get status 429 with `Retry-After`."""
    heartbeat_seconds: _Seconds = 10.0
    """Seconds without output after which a stream sends a heartbeat. 0 = never."""
    shutdown_seconds: _Seconds = 30.0
    """Seconds that running turns may take to finish when the service stops."""
    telemetry: bool = True
    """Report tool calls to the client: a comment at the end of each stream, headers on responses that are not
    streamed."""
    debug: bool = False
    """Log the decisions of each turn and the reason for each."""


class KeySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[keys]]` table: an API key and its limits. A limit of 0 means no limit."""

    name: _Name
    """The owner of the key. Logs and `callwright usage` show this name."""
    key: _Name
    """The secret. `env:NAME` reads it from an environment variable."""
    models: tuple[str, ...] = ()
    """Models that this key may use. Empty = all."""
    requests_per_minute: _Quota = 0
    """Maximum number of requests in any 60 seconds."""
    tokens_per_minute: _Quota = 0
    """Maximum number of tokens in any 60 seconds, prompts and answers together."""
    streams: _Quota = 0
    """Maximum number of turns at a time."""

    def __repr__(self) -> str:
        """Leave out the secret: the result may end in a log or a traceback."""
        return f"KeySettings(name={self.name!r})"
