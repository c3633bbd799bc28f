"""Tools that other packages bring, by the entry point group `callwright.tools`.

Invariant: whatever such a package does while it is loaded, it costs a warning and not the session. A tool of ours
cannot be replaced, and only kinds that are asked about may come from outside: `Reader` and `Outside`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint, entry_points
from typing import NamedTuple

from callwright.agent.tools.base import ExternalTool, ReadTool
from callwright.model import ToolSpec

__all__ = ["ENTRY_POINT_GROUP", "ToolPlugin", "load_plugins"]

ENTRY_POINT_GROUP = "callwright.tools"
_match_legal_name = re.compile(r"[a-zA-Z0-9_-]{1,64}").fullmatch


class ToolPlugin(NamedTuple):
    """A tool, and where it came from."""

    tool: ReadTool | ExternalTool
    origin: str


def load_plugins(
    reserved_names: Collection[str], points: Iterable[EntryPoint] | None = None
) -> tuple[tuple[ToolPlugin, ...], tuple[str, ...]]:
    """The tools of other packages, and a sentence for each that cannot be used. `taken`: names that are ours."""
    found: dict[str, ToolPlugin] = {}
    warnings: list[str] = []
    for point in sorted(
        entry_points(group=ENTRY_POINT_GROUP) if points is None else points, key=lambda each: each.name
    ):
        origin = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        tool, problem = _load_tool(point)
        if not problem and tool is not None:
            problem = _describe_name_conflict(tool.spec.name, reserved_names, found)
        if problem or tool is None:
            warnings.append(f"the tool {point.name!r} of {origin} is left out: {problem}")
        else:
            found[tool.spec.name] = ToolPlugin(tool, origin)
    return tuple(found.values()), tuple(warnings)


def _load_tool(point: EntryPoint) -> tuple[ReadTool | ExternalTool | None, str]:
    """The tool, or what is wrong with it."""
    # Somebody else's module may raise anything while it is imported, or end the program. In a thread that is a value.
    with ThreadPoolExecutor(max_workers=1) as thread:
        loading = thread.submit(point.load)
        error = loading.exception()
    if error is not None:
        return None, f"{type(error).__name__}: {error}"
    tool = loading.result()
    if not isinstance(tool, ReadTool | ExternalTool):
        return None, "it is neither a Reader nor an Outside tool"
    if not isinstance(tool.spec, ToolSpec) or not _match_legal_name(tool.spec.name):
        return None, "its spec has no name of at most 64 letters, digits, '_' and '-'"
    return tool, ""


def _describe_name_conflict(name: str, reserved_names: Collection[str], found: dict[str, ToolPlugin]) -> str:
    if name in reserved_names:
        return f"{name} is a tool of our own"
    return f"{name} is there already, from {found[name].origin}" if name in found else ""
