"""Dialects that other packages bring, by the entry point group `callwright.dialects`.

Apart from the other plugins, so that a program that only parses imports no gateway.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.metadata import EntryPoint
from typing import NamedTuple

from callwright.dialects import Dialect, register_dialect
from callwright.entry_points import describe_origin, list_entry_points, load_entry_point, run_foreign_code
from callwright.errors import MisuseError
from callwright.model import ToolCall, ToolSpec
from callwright.parser import Parser
from callwright.turn import Collected, collect

__all__ = ["Plugin", "PluginReport", "Registrar", "check_plugin_name", "load_dialect_plugins", "load_group"]

Registrar = Callable[[str, object], str]
"""Registers what an entry point of that name holds. Returns what is wrong with it, or nothing."""

_match_legal_name = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}").fullmatch
_PROBE_TOOL = ToolSpec(
    "probe", "", {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
)
_PROBE_ARGUMENTS = {"city": "São Paulo", "days": 2}

_loaded: dict[tuple[str, str, str], str] = {}
"""Every entry point that was tried, with what was wrong with it."""


class Plugin(NamedTuple):
    """What an entry point brought."""

    group: str
    name: str
    origin: str
    """The package and its version."""


class PluginReport(NamedTuple):
    """What was loaded, and a sentence for each plugin that was skipped."""

    plugins: tuple[Plugin, ...] = ()
    warnings: tuple[str, ...] = ()


def load_dialect_plugins(points: Iterable[EntryPoint] | None = None) -> PluginReport:
    """Register the dialects of other packages. `points` replaces the entry points that are installed."""
    return load_group("callwright.dialects", _register_dialects, points)


def load_group(group: str, register: Registrar, points: Iterable[EntryPoint] | None = None) -> PluginReport:
    """Load the entry points of a group, each once in a process."""
    plugins: list[Plugin] = []
    warnings: list[str] = []
    for point in list_entry_points(group, points):
        key = (group, point.name, point.value)
        if key not in _loaded:
            _loaded[key] = _load_plugin(point, register)
        plugin = Plugin(group, point.name, describe_origin(point))
        if problem := _loaded[key]:
            kind = group.removeprefix("callwright.").removesuffix("s")
            warnings.append(f"the {kind} {plugin.name!r} of {plugin.origin} was skipped: {problem}")
        else:
            plugins.append(plugin)
    return PluginReport(tuple(plugins), tuple(warnings))


def _load_plugin(point: EntryPoint, register: Registrar) -> str:
    value, problem = load_entry_point(point)
    if problem:
        return problem
    try:
        return register(point.name, value)
    except MisuseError as error:
        return str(error)


def _register_dialects(name: str, value: object) -> str:
    for dialect in value if isinstance(value, Sequence) else (value,):
        if not isinstance(dialect, Dialect):
            return f"it is a {type(dialect).__name__}, not a Dialect"
        if problem := check_plugin_name(dialect.name) or _check_round_trip(dialect):
            return problem
        register_dialect(dialect)
    return ""


def check_plugin_name(name: object) -> str:
    """Return what is wrong with a name, or nothing."""
    if isinstance(name, str) and _match_legal_name(name):
        return ""
    return f"its name {name!r} is not 1 to 40 lower-case letters, digits, '_' and '-'"


def _check_round_trip(dialect: Dialect) -> str:
    """Return what is wrong when a call that the dialect renders is not the call that it reads."""
    sample = ToolCall("call_0", _PROBE_TOOL.name, json.dumps(_PROBE_ARGUMENTS))
    text, problem = run_foreign_code(lambda: dialect.render_call(sample))
    if problem or not isinstance(text, str):
        return f"it cannot render a call: {problem or 'render_call returned no text'}"
    for pieces in ([text], list(text)):
        turn, problem = run_foreign_code(partial(_parse_pieces, dialect, pieces))
        if problem:
            return f"its grammar failed on a call that it rendered: {problem}"
        calls = turn.tool_calls if isinstance(turn, Collected) else ()
        if [(call.name, json.loads(call.arguments)) for call in calls] != [(_PROBE_TOOL.name, _PROBE_ARGUMENTS)]:
            return f"it does not read back the call that it renders: {text[:200]!r}"
    return ""


def _parse_pieces(dialect: Dialect, pieces: Sequence[str]) -> Collected:
    parser = Parser(dialect, [_PROBE_TOOL])
    return collect([event for piece in pieces for event in parser.feed(piece)] + parser.close())
