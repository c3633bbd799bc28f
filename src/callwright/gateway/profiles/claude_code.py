"""Anthropic's Claude Code and the agent SDK built on it, over the Messages API; 2.1.325."""

from __future__ import annotations

from callwright.gateway.profiles.base import Profile
from callwright.wire.base import StreamStyle

CLAUDE_CODE = Profile(
    name="claude-code",
    description="Claude Code (Messages).",
    user_agents=("claude-cli/", "claude-code/"),
    headers={"x-app": "cli", "x-claude-code-session-id": ""},
    tools=frozenset({"DeferredToolPlaceholder"}),
    prompt_phrases=("You are Claude Code, Anthropic's official CLI",),
    # Anthropic's API sends `ping` events itself, so this is the sign of life that its SDKs expect.
    style=StreamStyle(heartbeat="event"),
    # The first line of its system text has a number that is another in every request, which has a local server read
    # the whole prompt anew each time (2.1.36 and later; llama.cpp pull request 20623). It stays where it is: moved to
    # the end it would be the last that the user says. `CLAUDE_CODE_ATTRIBUTION_HEADER=0` leaves it out.
)
