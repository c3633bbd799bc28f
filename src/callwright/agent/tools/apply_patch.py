"""`apply_patch`: changes several files at once with a unified diff or a patch in Codex's format."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from callwright.agent.changes.file_change import FileChange
from callwright.agent.changes.patch import apply_patch
from callwright.agent.changes.patch_parser import parse_patch
from callwright.agent.tools.base import ToolArguments
from callwright.agent.tools.file_text import encode_text
from callwright.agent.tools.signature import ToolSignature
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import ToolError

__all__ = ["tool"]

_EXAMPLE_PATCH = "*** Begin Patch\n*** Update File: src/app.py\n@@\n-x = 1\n+x = 2\n*** End Patch"


class _PatchArguments(msgspec.Struct, frozen=True, kw_only=True):
    """Change, create, move or delete several files at once with a patch. All of it is applied, or nothing."""

    patch: Annotated[
        str,
        msgspec.Meta(
            description="A unified diff as git writes it, or *** Begin Patch … *** End Patch.",
            examples=[_EXAMPLE_PATCH],
        ),
    ]


class _ApplyPatch:
    signature = ToolSignature("apply_patch", _PatchArguments)
    spec = signature.spec

    def describe_call(self, arguments: ToolArguments) -> str:
        return self.signature.describe_call(arguments, lambda parsed: f"Patch {_describe_paths(parsed.patch)}")

    def plan_changes(self, arguments: ToolArguments, workspace: Workspace) -> tuple[FileChange, ...]:
        patch = self.signature.parse(arguments).patch
        encode_text(patch)
        changes = apply_patch(
            patch, lambda path: None if workspace.get_kind(path) == "missing" else workspace.read_file(path)
        )
        # A file can have several names, but file rules match only its canonical path.
        named = [msgspec.structs.replace(change, path=workspace.resolve_path(change.path)) for change in changes]
        if len({change.path for change in named}) < len(named):
            raise ToolError("the patch changes one file under two names; write its path the same way each time.")
        return tuple(named)

    def describe_deferred_content(self, arguments: ToolArguments) -> str:
        return ""

    def fill_content(self, arguments: ToolArguments, content: str) -> dict[str, Any]:
        return dict(arguments)


def _describe_paths(patch: str) -> str:
    try:
        return ", ".join(dict.fromkeys(section.path for section in parse_patch(patch)))
    except ToolError:
        return "files (invalid patch)"


tool = _ApplyPatch()
