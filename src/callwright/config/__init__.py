"""The configuration: read once from file, environment and flags, and checked as a whole.

`load` gives a `Config` that can be used as it is, secrets included, or raises `ConfigError` with every mistake.
`read` gives more, for those who show it: where each value came from, and what is wrong. The environment is handed
in; nothing here looks at the process, and only the file is read.
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
    """A configuration and how it came about."""

    config: Config
    """Ready for use, if there are no mistakes. Holds secrets."""
    unresolved_config: Config
    """As it was written: with `env:NAME` where a secret is referred to."""
    tables: RawTables
    """What was given, and where."""
    file: Path | None
    mistakes: tuple[Mistake, ...]


def load_config(
    path: Path | None,
    environ: Mapping[str, str],
    flags: Mapping[str, Any] | None = None,
    *,
    profiles: Collection[str] | None = None,
) -> Config:
    """The configuration to run with. Raises `ConfigError`.

    Without a path, `$CALLWRIGHT_CONFIG` names the file, or it is looked for. `flags` has the form of the file, such
    as `{"server": {"port": "80"}}`. `profiles` are the client profiles that models may name; None takes any.
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
    """The same, for those who show it: mistakes are listed, not raised."""
    report = MistakeReport()
    file = find_config_file(path, environ)
    sheet = gather_tables(file, environ, flags or {}, report)
    written = decode_config(sheet, report)
    config = resolve_secrets(written, sheet, environ, report)
    check_config(config, sheet, profiles, report)
    return LoadedConfig(config, written, sheet, file, tuple(sorted(report.mistakes, key=lambda each: each.origin.line)))
