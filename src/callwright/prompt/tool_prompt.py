"""Describe tools as text, for models whose server has no native tools.

`render_tool_prompt` describes the tools and how to call them, in the model's dialect; it depends on the tools alone, so
it has the same bytes in every turn. Earlier calls are written in the same dialect, so that the model sees what it is
expected to write.
"""

from __future__ import annotations

from collections.abc import Sequence

from callwright.dialects import Dialect
from callwright.model import Message, Part, Text, ToolCall, ToolSpec
from callwright.prompt.settings import PromptSettings, TeachForm
from callwright.prompt.tool_signatures import format_python_function, format_signature

__all__ = ["format_call_demand", "get_teach_form", "render_calls_as_text", "render_tool_prompt"]


def get_teach_form(settings: PromptSettings, *, repeated: bool) -> TeachForm:
    """Return the form in which tools are described: the first time, or again."""
    if settings.teach == "auto":
        return "short" if repeated else "full"
    return settings.teach


def render_tool_prompt(tools: Sequence[ToolSpec], dialect: Dialect, form: TeachForm = "full") -> str:
    """Render the tools and how to call them; an empty string if there are none."""
    if not tools:
        return ""
    if form == "full":
        return dialect.render_tools(tools)
    if form == "code":
        listed = "\n\n".join(map(format_python_function, tools))
        return f"You can call these tools, shown as Python functions:\n\n{listed}\n\n{dialect.describe_call_format()}"
    return "\n".join(["You can call these tools:", *map(format_signature, tools), "", dialect.describe_call_format()])


def format_call_demand(tool_choice: str) -> str:
    """Format the requirement of a call, if the client has one. It comes last, so that nothing before it changes."""
    if tool_choice in ("auto", "none"):
        return ""
    which = "one of the tools" if tool_choice == "required" else f"the tool {tool_choice}"
    return f"Your next answer must be a call of {which}."


def render_calls_as_text(message: Message, dialect: Dialect) -> Message:
    """Return a message with its calls in the dialect's form, after its text."""
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    if not calls:
        return message
    words: list[Part] = [part for part in message.parts if not isinstance(part, ToolCall)]
    return Message(message.role, (*words, Text(dialect.render_call(*calls))))
