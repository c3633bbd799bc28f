"""The default: OpenAI's own shape, strictly, which every client and SDK that was tried takes."""

from __future__ import annotations

from callwright.gateway.profiles.base import Profile

OPENAI = Profile(
    name="openai",
    description="Any client that follows OpenAI's API; what is used when no other client is recognised.",
)
