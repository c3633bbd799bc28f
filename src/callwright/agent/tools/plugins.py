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

from callwright.agent.tools.base import Outside, Reader
from callwright.model import ToolSpec

__all__ = ["GROUP", "Plugin", "load_plugins"]

GROUP = "callwright.tools"
_LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}").fullmatch


class Plugin(NamedTuple):
    """A tool, and where it came from."""

    tool: Reader | Outside
    origin: str


def load_plugins(
    taken: Collection[str], points: Iterable[EntryPoint] | None = None
) -> tuple[tuple[Plugin, ...], tuple[str, ...]]:
    """The tools of other packages, and a sentence for each that cannot be used. `taken`: names that are ours."""
    found: dict[str, Plugin] = {}
    warnings: list[str] = []
    for point in sorted(entry_points(group=GROUP) if points is None else points, key=lambda each: each.name):
        origin = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        tool, problem = _loaded(point)
        if not problem and tool is not None:
            problem = _taken(tool.spec.name, taken, found)
        if problem or tool is None:
            warnings.append(f"the tool {point.name!r} of {origin} is left out: {problem}")
        else:
            found[tool.spec.name] = Plugin(tool, origin)
    return tuple(found.values()), tuple(warnings)


def _loaded(point: EntryPoint) -> tuple[Reader | Outside | None, str]:
    """The tool, or what is wrong with it."""
    # Somebody else's module may raise anything while it is imported, or end the program. In a thread that is a value.
    with ThreadPoolExecutor(max_workers=1) as thread:
        loading = thread.submit(point.load)
        error = loading.exception()
    if error is not None:
        return None, f"{type(error).__name__}: {error}"
    tool = loading.result()
    if not isinstance(tool, Reader | Outside):
        return None, "it is neither a Reader nor an Outside tool"
    if not isinstance(tool.spec, ToolSpec) or not _LEGAL(tool.spec.name):
        return None, "its spec has no name of at most 64 letters, digits, '_' and '-'"
    return tool, ""


def _taken(name: str, ours: Collection[str], found: dict[str, Plugin]) -> str:
    if name in ours:
        return f"{name} is a tool of our own"
    return f"{name} is there already, from {found[name].origin}" if name in found else ""
