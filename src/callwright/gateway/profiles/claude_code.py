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
    # Anthropic's API itself sends `ping` events, so its SDKs expect this heartbeat.
    style=StreamStyle(heartbeat="event"),
    # The first line of its system text contains a number that changes with every request, which makes a local server
    # read the whole prompt again (2.1.36 and later; llama.cpp pull request 20623). The line is not moved: at the end it
    # would be the last thing that the user says. `CLAUDE_CODE_ATTRIBUTION_HEADER=0` removes it.
)
