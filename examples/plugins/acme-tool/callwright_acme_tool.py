"""A tool for the agent: counts the words of a file. It only reads, so it needs no approval inside the workspace."""

from callwright.agent.tools.base import ToolArguments, ToolContext
from callwright.errors import ToolError
from callwright.model import ToolSpec


class WordCount:
    """Implements `callwright.agent.tools.base.ReadTool`."""

    spec = ToolSpec(
        "word_count",
        "Count the words of a file.",
        {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    )

    def describe_call(self, arguments: ToolArguments) -> str:
        return f"Count the words of {arguments.get('path')}"

    def list_paths(self, arguments: ToolArguments) -> tuple[str, ...]:
        return (str(arguments.get("path", "")),)

    async def read(self, arguments: ToolArguments, context: ToolContext) -> str:
        path = arguments.get("path")
        if not isinstance(path, str):
            raise ToolError("path must be a string")
        text = context.workspace.read_file(path).decode("utf-8", "replace")
        return f"{path} has {len(text.split())} words."


word_count = WordCount()
