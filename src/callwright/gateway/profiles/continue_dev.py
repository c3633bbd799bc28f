"""Continue: editor extensions and the `cn` command line, 1.5.47."""

from __future__ import annotations

from callwright.gateway.profiles.base import Profile

# The user agent has been sent since October 2025 (continuedev/continue pull request 8532), but not by `cn`, which is
# known by its prompt. A call without an index silently gets empty arguments there; ours are always numbered.
CONTINUE_DEV = Profile(
    name="continue",
    description="Continue.",
    user_agents=("continue/", "continue-cli/"),
    prompt_phrases=("You are an agent in the Continue CLI",),
)
