"""The three places that settings come from, laid over each other: file, then environment, then flags.

Nothing is checked here; what comes out knows of every value where it came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from callwright.config import toml_file as config_file
from callwright.config.mistakes import MistakeReport, RawEntry, RawTable, ValueOrigin
from callwright.config.settings import TABLES

__all__ = [
    "CONFIG_FILE_NAME",
    "ENVIRONMENT_VARIABLES",
    "RawTables",
    "find_config_file",
    "gather_tables",
    "get_config_folder",
    "get_state_folder",
    "iter_config_paths",
]

CONFIG_FILE_NAME = "callwright.toml"

RawTables = dict[str, list[RawTable]]
"""Every table that was given, by its name, in order."""

_PROXY_VARIABLE_KEYS = (
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

ENVIRONMENT_VARIABLES = {
    "CALLWRIGHT_HOST": ("server", "host"),
    "CALLWRIGHT_PORT": ("server", "port"),
    "CALLWRIGHT_LOG_LEVEL": ("server", "debug"),
    "CALLWRIGHT_DEBUG": ("server", "debug"),
    "CALLWRIGHT_JOURNAL": ("store", "journal"),
    "CALLWRIGHT_STORE": ("store", "address"),
    **{f"PROXY_{key.upper()}": ("tools", key) for key in _PROXY_VARIABLE_KEYS},
}
"""The table and key that each environment variable sets; of two for one key, the later wins."""

_LOG_LEVELS = {"debug": "true", "info": "false"}


def iter_config_paths(environ: Mapping[str, str]) -> Iterator[Path]:
    """Where a file is looked for when none is named."""
    yield Path(CONFIG_FILE_NAME)
    if shared := _find_base_folder(environ, "XDG_CONFIG_HOME", ".config"):
        yield shared / "callwright" / "config.toml"


def get_state_folder(environ: Mapping[str, str]) -> Path:
    """Where the store is when its settings name no address."""
    return (_find_base_folder(environ, "XDG_STATE_HOME", ".local/state") or Path()) / "callwright"


def get_config_folder(environ: Mapping[str, str]) -> Path:
    """Where a person's own settings are, besides the configuration itself."""
    return (_find_base_folder(environ, "XDG_CONFIG_HOME", ".config") or Path()) / "callwright"


def _find_base_folder(environ: Mapping[str, str], variable: str, otherwise: str) -> Path | None:
    """A folder of the XDG base directory specification, which has relative ones ignored."""
    shared = environ.get(variable, "")
    home = environ.get("HOME") or environ.get("USERPROFILE")
    if Path(shared).is_absolute():
        return Path(shared)
    return Path(home, otherwise) if home else None


def find_config_file(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    """The file to load: the one that is named, or else the first that exists."""
    if path is None and (named := environ.get("CALLWRIGHT_CONFIG")):
        return Path(named)
    return path or next((each for each in iter_config_paths(environ) if each.is_file()), None)


def gather_tables(
    file: Path | None, environ: Mapping[str, str], flags: Mapping[str, Any], report: MistakeReport
) -> RawTables:
    """Everything that was given. Flags have the form of the file; None in them is a flag that was not used."""
    sheet: RawTables = {name: [] for name in TABLES}
    if file is not None:
        for name, table in config_file.read_tables(file, report):
            sheet[name].append(table)
    _merge_environment(sheet, environ, report)
    for name, given in flags.items():
        for values in given if isinstance(given, list) else [given]:
            used = {key: value for key, value in values.items() if value is not None}
            _merge_entries(
                sheet,
                name,
                {key: RawEntry(value, _build_flag_origin(name, key)) for key, value in used.items()},
                ValueOrigin("flag"),
            )
    return sheet


def _build_flag_origin(name: str, key: str) -> ValueOrigin:
    """Flags are called as the keys of `[server]` are; the others make up whole tables."""
    return ValueOrigin(
        "flag", f"--{key.replace('_', '-')}" if not TABLES[name].is_array else f"the {key} of --{name[:-1]}"
    )


def _merge_environment(tables: RawTables, environ: Mapping[str, str], report: MistakeReport) -> None:
    """An empty variable counts as not set: that is how compose files leave one out."""
    for variable, (name, key) in ENVIRONMENT_VARIABLES.items():
        value = environ.get(variable, "")
        place = ValueOrigin("environment", variable)
        if value and variable == "CALLWRIGHT_LOG_LEVEL":
            if value.lower() not in _LOG_LEVELS:
                report.add_mistake(place, f'is "{value}"', 'it must be "debug" or "info"')
                continue
            value = _LOG_LEVELS[value.lower()]
        if value:
            _merge_entries(tables, name, {key: RawEntry(value, place)}, place)
    if environ.get("CALLWRIGHT_API_KEY"):
        place = ValueOrigin("environment", "CALLWRIGHT_API_KEY")
        entries = {"name": RawEntry("environment", place), "key": RawEntry("env:CALLWRIGHT_API_KEY", place)}
        _merge_entries(tables, "keys", entries, place)


def _merge_entries(tables: RawTables, name: str, entries: dict[str, RawEntry], origin: ValueOrigin) -> None:
    """Lay values over the only table of that kind, or the one of the same name; else they are a new one.

    A new one goes first: a model that names no backend has the first, and a flag comes before the file.
    """
    called = entries["name"].value if "name" in entries else None
    for table in tables[name]:
        if not TABLES[name].is_array or ("name" in table.entries and table.entries["name"].value == called):
            table.entries.update(entries)
            return
    if entries:
        tables[name].insert(0, RawTable(config_file.format_table_label(name, entries), origin, entries))
