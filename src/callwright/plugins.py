"""Plugins: dialects, backends and client profiles that other packages bring, by entry points.

| group | an entry point names |
|---|---|
| `callwright.dialects` | a `Dialect`, or a sequence of them |
| `callwright.backends` | a function that makes a `Backend` of `BackendSettings` |
| `callwright.profiles` | a `Profile`, or a sequence of them |
| `callwright.tools` | a tool of the agent; `callwright.agent.tools.tool_plugins` loads those |

Invariant: a broken plugin is named in a warning and skipped. It never keeps Callwright from starting, and never
replaces anything that is built in. Plugins are loaded once in a process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint

from callwright.backends import register_backend
from callwright.dialect_plugins import PluginReport, Registrar, check_plugin_name, load_dialect_plugins, load_group
from callwright.gateway.profiles import Profile, register_profile

__all__ = ["load_plugins"]


def load_plugins(points: Iterable[EntryPoint] | None = None) -> PluginReport:
    """Load and register the plugins that are installed. Those that were loaded before are not loaded again.

    `points` replaces the entry points that are installed.
    """
    given = None if points is None else list(points)
    reports = [load_dialect_plugins(given), *(load_group(name, register, given) for name, register in _GROUPS.items())]
    return PluginReport(
        tuple(plugin for report in reports for plugin in report.plugins),
        tuple(warning for report in reports for warning in report.warnings),
    )


def _register_backend(name: str, value: object) -> str:
    if not callable(value):
        return f"it is a {type(value).__name__}, not a function that makes a backend"
    if problem := check_plugin_name(name):
        return problem
    register_backend(name, value)
    return ""


def _register_profiles(name: str, value: object) -> str:
    for profile in value if isinstance(value, Sequence) else (value,):
        if not isinstance(profile, Profile):
            return f"it is a {type(profile).__name__}, not a Profile"
        if problem := check_plugin_name(profile.name):
            return problem
        register_profile(profile)
    return ""


_GROUPS: dict[str, Registrar] = {
    "callwright.backends": _register_backend,
    "callwright.profiles": _register_profiles,
}
