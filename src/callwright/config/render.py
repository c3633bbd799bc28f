"""Configurations as TOML: the effective one with the origin of each value, and annotated starter files.

Everything rendered here can be loaded again.
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
    """Render a value as TOML."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            # TOML has the escapes of JSON, and also requires the delete character to be escaped.
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
    """Render the whole configuration with the origin of each value. Secrets are masked; unset values are left out."""
    lines = []
    all_origins = collect_origins(tables)
    for name, kind in TABLES.items():
        for settings, origins in zip(_get_tables(mask_config(config), kind), all_origins[name], strict=True):
            lines += ["", kind.header]
            for key, origin in origins.items():
                value = getattr(settings, key)
                if value is not None:
                    lines.append(f"{f'{key} = {render_toml(value)}':<48}  # {origin}")
    return "\n".join(lines[1:]) + "\n"


def collect_origins(tables: RawTables) -> dict[str, list[dict[str, ValueOrigin]]]:
    """Return the origin of every value, by table, in order, and key."""
    return {
        name: [
            {key: table.get_origin(key) for key in kind.settings.__struct_fields__}
            for table in tables[name] or ([] if kind.is_array else [RawTable(kind.header, DEFAULT_ORIGIN, {})])
        ]
        for name, kind in TABLES.items()
    }


def render_example_config() -> str:
    """Render the annotated example: every key of every table, commented out where it has its default."""
    lines = [
        "#:schema docs/callwright.schema.json",
        "# Every setting of Callwright. A setting that is commented out shows its default.",
        "# docs/configuration.md says where the file is searched for.",
        *(line for kind in TABLES.values() for line in _render_annotated_lines(_EXAMPLE, kind, every=True)),
    ]
    return "\n".join(lines) + "\n"


def render_starter_config(backends: Sequence[BackendSettings] = (), models: Sequence[ModelSettings] = ()) -> str:
    """Render a short starter file with these backends and models, or with an example of each."""
    config = Config(
        backends=tuple(backends) or (_LOCAL_BACKEND,), models=tuple(models) if backends else (_CODER_MODEL,)
    )
    kinds = [TABLES[name] for name in ("server", "backends", "models")]
    lines = [
        "# The configuration of Callwright. Check it with: callwright config check",
        "# For completion in an editor, run: callwright config schema > callwright.schema.json",
        "# and make this the first line of this file: #:schema ./callwright.schema.json",
        *(line for kind in kinds for line in _render_annotated_lines(config, kind, every=False)),
        "",
        "# API keys. A key is required to listen on other addresses than loopback.",
        "# [[keys]]",
        '# name = "team"',
        '# key = "env:TEAM_KEY"',
    ]
    return "\n".join(lines) + "\n"


def _get_tables(config: Config, kind: TableKind) -> tuple[Any, ...]:
    tables = getattr(config, kind.name)
    return tables if kind.is_array else (tables,)


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
                # An optional boolean has no default to show.
                yield f"{'' if is_set else '#'}{key.name} = {render_toml(True if value is None else value)}"


def _format_meaning(key: KeyDoc) -> str:
    """Return the description of a key, with its choices if it has a fixed set."""
    return f"{key.meaning.rstrip('.')}: {key.values}." if key.values.startswith('"') else key.meaning


def _wrap_comment(text: str) -> Iterable[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
