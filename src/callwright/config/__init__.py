"""The configuration: read once from file, environment and flags, and checked as a whole.

`load` gives a `Config` that can be used as it is, secrets included, or raises `ConfigError` with every mistake.
`read` gives more, for those who show it: where each value came from, and what is wrong. The environment is handed
in; nothing here looks at the process, and only the file is read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from callwright.config.changes import NEEDS_RESTART, changes
from callwright.config.check import check, is_loopback
from callwright.config.decode import decode
from callwright.config.mistakes import Mistake, Report
from callwright.config.secrets import masked, resolve
from callwright.config.settings import Config
from callwright.config.sources import Sheet, find, gather, state_folder
from callwright.errors import ConfigError

__all__ = ["NEEDS_RESTART", "Config", "Loaded", "changes", "is_loopback", "load", "masked", "read", "state_folder"]


class Loaded(NamedTuple):
    """A configuration and how it came about."""

    config: Config
    """Ready for use, if there are no mistakes. Holds secrets."""
    written: Config
    """As it was written: with `env:NAME` where a secret is referred to."""
    sheet: Sheet
    """What was given, and where."""
    file: Path | None
    mistakes: tuple[Mistake, ...]


def load(
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
    loaded = read(path, environ, flags, profiles=profiles)
    if loaded.mistakes:
        raise ConfigError([str(mistake) for mistake in loaded.mistakes])
    return loaded.config


def read(
    path: Path | None,
    environ: Mapping[str, str],
    flags: Mapping[str, Any] | None = None,
    *,
    profiles: Collection[str] | None = None,
) -> Loaded:
    """The same, for those who show it: mistakes are listed, not raised."""
    report = Report()
    file = find(path, environ)
    sheet = gather(file, environ, flags or {}, report)
    written = decode(sheet, report)
    config = resolve(written, sheet, environ, report)
    check(config, sheet, profiles, report)
    return Loaded(config, written, sheet, file, tuple(sorted(report.mistakes, key=lambda each: each.place.line)))
