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
    """Loads a configuration that has backends."""

    path: Path | None
    """The configuration file, if there is one."""
    flags: dict[str, Any]
    """Settings from the command line and from discovered servers, in the form of the file."""
    servers: tuple[ModelServer, ...]
    """The discovered servers."""
    stand_in: Literal["", "embedded", "demo"] = ""
    """The backend that is served because there is no other."""

    def load(self) -> Config:
        """Read the configuration. Raises `ConfigError`."""
        return load_config(self.path, settings=self.flags, environment=os.environ)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the models."""
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
    """Reject flags that have no effect with `--url`, which names a running gateway."""
    names = ("config", "backend", "backend_key", "kind", "model", "dialect", "journal")
    if used := [name for name in names if getattr(arguments, name, None)]:
        flag = used[0].replace("_", "-")
        raise ConfigError([f"--{flag} has no effect with --url; the gateway has its own configuration"])


def build_config_loader(arguments: argparse.Namespace) -> ConfigLoader:
    """Choose the backends. Raises `ConfigError` and `BackendError`."""
    flags = collect_flags(arguments)
    load_plugins()  # the configuration may name what they bring
    loaded = read_config(arguments.config, os.environ, flags, profiles=PROFILES)
    if loaded.mistakes:
        raise ConfigError([str(mistake) for mistake in loaded.mistakes])
    model_flags = [name for name in ("kind", "model", "dialect") if getattr(arguments, name)]
    if model_flags and not arguments.backend:
        raise ConfigError([f"--{model_flags[0]} needs --backend URL"])
    if loaded.config.backends and not arguments.backend:
        return ConfigLoader(loaded.file, flags, ())
    servers = [_find_named_server(arguments)] if arguments.backend else asyncio.run(discover_servers())
    usable = [server for server in servers if server.models]
    lists_models = arguments.model or arguments.dialect or loaded.config.models
    tables = build_config_tables(usable, arguments.backend_key, arguments.dialect or "auto" if lists_models else "")
    stand_in: Literal["", "embedded", "demo"] = "" if usable else "embedded" if is_embedded_available() else "demo"
    if stand_in:
        tables["backends"] = [{"name": stand_in, "kind": "embedded" if stand_in == "embedded" else "scripted"}]
    flags |= {name: rows[::-1] for name, rows in tables.items()}  # each flag is inserted first, so the last one leads
    return ConfigLoader(loaded.file, flags, tuple(servers), stand_in)


def _find_named_server(arguments: argparse.Namespace) -> ModelServer:
    """Return the server of `--backend`. With `--model`, one without a model list is treated as `openai`."""
    variable = arguments.backend_key.removeprefix("env:")
    key = os.environ.get(variable, "") if variable != arguments.backend_key else variable
    try:
        server = asyncio.run(find_server(arguments.backend, key=key))
    except BackendError as problem:
        if not arguments.model or problem.kind == "unavailable":
            raise
        server = ModelServer(label="server", kind="openai", url=f"{arguments.backend}/v1", models=())
    kind = arguments.kind or server.kind
    root = server.url.removesuffix("/v1")
    url = root if kind in ("ollama", "anthropic") else f"{root}/v1"
    models = (arguments.model,) if arguments.model else server.models
    if not models:
        raise BackendError(f"{server.label} at {arguments.backend} has no models; load one, or pass --model NAME")
    return msgspec.structs.replace(server, kind=kind, url=url, models=models)


def build_config_tables(
    servers: Sequence[ModelServer], key: str = "", dialect: str = ""
) -> dict[str, list[dict[str, Any]]]:
    """Return servers as tables of the configuration file.

    With a dialect, their current models are listed too; otherwise each backend offers whatever models it has.
    """
    names = list(_make_names_unique(_BACKEND_NAMES.get(server.label, server.label.lower()) for server in servers))
    backends = [
        {"name": name, "kind": server.kind, "url": server.url, **({"key": key} if key else {})}
        for name, server in zip(names, servers, strict=True)
    ]
    pairs = [(name, model) for name, server in zip(names, servers, strict=True) for model in server.models]
    public_names: set[str] = set()
    models = []
    for name, model in pairs if dialect else ():
        public = f"{name}/{model}" if model in public_names else model
        public_names.add(public)
        models.append({"name": public, "backend": name, "model": model, "dialect": dialect})
    return {"backends": backends, "models": models}


def _make_names_unique(names: Iterable[str]) -> Iterable[str]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        yield name if counts[name] == 1 else f"{name}-{counts[name]}"
