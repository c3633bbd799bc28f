"""What a profile is: by what a client is recognised, and what is done differently for it.

A flag differs from its default only where the client was seen to need it; the file of each client gives the reason
and the version. References such as "Copilot Chat 0.66" mean: that version was run against a scripted server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from callwright.wire.base import StreamStyle

__all__ = ["ClientEvidence", "Profile"]


class ClientEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """What a request shows of the client that sent it."""

    headers: Mapping[str, str]
    """Names in lower case."""
    tools: frozenset[str] = frozenset()
    """The names of the tools that it offers."""
    prompt: str = ""
    """Its first system message."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One client. The first group of fields recognises it, the second says what it needs."""

    name: str
    description: str
    """One line for a person who chooses."""

    user_agents: tuple[str, ...] = ()
    """Parts of the `User-Agent`, in lower case, that no other client sends."""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    """Headers that only it sends, each with how its value begins; empty for any value."""
    tools: frozenset[str] = frozenset()
    """Tools that only it offers: one of them is enough."""
    prompt_phrases: tuple[str, ...] = ()
    """Phrases of its system prompt."""

    style: StreamStyle = StreamStyle()
    """How its stream is written."""
    rules: dict[str, Any] = msgspec.field(default_factory=dict)
    """What is different for it of the `[tools]` table."""
    prompt: dict[str, Any] = msgspec.field(default_factory=dict)
    """What is different for it of the `[prompt]` table."""
    backend_status: int = 0
    """The status of a failure of the backend, where the client hides the usual one's message. 0: the usual one."""
    first_byte_seconds: float = 10.0
    """Seconds in which a failing backend still becomes a proper error status. After them the stream is opened, so
    that the client sees life: undici (Copilot Chat, Cline, Continue) gives up 300 s after the request otherwise."""
