"""Cline. 3.0.65 offers native tools; 2.18.0 offers none and parses XML out of the text itself."""

from __future__ import annotations

from callwright.gateway.profiles.base import Profile

# Requests without tools pass through for every client, which is what 2.18.0 needs. `<attempt_completion>` is also in
# the prompt of Roo Code, which behaved the same.
CLINE = Profile(
    name="cline",
    description="Cline 3, and Cline 2 and Roo Code, which parse XML themselves.",
    user_agents=("cline/", "roocode/"),
    headers={"x-title": "Cline"},
    # 3.0.65 sends no header of its own, but those of the AI SDK.
    prompt_phrases=("<attempt_completion>", "You are Cline, an AI coding agent"),
)
