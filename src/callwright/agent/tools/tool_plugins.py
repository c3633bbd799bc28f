"""Loads tools of other packages, by the entry point group `callwright.tools`.

Invariant: whatever such a package does while it is loaded, it costs a warning and not the session. A built-in tool
cannot be replaced, and only the kinds that need approval may come from plugins: `ReadTool` and `ExternalTool`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from importlib.metadata import EntryPoint
from typing import NamedTuple

from callwright.agent.tools.base import ExternalTool, ReadTool
from callwright.entry_points import describe_origin, list_entry_points, load_entry_point
from callwright.model import ToolSpec

__all__ = ["ENTRY_POINT_GROUP", "ToolPlugin", "load_plugins"]

ENTRY_POINT_GROUP = "callwright.tools"
_match_legal_name = re.compile(r"[a-zA-Z0-9_-]{1,64}").fullmatch


class ToolPlugin(NamedTuple):
    """A tool, and the package that it came from."""

    tool: ReadTool | ExternalTool
    origin: str


def load_plugins(
    reserved_names: Collection[str], points: Iterable[EntryPoint] | None = None
) -> tuple[tuple[ToolPlugin, ...], tuple[str, ...]]:
    """Return the tools of other packages, and a warning for each unusable one. Built-in names are `reserved_names`."""
    found: dict[str, ToolPlugin] = {}
    warnings: list[str] = []
    for point in list_entry_points(ENTRY_POINT_GROUP, points):
        origin = describe_origin(point)
        tool, problem = _load_tool(point)
        if not problem and tool is not None:
            problem = _describe_name_conflict(tool.spec.name, reserved_names, found)
        if problem or tool is None:
            warnings.append(f"the tool {point.name!r} of {origin} was skipped: {problem}")
        else:
            found[tool.spec.name] = ToolPlugin(tool, origin)
    return tuple(found.values()), tuple(warnings)


def _load_tool(point: EntryPoint) -> tuple[ReadTool | ExternalTool | None, str]:
    """Return the tool, or what is wrong with it."""
    tool, problem = load_entry_point(point)
    if problem:
        return None, problem
    if not isinstance(tool, ReadTool | ExternalTool):
        return None, "it is neither a ReadTool nor an ExternalTool"
    if not isinstance(tool.spec, ToolSpec) or not _match_legal_name(tool.spec.name):
        return None, "its spec has no name of at most 64 letters, digits, '_' and '-'"
    return tool, ""


def _describe_name_conflict(name: str, reserved_names: Collection[str], found: dict[str, ToolPlugin]) -> str:
    if name in reserved_names:
        return f"{name} is a built-in tool"
    return f"{name} is already defined by {found[name].origin}" if name in found else ""
