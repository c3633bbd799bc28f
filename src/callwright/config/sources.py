"""The three places that settings come from, laid over each other: file, then environment, then flags.

Nothing is checked here; what comes out knows of every value where it came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from callwright.config import file as config_file
from callwright.config.mistakes import Given, Place, Report, Table
from callwright.config.settings import TABLES

__all__ = ["FILE_NAME", "VARIABLES", "Sheet", "candidates", "config_folder", "find", "gather", "state_folder"]

FILE_NAME = "callwright.toml"

Sheet = dict[str, list[Table]]
"""Every table that was given, by its name, in order."""

_SEED_NAMES = (
    "stop_after_tools",
    "stop_after_tools_mode",
    "suppress_tail_after_tools",
    "tool_block_max",
    "tool_block_dedup",
    "tool_block_delimiter",
    "enable_parallel_tool_calls",
    "output_mode",
)
"""Keys of `[tools]` that an older proxy had as variables; people have those names in their scripts."""

VARIABLES = {
    "CALLWRIGHT_HOST": ("server", "host"),
    "CALLWRIGHT_PORT": ("server", "port"),
    "CALLWRIGHT_LOG_LEVEL": ("server", "debug"),
    "CALLWRIGHT_DEBUG": ("server", "debug"),
    "CALLWRIGHT_JOURNAL": ("store", "journal"),
    "CALLWRIGHT_STORE": ("store", "address"),
    **{f"PROXY_{key.upper()}": ("tools", key) for key in _SEED_NAMES},
}
"""The table and key that each environment variable sets; of two for one key, the later wins."""

_LEVELS = {"debug": "true", "info": "false"}


def candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    """Where a file is looked for when none is named."""
    yield Path(FILE_NAME)
    if shared := _base(environ, "XDG_CONFIG_HOME", ".config"):
        yield shared / "callwright" / "config.toml"


def state_folder(environ: Mapping[str, str]) -> Path:
    """Where the store is when its settings name no address."""
    return (_base(environ, "XDG_STATE_HOME", ".local/state") or Path()) / "callwright"


def config_folder(environ: Mapping[str, str]) -> Path:
    """Where a person's own settings are, besides the configuration itself."""
    return (_base(environ, "XDG_CONFIG_HOME", ".config") or Path()) / "callwright"


def _base(environ: Mapping[str, str], variable: str, otherwise: str) -> Path | None:
    """A folder of the XDG base directory specification, which has relative ones ignored."""
    shared = environ.get(variable, "")
    home = environ.get("HOME") or environ.get("USERPROFILE")
    if Path(shared).is_absolute():
        return Path(shared)
    return Path(home, otherwise) if home else None


def find(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    """The file to load: the one that is named, or else the first that exists."""
    if path is None and (named := environ.get("CALLWRIGHT_CONFIG")):
        return Path(named)
    return path or next((each for each in candidates(environ) if each.is_file()), None)


def gather(file: Path | None, environ: Mapping[str, str], flags: Mapping[str, Any], report: Report) -> Sheet:
    """Everything that was given. Flags have the form of the file; None in them is a flag that was not used."""
    sheet: Sheet = {name: [] for name in TABLES}
    if file is not None:
        for name, table in config_file.tables(file, report):
            sheet[name].append(table)
    _lay_environment(sheet, environ, report)
    for name, given in flags.items():
        for values in given if isinstance(given, list) else [given]:
            used = {key: value for key, value in values.items() if value is not None}
            _lay(sheet, name, {key: Given(value, _flag(name, key)) for key, value in used.items()}, Place("flag"))
    return sheet


def _flag(name: str, key: str) -> Place:
    """Flags are called as the keys of `[server]` are; the others make up whole tables."""
    return Place("flag", f"--{key.replace('_', '-')}" if not TABLES[name].many else f"the {key} of --{name[:-1]}")


def _lay_environment(sheet: Sheet, environ: Mapping[str, str], report: Report) -> None:
    """An empty variable counts as not set: that is how compose files leave one out."""
    for variable, (name, key) in VARIABLES.items():
        value = environ.get(variable, "")
        place = Place("environment", variable)
        if value and variable == "CALLWRIGHT_LOG_LEVEL":
            if value.lower() not in _LEVELS:
                report.alone(place, f'is "{value}"', 'it must be "debug" or "info"')
                continue
            value = _LEVELS[value.lower()]
        if value:
            _lay(sheet, name, {key: Given(value, place)}, place)
    if environ.get("CALLWRIGHT_API_KEY"):
        place = Place("environment", "CALLWRIGHT_API_KEY")
        entries = {"name": Given("environment", place), "key": Given("env:CALLWRIGHT_API_KEY", place)}
        _lay(sheet, "keys", entries, place)


def _lay(sheet: Sheet, name: str, entries: dict[str, Given], place: Place) -> None:
    """Lay values over the only table of that kind, or the one of the same name; else they are a new one.

    A new one goes first: a model that names no backend has the first, and a flag comes before the file.
    """
    called = entries["name"].value if "name" in entries else None
    for table in sheet[name]:
        if not TABLES[name].many or ("name" in table.entries and table.entries["name"].value == called):
            table.entries.update(entries)
            return
    if entries:
        sheet[name].insert(0, Table(config_file.label(name, entries), place, entries))
