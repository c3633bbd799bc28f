"""Tools taught as text, for models whose server has no tools of its own.

`lesson` says what the tools are and how to call them, in the model's dialect; it depends on the tools alone, so it is
the same bytes in every turn. Earlier calls are written in the same dialect, so that the model sees what it is expected
to write.
"""

from __future__ import annotations

from collections.abc import Sequence

from callwright.dialects import Dialect
from callwright.model import Message, Part, Text, ToolCall, ToolSpec
from callwright.prompt.settings import PromptSettings, TeachForm
from callwright.prompt.tool_signatures import format_python_function, format_signature

__all__ = ["format_call_demand", "get_teach_form", "render_calls_as_text", "render_tool_prompt"]


def get_teach_form(settings: PromptSettings, *, again: bool) -> TeachForm:
    """The form in which tools are told for the first time, or again."""
    if settings.teach == "auto":
        return "short" if again else "full"
    return settings.teach


def render_tool_prompt(tools: Sequence[ToolSpec], dialect: Dialect, form: TeachForm = "full") -> str:
    """The tools and the way to call them; nothing where there are none."""
    if not tools:
        return ""
    if form == "full":
        return dialect.render_tools(tools)
    if form == "code":
        listed = "\n\n".join(map(format_python_function, tools))
        return f"You can call these tools, shown as Python functions:\n\n{listed}\n\n{dialect.describe_call_format()}"
    return "\n".join(["You can call these tools:", *map(format_signature, tools), "", dialect.describe_call_format()])


def format_call_demand(tool_choice: str) -> str:
    """What is said where the client wants a call; it comes last, so that nothing before it changes."""
    if tool_choice in ("auto", "none"):
        return ""
    which = "one of the tools" if tool_choice == "required" else f"the tool {tool_choice}"
    return f"Your next answer must be a call of {which}."


def render_calls_as_text(message: Message, dialect: Dialect) -> Message:
    """A message with its calls as the dialect writes them, after its words."""
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    if not calls:
        return message
    words: list[Part] = [part for part in message.parts if not isinstance(part, ToolCall)]
    return Message(message.role, (*words, Text(dialect.render_call(*calls))))
