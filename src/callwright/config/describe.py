"""Documentation of the settings, generated from their classes: the docstring below a field describes its key.

It is the source of the JSON schema for editors and of the tables in docs/configuration.md.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from callwright.config.decode import MODEL_TABLES, describe_type
from callwright.config.settings import TABLES, Config
from callwright.config.sources import ENVIRONMENT_VARIABLES

__all__ = ["REQUIRED", "KeyDoc", "build_json_schema", "describe_table", "list_key_docs", "render_markdown"]

REQUIRED = object()


class KeyDoc(NamedTuple):
    """The documentation of one key."""

    name: str
    values: str
    default: Any
    meaning: str


def describe_table(settings: type[msgspec.Struct]) -> str:
    """Return the purpose of a table: its docstring after the colon."""
    purpose = inspect.cleandoc(settings.__doc__ or "").partition(": ")[2]
    return f"{purpose[:1].upper()}{purpose[1:]}"


def list_key_docs(settings: type[msgspec.Struct]) -> tuple[KeyDoc, ...]:
    """Return the documentation of every key of a table, in order."""
    meanings = _read_field_docs(settings)
    return tuple(
        KeyDoc(field.name, describe_type(field.type), _get_default(field), meanings.get(field.name, ""))
        for field in msgspec.structs.fields(settings)
    )


def _get_default(field: msgspec.structs.FieldInfo) -> Any:
    if field.required:
        return REQUIRED
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def _read_field_docs(settings: type[msgspec.Struct]) -> dict[str, str]:
    """Read the docstrings of the fields from the source, because Python does not keep them."""
    (definition,) = ast.parse(inspect.getsource(settings)).body
    docs = {}
    for field, following in pairwise(getattr(definition, "body", [])):
        match field, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                docs[name] = " ".join(text.split())
            case _:
                pass
    return docs


def build_json_schema() -> dict[str, Any]:
    """Build the JSON schema of the file, for editors that complete and check TOML."""
    (_, definitions) = msgspec.json.schema_components([Config, *MODEL_TABLES.values()], ref_template="#/$defs/{name}")
    whole = definitions.pop(Config.__name__)
    for settings in (*(kind.settings for kind in TABLES.values()), *MODEL_TABLES.values()):
        definition = definitions[settings.__name__]
        # Python 3.13 removes the indentation from docstrings, older versions keep it.
        definition["description"] = " ".join(definition["description"].split())
        properties = definition["properties"]
        for key in list_key_docs(settings):
            properties[key.name]["description"] = key.meaning
    properties = definitions["ModelSettings"]["properties"]
    for name, settings in MODEL_TABLES.items():
        properties[name] = {"$ref": f"#/$defs/{settings.__name__}", "description": properties[name]["description"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **whole,
        "title": "callwright.toml",
        "$defs": dict(sorted(definitions.items())),
    }


def render_markdown() -> str:
    """Render the tables of docs/configuration.md."""
    parts = []
    for header, settings in _iter_documented_tables():
        rows = [
            f"| `{key.name}` | {_escape_cell(key.values)} | {_format_default(key.default)} | "
            f"{_escape_cell(key.meaning)} |"
            for key in list_key_docs(settings)
        ]
        parts.append(f"### `{header}`\n\n{describe_table(settings)}\n")
        parts.append("\n".join(["| key | value | default | meaning |", "|---|---|---|---|", *rows]) + "\n")
    rows = [
        f"| `{variable}` | `{TABLES[table].header}` `{key}` |"
        for variable, (table, key) in ENVIRONMENT_VARIABLES.items()
    ]
    parts.append("### Environment variables\n")
    parts.append("\n".join(["| variable | key |", "|---|---|", *rows]))
    return "\n".join(parts)


def _iter_documented_tables() -> Iterator[tuple[str, type[msgspec.Struct]]]:
    """Yield every table with its header. Tables that exist only inside a model's table follow `[[models]]`."""
    for kind in TABLES.values():
        yield kind.header, kind.settings
        if kind.name == "models":
            yield from (
                (f"[models.{name}]", inner)
                for name, inner in MODEL_TABLES.items()
                if name in ("history", "tool_limits")
            )


def _format_default(default: Any) -> str:
    if default is REQUIRED:
        return "required"
    return "" if default in (None, "", (), {}) else f"`{json.dumps(default)}`"


def _escape_cell(text: str) -> str:
    return text.replace("|", "\\|")
