"""`write_file`: writes a whole file, with its content in the call or left to a second answer.

A long file inside a call shows nothing while it is written, and some servers hold a call back until it is complete (60
to 80 seconds with Ollama). For a call that only describes the file, the content is streamed separately.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec

from callwright.agent.changes.file_change import FileChange
from callwright.agent.tools.base import ToolArguments
from callwright.agent.tools.file_text import encode_text
from callwright.agent.tools.signature import ToolSignature
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import ToolError

__all__ = ["tool"]

_FENCED_BLOCK = re.compile(r"\s*(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^\n]*\n(.*\n)?\1[ \t]*\s*", re.DOTALL)
_PROSE_SUFFIXES = (".md", ".markdown", ".mdx", ".rst", ".txt")
_DEFAULT_DESCRIPTION = "what the task asks for."
_BOM = b"\xef\xbb\xbf"


class _WriteArguments(msgspec.Struct, frozen=True, kw_only=True):
    """Write a whole file: creates a new one, or replaces all of an old one. To change parts of a file use edit_file."""

    path: Annotated[
        str, msgspec.Meta(description="The file, from the workspace's root.", examples=["src/app.py"], min_length=1)
    ]
    content: (
        Annotated[str, msgspec.Meta(description="All of the file's new content.", examples=["print('hello')\n"])]
        | msgspec.UnsetType
    ) = msgspec.UNSET
    description: Annotated[
        str,
        msgspec.Meta(description="For a long file: omit content and describe it here; you will be asked for it next."),
    ] = ""


class _WriteFile:
    signature = ToolSignature("write_file", _WriteArguments)
    spec = signature.spec

    def describe_call(self, arguments: ToolArguments) -> str:
        return self.signature.describe_call(arguments, lambda parsed: f"Write {parsed.path}")

    def plan_changes(self, arguments: ToolArguments, workspace: Workspace) -> tuple[FileChange, ...]:
        parsed = self.signature.parse(arguments)
        if isinstance(parsed.content, msgspec.UnsetType):
            raise ToolError("write_file needs `content`, all of it, or a `description` of the file's content.")
        path = workspace.resolve_path(parsed.path)
        before = None if workspace.get_kind(path) == "missing" else workspace.read_file(path)
        after = _preserve_file_format(parsed.content, before)
        if after == before:
            raise ToolError(f"{path} already has exactly this content; there is nothing to write.")
        return (FileChange(path=path, before=before, after=after),)

    def describe_deferred_content(self, arguments: ToolArguments) -> str:
        parsed = self.signature.try_parse(arguments)
        if parsed is None or not isinstance(parsed.content, msgspec.UnsetType):
            return ""
        return parsed.description or _DEFAULT_DESCRIPTION

    def fill_content(self, arguments: ToolArguments, content: str) -> dict[str, Any]:
        return self.signature.replace_arguments(
            arguments, content=_unwrap_code_block(content, self.signature.parse(arguments).path)
        )


def _preserve_file_format(content: str, before: bytes | None) -> bytes:
    """Encode the content; line endings and byte order mark stay as they were, since models do not see them."""
    after = encode_text(content)
    if not before:
        return after
    if before.count(b"\r\n") == before.count(b"\n") > 0 and b"\r\n" not in after:
        after = after.replace(b"\n", b"\r\n")
    return _BOM + after if before.startswith(_BOM) and not after.startswith(_BOM) else after


def _unwrap_code_block(content: str, path: str) -> str:
    """Remove the code block in which a model often wraps a file's content."""
    if fenced := _FENCED_BLOCK.fullmatch(content):
        inside = fenced[3] or ""
        several = f"\n{fenced[1]}" in f"\n{inside}"
        is_prose = path.lower().endswith(_PROSE_SUFFIXES)
        if fenced[2].lower() in {"markdown", "md"} if is_prose else not several:
            return inside
    return content if content.endswith("\n") or not content else f"{content}\n"


tool = _WriteFile()
