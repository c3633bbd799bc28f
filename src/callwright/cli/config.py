"""`callwright config`: check, show and document the configuration, and write a starter file."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from callwright.backends.settings import BackendSettings
from callwright.cli.subcommands import add_subcommand
from callwright.config import Config, LoadedConfig, mask_config, read_config
from callwright.config.describe import build_json_schema
from callwright.config.render import collect_origins, render_effective_config, render_starter_config
from callwright.config.settings import TABLES
from callwright.config.sources import CONFIG_FILE_NAME, iter_config_paths
from callwright.engine.settings import ModelSettings
from callwright.errors import ConfigError

__all__ = [
    "add_command",
    "add_config_flags",
    "add_journal_flag",
    "collect_flags",
    "run_check",
    "run_init",
    "run_schema",
    "run_show",
    "write_starter_config",
]

_EXAMPLES = """\
examples:
  callwright config init               write a starter callwright.toml
  callwright config check              list every error with its line
  callwright config show --port 9000   show each value and its origin
  callwright config schema             print the JSON schema, for editors

Flags override environment variables, which override the file. The default
file is $CALLWRIGHT_CONFIG, ./callwright.toml, or callwright/config.toml in
$XDG_CONFIG_HOME (~/.config).
"""


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "config",
        help="check and show the configuration",
        description="Check and show the configuration, print its schema, or write a starter file.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=lambda _: parser.print_help() or 0)
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, run, about in (
        ("check", run_check, "check the configuration; exit code 1 if it has errors"),
        ("show", run_show, "show every value as TOML, with its origin; secrets are masked"),
    ):
        verb = add_subcommand(verbs, name, about)
        verb.add_argument("file", nargs="?", type=Path, metavar="FILE", help="configuration file")
        add_config_flags(verb)
        verb.add_argument("--json", action="store_true", help="output JSON")
        verb.set_defaults(run=run)
    about = "print the JSON schema of the configuration file"
    add_subcommand(verbs, "schema", about).set_defaults(run=run_schema)
    about = "write a starter file; an existing file is not overwritten"
    init = add_subcommand(verbs, "init", about)
    init.add_argument(
        "file",
        nargs="?",
        type=Path,
        default=Path(CONFIG_FILE_NAME),
        metavar="FILE",
        help="file to write (default: %(default)s)",
    )
    init.set_defaults(run=run_init)


def add_config_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that override settings for one run."""
    group = add_journal_flag(parser)
    group.add_argument("--host", help="address to listen on")
    group.add_argument("--port", help="port to listen on; 0 picks a free one")
    group.add_argument("--debug", action="store_const", const=True, help="write debug messages to the log")


def add_journal_flag(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add `--journal`, for every command that runs turns, and return its group."""
    group = parser.add_argument_group("settings for this run")
    group.add_argument("--journal", metavar="LEVEL", help="how much of each turn to record: off, meta or full")
    return group


def collect_flags(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the flags of `add_config_flags` in the form that `callwright.config` takes.

    Flags that the command does not have are None.
    """
    server = {name: getattr(arguments, name, None) for name in ("host", "port", "debug")}
    return {"server": server, "store": {"journal": getattr(arguments, "journal", None)}}


def _read_config(arguments: argparse.Namespace) -> LoadedConfig:
    from callwright.plugins import load_plugins

    load_plugins()  # the configuration may name what they bring
    return read_config(arguments.file, os.environ, collect_flags(arguments))


def run_check(arguments: argparse.Namespace) -> int:
    """Check the configuration and list its mistakes."""
    loaded = _read_config(arguments)
    if arguments.json:
        mistakes = [{**msgspec.to_builtins(mistake), "message": str(mistake)} for mistake in loaded.mistakes]
        _print_json({"ok": not mistakes, "file": _get_file_name(loaded), "mistakes": mistakes})
    elif loaded.mistakes:
        print("\n".join(map(str, loaded.mistakes)))
    else:
        print(_format_summary(loaded))
    return 1 if loaded.mistakes else 0


def run_show(arguments: argparse.Namespace) -> int:
    """Show the effective configuration."""
    loaded = _read_config(arguments)
    if loaded.mistakes:
        raise ConfigError([str(mistake) for mistake in loaded.mistakes])
    if arguments.json:
        origins = {
            name: found if TABLES[name].is_array else found[0] for name, found in collect_origins(loaded.tables).items()
        }
        _print_json(
            {"file": _get_file_name(loaded), "settings": mask_config(loaded.unresolved_config), "origins": origins}
        )
    else:
        print(render_effective_config(loaded.unresolved_config, loaded.tables), end="")
    return 0


def run_schema(_: argparse.Namespace) -> int:
    """Print the JSON schema."""
    _print_json(build_json_schema())
    return 0


def run_init(arguments: argparse.Namespace) -> int:
    """Write a starter file."""
    write_starter_config(arguments.file)
    print(f"Wrote {arguments.file}. Edit it, then run: callwright config check {arguments.file}")
    return 0


def write_starter_config(
    file: Path, backends: Sequence[BackendSettings] = (), models: Sequence[ModelSettings] = ()
) -> None:
    """Write a starter file with the given backends and models. Raises `ConfigError`."""
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(render_starter_config(backends, models))
    except FileExistsError:
        raise ConfigError([f"{file} already exists and was not changed; choose another file name"]) from None
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        raise ConfigError([f"cannot write {file}: {reason}; choose a file in a folder that you can write to"]) from None


def _format_summary(loaded: LoadedConfig) -> str:
    config: Config = loaded.config
    counts = ", ".join(
        f"{len(tables)} {name.removesuffix('s') if len(tables) == 1 else name}"
        for name, tables in (("models", config.models), ("backends", config.backends), ("keys", config.keys))
    )
    searched = ", ".join(map(str, iter_config_paths(os.environ)))
    subject = f"{loaded.file}: ok" if loaded.file else f"ok: no file found, using defaults (searched {searched})"
    return f"{subject}; {counts}, listening on {config.server.host}:{config.server.port}"


def _get_file_name(loaded: LoadedConfig) -> str | None:
    return str(loaded.file) if loaded.file else None


def _print_json(value: Any) -> None:
    print(json.dumps(msgspec.to_builtins(value), ensure_ascii=False, indent=2))
