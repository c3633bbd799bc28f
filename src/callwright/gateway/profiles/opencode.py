"""opencode, 1.18.33, over any of three APIs; Obsidian Copilot 4's agent chat runs it too."""

from __future__ import annotations

from callwright.gateway.profiles.base import Profile

# It repeats a request without end when a stream lacks its terminal marker (129 to 280 requests a minute were seen). Our
# encoders always send the marker. The affinity header goes to every provider but opencode's own.
OPENCODE = Profile(
    name="opencode",
    description="opencode.",
    user_agents=("opencode/",),
    headers={"x-opencode-session": "", "x-opencode-client": "", "x-session-affinity": ""},
    prompt_phrases=("You are opencode, an interactive CLI tool",),
)
