"""The default profile: OpenAI's format, strictly, which every client and SDK that was tried accepts."""

from __future__ import annotations

from callwright.gateway.profiles.base import Profile

OPENAI = Profile(
    name="openai",
    description="Any client that follows OpenAI's API. Used when no other client is recognised.",
)
