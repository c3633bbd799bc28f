"""The final answer as a tool: for models that work better when every answer is a call.

The client receives the argument as text; `guard.final_answer` converts it.
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
    """Add the tool to the request, if the settings enable it. A client that requires a call means one of its own tools,
    and a tool of the client with the same name is not replaced."""
    names = [tool.name for tool in request.tools]
    enabled = settings.final_answer == "call" and names and request.tool_choice == "auto"
    if not enabled or FINAL_ANSWER_TOOL.name in names:
        return request
    return msgspec.structs.replace(request, tools=(*request.tools, FINAL_ANSWER_TOOL))


def get_final_answer_mode(request: Request, settings: PromptSettings) -> FinalAnswerMode:
    """Return how the model may end the turn of a request from `add_final_answer_tool`."""
    if settings.final_answer == "call":
        return "call" if FINAL_ANSWER_TOOL in request.tools else "off"
    return settings.final_answer if request.tools else "off"
