"""Decodes raw values into settings, key by key, so that every mistake is found and not only the first.

An invalid value is reported and its default is used; the result is complete, but must not be used if there are
mistakes. The types of the settings define what is valid; `describe_type` says it in words.
"""

from __future__ import annotations

import math
from datetime import date, time
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import inspect

from callwright.config.mistakes import MistakeReport, RawEntry, RawTable, find_closest_name, format_choices
from callwright.config.settings import TABLES, Config
from callwright.config.sources import RawTables
from callwright.engine.settings import ToolRules
from callwright.prompt.settings import HistorySettings, PromptSettings, ToolLimitSettings
from callwright.wire.base import StreamStyle

__all__ = ["MODEL_TABLES", "decode_config", "describe_type"]

_Settings = TypeVar("_Settings", bound=msgspec.Struct)

_BOOLEAN_WORDS = {"on": True, "yes": True, "off": False, "no": False}
"""Accepted in addition to `true`, `false`, `1` and `0`, which msgspec converts."""

MODEL_TABLES: dict[str, type[msgspec.Struct]] = {
    "rules": ToolRules,
    "prompt": PromptSettings,
    "history": HistorySettings,
    "tool_limits": ToolLimitSettings,
    "style": StreamStyle,
}
"""Tables inside a model's table; each overrides some keys of these settings."""

_SECRET_KEYS = frozenset({"key", "headers", "url", "address"})


def decode_config(tables: RawTables, report: MistakeReport) -> Config:
    """Decode the configuration and report its mistakes. References to secrets are not resolved."""
    values: dict[str, Any] = {}
    for name, kind in TABLES.items():
        decoded = [_decode_table(kind.settings, table, report) for table in tables[name]]
        if kind.is_array:
            values[name] = tuple(decoded)
        elif decoded:
            values[name] = decoded[0]
    for table, model in zip(tables["models"], values["models"], strict=True):
        for key, settings in MODEL_TABLES.items():
            origin = table.get_origin(key)
            entries = {name: RawEntry(value, origin) for name, value in getattr(model, key).items()}
            _decode_table(settings, RawTable(f"{table.label} {key}", origin, entries), report)
    return Config(**values)


def _decode_table(settings: type[_Settings], table: RawTable, report: MistakeReport) -> _Settings:
    fields = {field.name: field for field in msgspec.structs.fields(settings)}
    values = {}
    for key, entry in table.entries.items():
        if key not in fields:
            _report_unknown_key(settings, table, key, report)
            continue
        try:
            values[key] = _convert_value(entry, fields[key].type)
        except msgspec.ValidationError:
            _report_invalid_value(table, key, fields[key].type, report)
    for key, field in fields.items():
        if field.required and key not in values:
            values[key] = ""  # only names and keys are required
            if key not in table.entries:
                report.add_key_mistake(table, key, f'has no "{key}"', f'add {key} = "…"')
    return settings(**values)


def _convert_value(entry: RawEntry, kind: Any) -> Any:
    """Convert a value to the type of its key. Numbers and booleans may be text in variables and flags.

    Raises `ValidationError`.
    """
    value = entry.value
    is_text = entry.origin.kind != "file" and isinstance(value, str)
    if is_text and kind is bool:
        value = _BOOLEAN_WORDS.get(value.lower(), value)
    if not _is_json_value(value):
        raise msgspec.ValidationError
    return msgspec.convert(value, kind, strict=not is_text)


def _is_json_value(value: Any) -> bool:
    """Return whether JSON has such a value: it has no dates, no `inf`, no `nan` and no huge numbers."""
    match value:
        case dict():
            return all(map(_is_json_value, value.values()))
        case list():
            return all(map(_is_json_value, value))
        case float():
            return math.isfinite(value)
        case int():
            return -(2**63) <= value < 2**63
        case _:
            return not isinstance(value, date | time)


def _report_unknown_key(settings: type[msgspec.Struct], table: RawTable, key: str, report: MistakeReport) -> None:
    known = settings.__struct_fields__
    homes = [kind.header for kind in TABLES.values() if key in kind.settings.__struct_fields__]
    if close := find_closest_name(key, known):
        remedy = f'did you mean "{close}"?'
        table.reported_keys.add(close)
    elif homes and settings is not ToolRules:
        remedy = f"it belongs under {' or '.join(homes)}"
    else:
        remedy = f"known keys: {', '.join(known)}"
    report.add_key_mistake(table, key, f'has no key "{key}"', remedy)


def _report_invalid_value(table: RawTable, key: str, kind: Any, report: MistakeReport) -> None:
    value = table.entries[key].value
    remedy = f"it must be {describe_type(kind)}"
    if isinstance(value, str) and get_origin(kind) is Literal and (close := find_closest_name(value, get_args(kind))):
        remedy += f'; did you mean "{close}"?'
    report.add_value_mistake(table, key, f"is {_describe_value(key, value)}", remedy)


def _describe_value(key: str, value: Any) -> str:
    """Describe an invalid value in a message. A possible secret is described only by its type."""
    match value:
        case bool():
            return str(value).lower()
        case str() if key not in _SECRET_KEYS:
            return f'"{value}"' if len(value) <= 40 else f'"{value[:40]}…"'
        case int() | float() if key not in _SECRET_KEYS:
            return str(value)
        case str():
            return "a string" if value else "empty"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "a date or time"


def describe_type(kind: Any) -> str:
    """Describe the values of a type in words, such as `a whole number from 0 to 65535`."""
    if get_origin(kind) is Literal:
        return format_choices(get_args(kind))  # in source order, which msgspec does not keep
    return _describe_type_info(inspect.type_info(kind))


def _describe_type_info(info: inspect.Type) -> str:
    match info:
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return f"a whole number{_format_bounds(info)}"
        case inspect.FloatType():
            return f"a number{_format_bounds(info)}"
        case inspect.StrType(min_length=1):
            return "a non-empty string"
        case inspect.StrType():
            return "a string"
        case inspect.VarTupleType():
            return "a list of strings"
        case inspect.UnionType(types=types):
            return " or ".join(_describe_type_info(each) for each in types if not isinstance(each, inspect.NoneType))
        case inspect.DictType(value_type=inspect.StrType()):
            return "a table of strings"
        case _:
            return "a table of JSON values"


def _format_bounds(info: inspect.IntType | inspect.FloatType) -> str:
    match info.gt, info.ge, info.le:
        case None, None, None:
            return ""
        case None, low, None:
            return f" of at least {low}"
        case low, None, None:
            return f" above {low}"
        case _, low, high:
            return f" from {low} to {high}"
