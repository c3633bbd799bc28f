"""OpenAI's Codex: command line, editor extension and desktop, over the Responses API; 0.166."""

from __future__ import annotations

from callwright.gateway.profiles.base import Profile
from callwright.wire.base import StreamStyle

CODEX = Profile(
    name="codex",
    description="OpenAI Codex (Responses).",
    user_agents=("codex_", "codex-", "codex desktop/"),
    headers={"originator": "codex"},
    # Its idle timer ignores SSE comments (openai/codex issue 31539): only a real event resets it.
    style=StreamStyle(heartbeat="event"),
)
