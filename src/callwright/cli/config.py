"""`callwright config`: check the settings, show them, describe them, write a file to start from."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from callwright.backends.settings import BackendSettings
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
  callwright config init                 write callwright.toml, to start from
  callwright config check                is it right? every mistake, with its line
  callwright config show --port 9000     what would hold, and where each value comes from
  callwright config schema               the JSON schema, for editors

Flags come before the environment, the environment before the file. Without FILE it is $CALLWRIGHT_CONFIG,
callwright.toml in this folder, or callwright/config.toml in $XDG_CONFIG_HOME (~/.config).
"""


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "config",
        help="check, show and describe the settings",
        description="The settings: are they right, what are they, what can they be.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=lambda _: parser.print_help() or 0)
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, run, about in (
        ("check", run_check, "say ok, or list every mistake; exit code 1 if there is one"),
        ("show", run_show, "the settings that hold, as TOML, with the place of each; secrets are not shown"),
    ):
        verb = verbs.add_parser(name, help=about, description=about)
        verb.add_argument("file", nargs="?", type=Path, metavar="FILE", help="the file, instead of the usual one")
        add_config_flags(verb)
        verb.add_argument("--json", action="store_true", help="as JSON, for programs")
        verb.set_defaults(run=run)
    verbs.add_parser("schema", help="the JSON schema of the file").set_defaults(run=run_schema)
    init = verbs.add_parser("init", help=f"write a file to start from ({CONFIG_FILE_NAME}); none is written over")
    init.add_argument("file", nargs="?", type=Path, default=Path(CONFIG_FILE_NAME), metavar="FILE", help="where to")
    init.set_defaults(run=run_init)


def add_config_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that set something for one run."""
    group = add_journal_flag(parser)
    group.add_argument("--host", help="the address to listen on")
    group.add_argument("--port", help="the port to listen on; 0 for any")
    group.add_argument("--debug", action="store_const", const=True, help="write more into the log")


def add_journal_flag(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the one of them that every command takes that runs turns; returns the group for others."""
    group = parser.add_argument_group("settings for this run")
    group.add_argument(
        "--journal", metavar="LEVEL", help="how much of each turn to record: off, meta (as the log) or full"
    )
    return group


def collect_flags(arguments: argparse.Namespace) -> dict[str, Any]:
    """The flags of `add_config_flags` in the form that `callwright.config` takes; a command may have some of them."""
    server = {name: getattr(arguments, name, None) for name in ("host", "port", "debug")}
    return {"server": server, "store": {"journal": getattr(arguments, "journal", None)}}


def run_check(arguments: argparse.Namespace) -> int:
    """Say whether the settings are right."""
    loaded = read_config(arguments.file, os.environ, collect_flags(arguments))
    if arguments.json:
        mistakes = [{**msgspec.to_builtins(mistake), "sentence": str(mistake)} for mistake in loaded.mistakes]
        _print_json({"ok": not mistakes, "file": _get_file_name(loaded), "mistakes": mistakes})
    elif loaded.mistakes:
        print("\n".join(map(str, loaded.mistakes)))
    else:
        print(_format_summary(loaded))
    return 1 if loaded.mistakes else 0


def run_show(arguments: argparse.Namespace) -> int:
    """Show the settings that hold."""
    loaded = read_config(arguments.file, os.environ, collect_flags(arguments))
    if loaded.mistakes:
        raise ConfigError([str(mistake) for mistake in loaded.mistakes])
    if arguments.json:
        places = {
            name: found if TABLES[name].is_array else found[0] for name, found in collect_origins(loaded.tables).items()
        }
        _print_json(
            {"file": _get_file_name(loaded), "settings": mask_config(loaded.unresolved_config), "places": places}
        )
    else:
        print(render_effective_config(loaded.unresolved_config, loaded.tables), end="")
    return 0


def run_schema(_: argparse.Namespace) -> int:
    """Print the JSON schema."""
    _print_json(build_json_schema())
    return 0


def run_init(arguments: argparse.Namespace) -> int:
    """Write a file to start from."""
    write_starter_config(arguments.file)
    print(f"{arguments.file} is written; after you changed it: callwright config check {arguments.file}")
    return 0


def write_starter_config(
    file: Path, backends: Sequence[BackendSettings] = (), models: Sequence[ModelSettings] = ()
) -> None:
    """Write a file to start from, with the servers and models that were found. Raises `ConfigError`."""
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(render_starter_config(backends, models))
    except FileExistsError:
        raise ConfigError([f"{file} is there already and was left as it is; name another file"]) from None
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        raise ConfigError([f"{file} cannot be written: {reason}; name a file in a folder of your own"]) from None


def _format_summary(loaded: LoadedConfig) -> str:
    config: Config = loaded.config
    counts = ", ".join(
        f"{len(tables)} {name.removesuffix('s') if len(tables) == 1 else name}"
        for name, tables in (("models", config.models), ("backends", config.backends), ("keys", config.keys))
    )
    looked = ", ".join(map(str, iter_config_paths(os.environ)))
    subject = (
        f"{loaded.file}: ok" if loaded.file else f"ok: there is no file, so the defaults hold (looked for {looked})"
    )
    return f"{subject}; {counts}, at {config.server.host}:{config.server.port}"


def _get_file_name(loaded: LoadedConfig) -> str | None:
    return str(loaded.file) if loaded.file else None


def _print_json(value: Any) -> None:
    print(json.dumps(msgspec.to_builtins(value), ensure_ascii=False, indent=2))
