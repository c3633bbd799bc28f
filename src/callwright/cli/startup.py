"""The configuration of commands that need models: from the command line, from a file, or discovered.

No configuration is required. A backend of the command line comes first, then those of the configuration, then the
servers found on this machine. If there is none, a stand-in is served: the embedded model if it is installed, otherwise
the demo, which replays scripted answers.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from callwright.app import load_config
from callwright.backends.embedded import is_embedded_available
from callwright.backends.settings import BackendKind
from callwright.cli.config import collect_flags
from callwright.cli.discovery import ModelServer, discover_servers, find_server
from callwright.cli.gateway_client import normalize_url
from callwright.config import Config, read_config
from callwright.errors import BackendError, ConfigError
from callwright.gateway.profiles import PROFILES
from callwright.plugins import load_plugins

__all__ = ["ConfigLoader", "add_model_options", "build_config_loader", "build_config_tables", "check_url_flags"]

_BACKEND_NAMES = {"OpenAI-compatible server": "server", "LM Studio": "lm-studio"}


class ConfigLoader(NamedTuple):
    """A configuration that has backends, and how it came by them."""

    path: Path | None
    """The file, if there is one."""
    flags: dict[str, Any]
    """The command line and what was found, in the file's form."""
    servers: tuple[ModelServer, ...]
    """The servers that were looked for and found."""
    stand_in: Literal["", "embedded", "demo"] = ""
    """There was none, so this is served."""

    def load(self) -> Config:
        """The configuration, read now. Raises `ConfigError`."""
        return load_config(self.path, settings=self.flags, environment=os.environ)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where models come from."""
    group = parser.add_argument_group("models")
    group.add_argument("--config", type=Path, metavar="FILE", help="configuration file")
    group.add_argument(
        "--backend",
        type=normalize_url,
        metavar="URL",
        help="URL of a model server; its API and models are detected",
    )
    group.add_argument(
        "--backend-key", default="", metavar="KEY", help="its API key; env:NAME reads it from a variable"
    )
    group.add_argument(
        "--kind",
        choices=get_args(BackendKind),
        metavar="KIND",
        help=f"API of the server, if detection is wrong: {', '.join(get_args(BackendKind))}",
    )
    group.add_argument("--model", metavar="NAME", help="model to use")
    group.add_argument("--dialect", metavar="NAME", help="tool call format of the model, if detection is wrong")


def check_url_flags(arguments: argparse.Namespace) -> None:
    """Refuse the flags that have no effect where `--url` names a running gateway."""
    names = ("config", "backend", "backend_key", "kind", "model", "dialect", "journal")
    if given := [name for name in names if getattr(arguments, name, None)]:
        flag = given[0].replace("_", "-")
        raise ConfigError([f"--{flag} has no effect with --url: the gateway there has its own configuration"])


def build_config_loader(arguments: argparse.Namespace) -> ConfigLoader:
    """Find out what there is. Raises a sentence when it cannot work."""
    given = collect_flags(arguments)
    load_plugins()  # the configuration may name what they bring
    before = read_config(arguments.config, os.environ, given, profiles=PROFILES)
    if before.mistakes:
        raise ConfigError([str(mistake) for mistake in before.mistakes])
    if not arguments.backend and (asked := [name for name in ("kind", "model", "dialect") if getattr(arguments, name)]):
        raise ConfigError([f"--{asked[0]} needs --backend URL"])
    if before.config.backends and not arguments.backend:
        return ConfigLoader(before.file, given, ())
    found = [_find_named_server(arguments)] if arguments.backend else asyncio.run(discover_servers())
    usable = [each for each in found if each.models]
    listed = arguments.model or arguments.dialect or before.config.models
    made = build_config_tables(usable, arguments.backend_key, arguments.dialect or "auto" if listed else "")
    stand_in: Literal["", "embedded", "demo"] = "" if usable else "embedded" if is_embedded_available() else "demo"
    if stand_in:
        made["backends"] = [{"name": stand_in, "kind": "embedded" if stand_in == "embedded" else "scripted"}]
    given |= {name: rows[::-1] for name, rows in made.items()}  # a flag goes before all others, so the last is first
    return ConfigLoader(before.file, given, tuple(found), stand_in)


def _find_named_server(arguments: argparse.Namespace) -> ModelServer:
    """The server of `--backend`. One that does not list its models is taken at its word when a model is named."""
    variable = arguments.backend_key.removeprefix("env:")
    key = os.environ.get(variable, "") if variable != arguments.backend_key else variable
    try:
        found = asyncio.run(find_server(arguments.backend, key=key))
    except BackendError as problem:
        if not arguments.model or problem.kind == "unavailable":
            raise
        found = ModelServer(label="server", kind="openai", url=f"{arguments.backend}/v1", models=())
    kind = arguments.kind or found.kind
    root = found.url.removesuffix("/v1")
    url = root if kind in ("ollama", "anthropic") else f"{root}/v1"
    models = (arguments.model,) if arguments.model else found.models
    if not models:
        raise BackendError(f"{found.label} at {arguments.backend} has no models; load one, or pass --model NAME")
    return msgspec.structs.replace(found, kind=kind, url=url, models=models)


def build_config_tables(
    found: Sequence[ModelServer], key: str = "", dialect: str = ""
) -> dict[str, list[dict[str, Any]]]:
    """Servers in the form of a configuration file; with a dialect their models too, else all that they ever have."""
    names = list(_make_names_unique(_BACKEND_NAMES.get(each.label, each.label.lower()) for each in found))
    backends = [
        {"name": name, "kind": each.kind, "url": each.url, **({"key": key} if key else {})}
        for name, each in zip(names, found, strict=True)
    ]
    pairs = [(name, model) for name, each in zip(names, found, strict=True) for model in each.models]
    known: set[str] = set()
    models = []
    for name, model in pairs if dialect else ():
        public = f"{name}/{model}" if model in known else model
        known.add(public)
        models.append({"name": public, "backend": name, "model": model, "dialect": dialect})
    return {"backends": backends, "models": models}


def _make_names_unique(names: Iterable[str]) -> Iterable[str]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        yield name if counts[name] == 1 else f"{name}-{counts[name]}"
