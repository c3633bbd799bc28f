"""`apply_patch`: changes to several files at once, as a unified diff or in the form that Codex's models write."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from callwright.agent.change import Change
from callwright.agent.patch import patched
from callwright.agent.patch_text import parsed
from callwright.agent.tools.base import Arguments
from callwright.agent.tools.form import Form
from callwright.agent.tools.lines import encoded
from callwright.agent.workspace import Workspace
from callwright.errors import ToolError

__all__ = ["tool"]

_EXAMPLE = "*** Begin Patch\n*** Update File: src/app.py\n@@\n-x = 1\n+x = 2\n*** End Patch"


class _Patch(msgspec.Struct, frozen=True, kw_only=True):
    """Change, make, move or delete several files at once with a patch. All of it is done, or nothing."""

    patch: Annotated[
        str,
        msgspec.Meta(
            description="A unified diff as git writes it, or *** Begin Patch … *** End Patch.", examples=[_EXAMPLE]
        ),
    ]


class _ApplyPatch:
    form = Form("apply_patch", _Patch)
    spec = form.spec

    def view(self, arguments: Arguments) -> str:
        return self.form.view(arguments, lambda wanted: f"Patch {_named(wanted.patch)}")

    def plan(self, arguments: Arguments, workspace: Workspace) -> tuple[Change, ...]:
        patch = self.form.read(arguments).patch
        encoded(patch)
        changes = patched(patch, lambda path: None if workspace.kind(path) == "missing" else workspace.read(path))
        # A file has many names, and rules about files know only the true one.
        named = [msgspec.structs.replace(change, path=workspace.relative(change.path)) for change in changes]
        if len({change.path for change in named}) < len(named):
            raise ToolError("the patch changes one file under two names; write its path the same way each time.")
        return tuple(named)

    def deferred(self, arguments: Arguments) -> str:
        return ""

    def completed(self, arguments: Arguments, content: str) -> dict[str, Any]:
        return dict(arguments)


def _named(patch: str) -> str:
    try:
        return ", ".join(dict.fromkeys(section.path for section in parsed(patch)))
    except ToolError:
        return "files, in a form that cannot be read"


tool = _ApplyPatch()
