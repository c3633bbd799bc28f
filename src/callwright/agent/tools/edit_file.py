"""`edit_file`: one stretch of a file replaced by another, both written out exactly."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from callwright.agent.change import Change
from callwright.agent.edits import replaced, text_of
from callwright.agent.tools.base import Arguments
from callwright.agent.tools.form import Form
from callwright.agent.tools.lines import encoded
from callwright.agent.tools.names import similar
from callwright.agent.workspace import Workspace
from callwright.errors import ToolError

__all__ = ["tool"]


class _Edit(msgspec.Struct, frozen=True, kw_only=True):
    """Replace a text in a file by another. The old text must be exactly as it is in the file, and be there once."""

    path: Annotated[
        str, msgspec.Meta(description="The file, from the workspace's root.", examples=["src/app.py"], min_length=1)
    ]
    old: Annotated[
        str, msgspec.Meta(description="The text to replace, with its spaces and whole lines.", examples=["x = 1"])
    ]
    new: Annotated[str, msgspec.Meta(description="The text that comes in its place.", examples=["x = 2"])]
    every: Annotated[bool, msgspec.Meta(description="Replace it wherever it is.")] = False


class _EditFile:
    form = Form("edit_file", _Edit)
    spec = form.spec

    def view(self, arguments: Arguments) -> str:
        return self.form.view(arguments, lambda wanted: f"Edit {wanted.path}")

    def plan(self, arguments: Arguments, workspace: Workspace) -> tuple[Change, ...]:
        wanted = self.form.read(arguments)
        path = workspace.relative(wanted.path)
        if workspace.kind(path) == "missing":
            hint = similar(path, workspace.files())
            raise ToolError(f"there is no file {wanted.path!r}.{hint} write_file makes a new one.")
        before = workspace.read(path)
        after = replaced(text_of(before, path), wanted.old, wanted.new, every=wanted.every)
        return (Change(path=path, before=before, after=encoded(after)),)

    def deferred(self, arguments: Arguments) -> str:
        return ""

    def completed(self, arguments: Arguments, content: str) -> dict[str, Any]:
        return dict(arguments)


tool = _EditFile()
