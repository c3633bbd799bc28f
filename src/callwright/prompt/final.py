"""The final answer as a tool: for models that do better when every answer is a call.

What the model gives to it reaches the client as text; `guard.final_answer` sees to that.
"""

from __future__ import annotations

import msgspec

from callwright.model import Request, ToolSpec
from callwright.prompt.settings import PromptSettings, WayToClose

__all__ = ["FINAL_ANSWER", "way_to_close", "with_final_answer"]

FINAL_ANSWER = ToolSpec(
    "final_answer",
    "Give the user your whole answer. Call this when the task is done or no other tool is needed.",
    {
        "type": "object",
        "properties": {"answer": {"type": "string", "description": "The answer, as the user shall read it."}},
        "required": ["answer"],
    },
)


def with_final_answer(request: Request, settings: PromptSettings) -> Request:
    """The request with the tool added, where the settings ask for it. A client that demands a call wants one of its
    own, and a tool of that name that the client has is the client's."""
    names = [tool.name for tool in request.tools]
    wanted = settings.final_answer == "call" and names and request.tool_choice == "auto"
    if not wanted or FINAL_ANSWER.name in names:
        return request
    return msgspec.structs.replace(request, tools=(*request.tools, FINAL_ANSWER))


def way_to_close(request: Request, settings: PromptSettings) -> WayToClose:
    """How the model may close the turn of a request that `with_final_answer` gave."""
    if settings.final_answer == "call":
        return "call" if FINAL_ANSWER in request.tools else "off"
    return settings.final_answer if request.tools else "off"
