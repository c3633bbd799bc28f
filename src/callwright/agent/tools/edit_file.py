"""`edit_file`: replaces one exact text in a file with another."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from callwright.agent.changes.file_change import FileChange
from callwright.agent.changes.text_replacement import decode_utf8, replace_text
from callwright.agent.tools.base import ToolArguments
from callwright.agent.tools.file_text import encode_text
from callwright.agent.tools.path_match import suggest_paths
from callwright.agent.tools.signature import ToolSignature
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import ToolError

__all__ = ["tool"]


class _EditArguments(msgspec.Struct, frozen=True, kw_only=True):
    """Replace a text in a file with another. The old text must be exactly as it is in the file, and occur once."""

    path: Annotated[
        str, msgspec.Meta(description="The file, from the workspace's root.", examples=["src/app.py"], min_length=1)
    ]
    old: Annotated[
        str, msgspec.Meta(description="The text to replace, with its spaces and in whole lines.", examples=["x = 1"])
    ]
    new: Annotated[str, msgspec.Meta(description="The text to put in its place.", examples=["x = 2"])]
    every: Annotated[bool, msgspec.Meta(description="Replace all occurrences.")] = False


class _EditFile:
    signature = ToolSignature("edit_file", _EditArguments)
    spec = signature.spec

    def describe_call(self, arguments: ToolArguments) -> str:
        return self.signature.describe_call(arguments, lambda parsed: f"Edit {parsed.path}")

    def plan_changes(self, arguments: ToolArguments, workspace: Workspace) -> tuple[FileChange, ...]:
        parsed = self.signature.parse(arguments)
        path = workspace.resolve_path(parsed.path)
        if workspace.get_kind(path) == "missing":
            hint = suggest_paths(path, workspace.iter_files())
            raise ToolError(f"there is no file {parsed.path!r}.{hint} write_file creates new files.")
        before = workspace.read_file(path)
        after = replace_text(decode_utf8(before, path), parsed.old, parsed.new, every=parsed.every)
        return (FileChange(path=path, before=before, after=encode_text(after)),)

    def describe_deferred_content(self, arguments: ToolArguments) -> str:
        return ""

    def fill_content(self, arguments: ToolArguments, content: str) -> dict[str, Any]:
        return dict(arguments)


tool = _EditFile()
