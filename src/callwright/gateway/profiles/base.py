"""The definition of a profile: how a client is recognised, and what it needs.

A flag differs from its default only where the client was seen to need it. The module of each client gives the reason
and the version. A reference such as "Copilot Chat 0.66" means that this version was run against a scripted server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from callwright.wire.base import StreamStyle

__all__ = ["ClientEvidence", "Profile"]


class ClientEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """What a request reveals about the client that sent it."""

    headers: Mapping[str, str]
    """Headers of the request, by lower-case name."""
    tools: frozenset[str] = frozenset()
    """Names of the tools that it offers."""
    prompt: str = ""
    """Its first system message."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One client. The first group of fields recognises it, the second defines what it needs."""

    name: str
    description: str
    """One line of help for people who choose a profile."""

    user_agents: tuple[str, ...] = ()
    """Parts of the `User-Agent`, in lower case, that no other client sends."""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    """Headers that only this client sends, each with a prefix of its value. Empty matches any value."""
    tools: frozenset[str] = frozenset()
    """Tools that only this client offers. One of them is enough."""
    prompt_phrases: tuple[str, ...] = ()
    """Phrases that its system prompt contains."""

    style: StreamStyle = StreamStyle()
    """The format of its stream."""
    rules: dict[str, Any] = msgspec.field(default_factory=dict)
    """Changes to the `[tools]` table."""
    prompt: dict[str, Any] = msgspec.field(default_factory=dict)
    """Changes to the `[prompt]` table."""
    backend_status: int = 0
    """Status for backend failures, for a client that hides the message of the usual one. 0 = the usual one."""
    first_byte_seconds: float = 10.0
    """Seconds in which a failing backend still results in an error status. After them the stream is opened to keep the
    client waiting: undici (Copilot Chat, Cline, Continue) gives up 300 s after the request otherwise."""
