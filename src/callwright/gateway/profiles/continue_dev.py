"""Continue: editor extensions and the `cn` command line, 1.5.47."""

from __future__ import annotations

from callwright.gateway.profiles.base import Profile

# The user agent has been sent since October 2025 (continuedev/continue pull request 8532), but not by `cn`, which is
# recognised by its prompt. It gives a call without an index empty arguments; ours always have an index.
CONTINUE_DEV = Profile(
    name="continue",
    description="Continue.",
    user_agents=("continue/", "continue-cli/"),
    prompt_phrases=("You are an agent in the Continue CLI",),
)
