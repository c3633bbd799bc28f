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
from callwright.config.describe import KeyDoc, describe_table, list_key_docs
from callwright.config.mistakes import DEFAULT_ORIGIN, RawTable, ValueOrigin
from callwright.config.secrets import mask_config
from callwright.config.settings import TABLES, Config, TableKind
from callwright.config.sources import RawTables
from callwright.engine.jobs import JobSettings
from callwright.engine.settings import ModelSettings
from callwright.gateway.settings import KeySettings

__all__ = [
    "collect_origins",
    "render_effective_config",
    "render_example_config",
    "render_starter_config",
    "render_toml",
]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_WIDTH = 100

_LOCAL_BACKEND = BackendSettings(name="local", url="http://127.0.0.1:8000/v1")
_CODER_MODEL = ModelSettings(name="coder", backend="local", model="qwen3-coder")

_EXAMPLE = Config(
    keys=(KeySettings(name="team", key="env:TEAM_KEY"),),
    backends=(msgspec.structs.replace(_LOCAL_BACKEND, key="env:UPSTREAM_KEY"),),
    models=(_CODER_MODEL,),
    jobs=(JobSettings(name="titles", model="coder", keywords=("title for",)),),
    mcp=(McpSettings(name="files", command=("my-mcp-server", "--stdio")),),
)

_ALWAYS_LISTED = {"server": {"host", "port"}, "backends": {"kind"}, "models": {"dialect", "profile"}}


def render_toml(value: Any) -> str:
    """A value as TOML writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            # JSON's escapes are TOML's too, but TOML also wants the delete character escaped.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case dict():
            inside = ", ".join(f"{_render_key(name)} = {render_toml(each)}" for name, each in value.items())
            return f"{{ {inside} }}" if inside else "{}"
        case list() | tuple():
            return f"[{', '.join(map(render_toml, value))}]"
        case _:
            return repr(value)


def _render_key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else render_toml(name)


def render_effective_config(config: Config, tables: RawTables) -> str:
    """The whole configuration with the place of each value. Secrets are masked; what is not set is left out."""
    lines = []
    for name, kind in TABLES.items():
        for settings, places in zip(_get_tables(mask_config(config), kind), collect_origins(tables)[name], strict=True):
            lines += ["", kind.header]
            for key, place in places.items():
                value = getattr(settings, key)
                if value is not None:
                    lines.append(f"{f'{key} = {render_toml(value)}':<48}  # {place}")
    return "\n".join(lines[1:]) + "\n"


def collect_origins(tables: RawTables) -> dict[str, list[dict[str, ValueOrigin]]]:
    """The place of every value: of each table, in order, each key."""
    return {
        name: [
            {key: table.get_origin(key) for key in kind.settings.__struct_fields__}
            for table in tables[name] or ([] if kind.is_array else [RawTable(kind.header, DEFAULT_ORIGIN, {})])
        ]
        for name, kind in TABLES.items()
    }


def render_example_config() -> str:
    """The annotated example: every key of every table with its meaning, commented out where it has its default."""
    lines = [
        "#:schema docs/callwright.schema.json",
        "# Every setting of Callwright. What is commented out has the value that it has anyway.",
        "# docs/configuration.md says where the file is looked for.",
        *(line for kind in TABLES.values() for line in _render_annotated_lines(_EXAMPLE, kind, every=True)),
    ]
    return "\n".join(lines) + "\n"


def render_starter_config(backends: Sequence[BackendSettings] = (), models: Sequence[ModelSettings] = ()) -> str:
    """A short file to start from: with what was found, or else with an example of a server and a model."""
    config = Config(
        backends=tuple(backends) or (_LOCAL_BACKEND,), models=tuple(models) if backends else (_CODER_MODEL,)
    )
    shown = [TABLES[name] for name in ("server", "backends", "models")]
    lines = [
        "# Callwright's settings. To see if they are right: callwright config check",
        "# More keys: callwright config schema has all of them. Save it as callwright.schema.json and make",
        "# the first line of this file #:schema ./callwright.schema.json to have them completed in an editor.",
        *(line for kind in shown for line in _render_annotated_lines(config, kind, every=False)),
        "",
        "# Who may use it. With a key it can listen on other addresses than loopback.",
        "# [[keys]]",
        '# name = "team"',
        '# key = "env:TEAM_KEY"',
    ]
    return "\n".join(lines) + "\n"


def _get_tables(config: Config, kind: TableKind) -> tuple[Any, ...]:
    found = getattr(config, kind.name)
    return found if kind.is_array else (found,)


def _render_annotated_lines(config: Config, kind: TableKind, *, every: bool) -> Iterable[str]:
    for number, settings in enumerate(_get_tables(config, kind)):
        yield ""
        if not number:
            yield from _wrap_comment(describe_table(kind.settings))
        yield kind.header
        for key in list_key_docs(kind.settings):
            value = getattr(settings, key.name)
            is_set = value != key.default or key.name in _ALWAYS_LISTED.get(kind.name, ())
            if is_set or (every and not number):
                yield from [] if number else _wrap_comment(_format_meaning(key))
                # A switch that may be left open has no default to show.
                yield f"{'' if is_set else '#'}{key.name} = {render_toml(True if value is None else value)}"


def _format_meaning(key: KeyDoc) -> str:
    """With the choices, where there are only some."""
    return f"{key.meaning.rstrip('.')}: {key.values}." if key.values.startswith('"') else key.meaning


def _wrap_comment(text: str) -> Iterable[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
