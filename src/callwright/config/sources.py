"""Merges the sources of settings: flags override the environment, which overrides the file.

Nothing is checked here. Every value keeps its origin.
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
"""The tables of all sources, by name, in order."""

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
"""Keys of `[tools]` that were variables of an older proxy; scripts still set those names."""

ENVIRONMENT_VARIABLES = {
    "CALLWRIGHT_HOST": ("server", "host"),
    "CALLWRIGHT_PORT": ("server", "port"),
    "CALLWRIGHT_LOG_LEVEL": ("server", "debug"),
    "CALLWRIGHT_DEBUG": ("server", "debug"),
    "CALLWRIGHT_JOURNAL": ("store", "journal"),
    "CALLWRIGHT_STORE": ("store", "address"),
    **{f"PROXY_{key.upper()}": ("tools", key) for key in _PROXY_VARIABLE_KEYS},
}
"""The table and key that each environment variable sets. If two set the same key, the later one wins."""

_LOG_LEVELS = {"debug": "true", "info": "false"}


def iter_config_paths(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the default paths of the configuration file, in order."""
    yield Path(CONFIG_FILE_NAME)
    if folder := _find_base_folder(environ, "XDG_CONFIG_HOME", ".config"):
        yield folder / "callwright" / "config.toml"


def get_state_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of the default database and of other state."""
    return (_find_base_folder(environ, "XDG_STATE_HOME", ".local/state") or Path()) / "callwright"


def get_config_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of the user's configuration and policy."""
    return (_find_base_folder(environ, "XDG_CONFIG_HOME", ".config") or Path()) / "callwright"


def _find_base_folder(environ: Mapping[str, str], variable: str, otherwise: str) -> Path | None:
    """Return a folder of the XDG base directory specification, which says to ignore relative paths."""
    folder = environ.get(variable, "")
    home = environ.get("HOME") or environ.get("USERPROFILE")
    if Path(folder).is_absolute():
        return Path(folder)
    return Path(home, otherwise) if home else None


def find_config_file(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    """Return the file to load: the given path, `$CALLWRIGHT_CONFIG`, or the first default file that exists."""
    if path is None and (named := environ.get("CALLWRIGHT_CONFIG")):
        return Path(named)
    return path or next((each for each in iter_config_paths(environ) if each.is_file()), None)


def gather_tables(
    file: Path | None, environ: Mapping[str, str], flags: Mapping[str, Any], report: MistakeReport
) -> RawTables:
    """Merge all sources. Flags have the form of the file; a flag that is None was not passed."""
    tables: RawTables = {name: [] for name in TABLES}
    if file is not None:
        for name, table in config_file.read_tables(file, report):
            tables[name].append(table)
    _merge_environment(tables, environ, report)
    for name, value in flags.items():
        for values in value if isinstance(value, list) else [value]:
            entries = {
                key: RawEntry(value, _build_flag_origin(name, key))
                for key, value in values.items()
                if value is not None
            }
            _merge_entries(tables, name, entries, ValueOrigin("flag"))
    return tables


def _build_flag_origin(name: str, key: str) -> ValueOrigin:
    """Return the origin of a flag. A flag has the name of its key; flags such as `--backend` set whole tables."""
    return ValueOrigin(
        "flag", f"--{key.replace('_', '-')}" if not TABLES[name].is_array else f"the {key} of --{name[:-1]}"
    )


def _merge_environment(tables: RawTables, environ: Mapping[str, str], report: MistakeReport) -> None:
    """Merge the environment variables. An empty variable counts as unset, as in compose files."""
    for variable, (name, key) in ENVIRONMENT_VARIABLES.items():
        value = environ.get(variable, "")
        origin = ValueOrigin("environment", variable)
        if value and variable == "CALLWRIGHT_LOG_LEVEL":
            if value.lower() not in _LOG_LEVELS:
                report.add_mistake(origin, f'is "{value}"', 'it must be "debug" or "info"')
                continue
            value = _LOG_LEVELS[value.lower()]
        if value:
            _merge_entries(tables, name, {key: RawEntry(value, origin)}, origin)
    if environ.get("CALLWRIGHT_API_KEY"):
        origin = ValueOrigin("environment", "CALLWRIGHT_API_KEY")
        entries = {"name": RawEntry("environment", origin), "key": RawEntry("env:CALLWRIGHT_API_KEY", origin)}
        _merge_entries(tables, "keys", entries, origin)


def _merge_entries(tables: RawTables, name: str, entries: dict[str, RawEntry], origin: ValueOrigin) -> None:
    """Merge values into the single table of this kind, or into the table with the same name; otherwise add a table.

    A new table goes first: a model without a backend uses the first one, and flags come before the file.
    """
    wanted_name = entries["name"].value if "name" in entries else None
    for table in tables[name]:
        if not TABLES[name].is_array or ("name" in table.entries and table.entries["name"].value == wanted_name):
            table.entries.update(entries)
            return
    if entries:
        tables[name].insert(0, RawTable(config_file.format_table_label(name, entries), origin, entries))
