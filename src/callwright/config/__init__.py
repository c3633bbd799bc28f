"""The configuration: read from a file, the environment and flags, and checked as a whole.

`load_config` returns a `Config` that is ready for use, secrets included, or raises `ConfigError` with every mistake.
`read_config` also returns the origin of each value and the mistakes, for commands that show them. The caller passes
the environment; this package reads nothing but the file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from callwright.config.check import check_config, is_loopback
from callwright.config.config_diff import NEEDS_RESTART, describe_changes
from callwright.config.decode import decode_config
from callwright.config.mistakes import Mistake, MistakeReport
from callwright.config.secrets import mask_config, resolve_secrets
from callwright.config.settings import Config
from callwright.config.sources import RawTables, find_config_file, gather_tables, get_state_folder
from callwright.errors import ConfigError

__all__ = [
    "NEEDS_RESTART",
    "Config",
    "LoadedConfig",
    "describe_changes",
    "get_state_folder",
    "is_loopback",
    "load_config",
    "mask_config",
    "read_config",
]


class LoadedConfig(NamedTuple):
    """A configuration, its sources and its mistakes."""

    config: Config
    """Ready for use if there are no mistakes. Contains secrets."""
    unresolved_config: Config
    """The configuration as written, with `env:NAME` in place of secrets."""
    tables: RawTables
    """The values of all sources, with their origins."""
    file: Path | None
    mistakes: tuple[Mistake, ...]


def load_config(
    path: Path | None,
    environ: Mapping[str, str],
    flags: Mapping[str, Any] | None = None,
    *,
    profiles: Collection[str] | None = None,
) -> Config:
    """Load the configuration. Raises `ConfigError` with every mistake.

    Without a path, the file is `$CALLWRIGHT_CONFIG`, or the first of the default files that exists. `flags` has the
    form of the file, such as `{"server": {"port": "80"}}`. `profiles` are the client profiles that models may name;
    None accepts any name.
    """
    loaded = read_config(path, environ, flags, profiles=profiles)
    if loaded.mistakes:
        raise ConfigError([str(mistake) for mistake in loaded.mistakes])
    return loaded.config


def read_config(
    path: Path | None,
    environ: Mapping[str, str],
    flags: Mapping[str, Any] | None = None,
    *,
    profiles: Collection[str] | None = None,
) -> LoadedConfig:
    """Load the configuration like `load_config`, but return the mistakes instead of raising them."""
    report = MistakeReport()
    file = find_config_file(path, environ)
    tables = gather_tables(file, environ, flags or {}, report)
    unresolved = decode_config(tables, report)
    config = resolve_secrets(unresolved, tables, environ, report)
    check_config(config, tables, profiles, report)
    mistakes = sorted(report.mistakes, key=lambda mistake: mistake.origin.line)
    return LoadedConfig(config, unresolved, tables, file, tuple(mistakes))
