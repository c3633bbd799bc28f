"""Qwen Code, 0.24.4, over any of three APIs."""

from __future__ import annotations

from callwright.gateway.profiles.base import Profile

# It retries an empty turn by itself, up to four times, and sends tool results as lists of parts.
QWEN_CODE = Profile(
    name="qwen-code",
    description="Qwen Code.",
    user_agents=("qwencode/",),
    prompt_phrases=("You are Qwen Code, an interactive CLI agent",),
)
