"""Configurations as TOML: the effective one with the place of each value, and annotated files to start from.

Everything that is written here can be loaded again.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from callwright.agent.mcp.settings import McpSettings
from callwright.backends.settings import BackendSettings
from callwright.config.describe import Key, about, keys
from callwright.config.mistakes import DEFAULT, Place, Table
from callwright.config.secrets import masked
from callwright.config.settings import TABLES, Config, TableKind
from callwright.config.sources import Sheet
from callwright.engine.jobs import JobSettings
from callwright.engine.settings import ModelSettings
from callwright.gateway.settings import KeySettings

__all__ = ["effective", "example", "places_of", "starting", "toml"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WIDTH = 100

_LOCAL = BackendSettings(name="local", url="http://127.0.0.1:8000/v1")
_CODER = ModelSettings(name="coder", backend="local", model="qwen3-coder")

_EXAMPLE = Config(
    keys=(KeySettings(name="team", key="env:TEAM_KEY"),),
    backends=(msgspec.structs.replace(_LOCAL, key="env:UPSTREAM_KEY"),),
    models=(_CODER,),
    jobs=(JobSettings(name="titles", model="coder", keywords=("title for",)),),
    mcp=(McpSettings(name="files", command=("my-mcp-server", "--stdio")),),
)

_ALWAYS_SHOWN = {"server": {"host", "port"}, "backends": {"kind"}, "models": {"dialect", "profile"}}


def toml(value: Any) -> str:
    """A value as TOML writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            # JSON's escapes are TOML's too, but TOML also wants the delete character escaped.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case dict():
            inside = ", ".join(f"{_key(name)} = {toml(each)}" for name, each in value.items())
            return f"{{ {inside} }}" if inside else "{}"
        case list() | tuple():
            return f"[{', '.join(map(toml, value))}]"
        case _:
            return repr(value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else toml(name)


def effective(written: Config, sheet: Sheet) -> str:
    """The whole configuration with the place of each value. Secrets are masked; what is not set is left out."""
    lines = []
    for name, kind in TABLES.items():
        for settings, places in zip(_tables(masked(written), kind), places_of(sheet)[name], strict=True):
            lines += ["", kind.header]
            for key, place in places.items():
                value = getattr(settings, key)
                if value is not None:
                    lines.append(f"{f'{key} = {toml(value)}':<48}  # {place}")
    return "\n".join(lines[1:]) + "\n"


def places_of(sheet: Sheet) -> dict[str, list[dict[str, Place]]]:
    """The place of every value: of each table, in order, each key."""
    return {
        name: [
            {key: table.place_of(key) for key in kind.settings.__struct_fields__}
            for table in sheet[name] or ([] if kind.many else [Table(kind.header, DEFAULT, {})])
        ]
        for name, kind in TABLES.items()
    }


def example() -> str:
    """The annotated example: every key of every table with its meaning, commented out where it has its default."""
    lines = [
        "#:schema docs/callwright.schema.json",
        "# Every setting of Callwright. What is commented out has the value that it has anyway.",
        "# docs/configuration.md says where the file is looked for.",
        *(line for kind in TABLES.values() for line in _annotated(_EXAMPLE, kind, every=True)),
    ]
    return "\n".join(lines) + "\n"


def starting(backends: Sequence[BackendSettings] = (), models: Sequence[ModelSettings] = ()) -> str:
    """A short file to start from: with what was found, or else with an example of a server and a model."""
    config = Config(backends=tuple(backends) or (_LOCAL,), models=tuple(models) if backends else (_CODER,))
    shown = [TABLES[name] for name in ("server", "backends", "models")]
    lines = [
        "# Callwright's settings. To see if they are right: callwright config check",
        "# More keys: callwright config schema has all of them. Save it as callwright.schema.json and make",
        "# the first line of this file #:schema ./callwright.schema.json to have them completed in an editor.",
        *(line for kind in shown for line in _annotated(config, kind, every=False)),
        "",
        "# Who may use it. With a key it can listen on other addresses than loopback.",
        "# [[keys]]",
        '# name = "team"',
        '# key = "env:TEAM_KEY"',
    ]
    return "\n".join(lines) + "\n"


def _tables(config: Config, kind: TableKind) -> tuple[Any, ...]:
    found = getattr(config, kind.name)
    return found if kind.many else (found,)


def _annotated(config: Config, kind: TableKind, *, every: bool) -> Iterable[str]:
    for number, settings in enumerate(_tables(config, kind)):
        yield ""
        if not number:
            yield from _comment(about(kind.settings))
        yield kind.header
        for key in keys(kind.settings):
            value = getattr(settings, key.name)
            is_set = value != key.default or key.name in _ALWAYS_SHOWN.get(kind.name, ())
            if is_set or (every and not number):
                yield from [] if number else _comment(_meaning(key))
                # A switch that may be left open has no default to show.
                yield f"{'' if is_set else '#'}{key.name} = {toml(True if value is None else value)}"


def _meaning(key: Key) -> str:
    """With the choices, where there are only some."""
    return f"{key.meaning.rstrip('.')}: {key.values}." if key.values.startswith('"') else key.meaning


def _comment(text: str) -> Iterable[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
