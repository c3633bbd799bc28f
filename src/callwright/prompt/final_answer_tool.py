"""The final answer as a tool: for models that do better when every answer is a call.

What the model gives to it reaches the client as text; `guard.final_answer` sees to that.
"""

from __future__ import annotations

import msgspec

from callwright.model import Request, ToolSpec
from callwright.prompt.settings import FinalAnswerMode, PromptSettings

__all__ = ["FINAL_ANSWER_TOOL", "add_final_answer_tool", "get_final_answer_mode"]

FINAL_ANSWER_TOOL = ToolSpec(
    "final_answer",
    "Give the user your whole answer. Call this when the task is done or no other tool is needed.",
    {
        "type": "object",
        "properties": {"answer": {"type": "string", "description": "The answer, as the user shall read it."}},
        "required": ["answer"],
    },
)


def add_final_answer_tool(request: Request, settings: PromptSettings) -> Request:
    """The request with the tool added, where the settings ask for it. A client that demands a call wants one of its
    own, and a tool of that name that the client has is the client's."""
    names = [tool.name for tool in request.tools]
    wanted = settings.final_answer == "call" and names and request.tool_choice == "auto"
    if not wanted or FINAL_ANSWER_TOOL.name in names:
        return request
    return msgspec.structs.replace(request, tools=(*request.tools, FINAL_ANSWER_TOOL))


def get_final_answer_mode(request: Request, settings: PromptSettings) -> FinalAnswerMode:
    """How the model may close the turn of a request that `with_final_answer` gave."""
    if settings.final_answer == "call":
        return "call" if FINAL_ANSWER_TOOL in request.tools else "off"
    return settings.final_answer if request.tools else "off"
