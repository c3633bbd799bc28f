"""GitHub Copilot Chat in VS Code, by custom endpoint or as an Ollama server; chat-lib 0.66 and extension 0.42."""

from __future__ import annotations

from callwright.gateway.profiles.base import Profile
from callwright.wire.base import StreamStyle

COPILOT = Profile(
    name="copilot",
    description="GitHub Copilot Chat in VS Code.",
    user_agents=("githubcopilotchat/",),
    headers={"x-vscode-user-agent-library-version": "", "x-onbehalf-extension-id": ""},
    tools=frozenset({"insert_edit_into_file", "replace_string_in_file"}),
    prompt_phrases=("working with a user in the VS Code editor",),
    # 0.42 reads only `cot_summary`, 0.66 the first field that is not empty: both show the reasoning once.
    style=StreamStyle(reasoning_fields=("cot_summary", "reasoning_content")),
    # 0.66 hides the body of 500, 501, 502, 504 and 529 and reports 503 as a rate limit; it shows the body of a 424.
    backend_status=424,
)
