"""Reads the configuration file into tables of raw values, each with its line. Unknown tables are reported."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from callwright.config.mistakes import MistakeReport, RawEntry, RawTable, ValueOrigin, find_closest_name
from callwright.config.settings import TABLES

__all__ = ["format_table_label", "read_tables"]

_KeyPath = tuple[str | int, ...]

_NAME = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_NAMES = rf"{_NAME}(?:\s*\.\s*{_NAME})*"
_LINE = re.compile(rf"\s*(?:(?P<bracket>\[\[?)\s*(?P<header>{_NAMES})\s*\]|(?P<key>{_NAMES})\s*=)")
_SYNTAX = re.compile(r"(?P<what>.*) \(at line (?P<line>\d+), column (?P<column>\d+)\)")


def read_tables(file: Path, report: MistakeReport) -> Iterator[tuple[str, RawTable]]:
    """Yield every table of the file with its name, in order."""
    text = _read_text(file, report)
    data = _parse_toml(file, text, report)
    lines = _find_lines(text)
    for name, value in data.items():
        origin = ValueOrigin("file", str(file), lines.get((name,), lines.get((name, 0), 0)))
        match value:
            case _ if name not in TABLES:
                _report_unknown_table(report, origin, name)
            case list() if TABLES[name].is_array and all(isinstance(each, dict) for each in value):
                for number, each in enumerate(value):
                    yield name, _build_table(file, lines, (name, number), each)
            case dict() if not TABLES[name].is_array:
                yield name, _build_table(file, lines, (name,), value)
            case _:
                is_array, header = TABLES[name].is_array, TABLES[name].header
                what = f'"{name}" must be {"an array of tables" if is_array else "a table"}'
                report.add_mistake(origin, what, f"write {header}{' before each of them' if is_array else ' once'}")


def format_table_label(name: str, entries: Mapping[str, RawEntry], number: int = 1) -> str:
    """Return the label of a table in messages: its header, and in an array also its name or number."""
    header = TABLES[name].header
    if not TABLES[name].is_array:
        return header
    own_name = entries["name"].value if "name" in entries else None
    return f'{header} "{own_name}"' if own_name and isinstance(own_name, str) else f"{header} number {number}"


def _read_text(file: Path, report: MistakeReport) -> str:
    origin = ValueOrigin("file", str(file))
    try:
        return file.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
    except OSError as problem:
        remedy = f"choose another file, or create this one with: callwright config init {file}"
        report.add_mistake(origin, f"cannot be read: {(problem.strerror or str(problem)).lower()}", remedy)
    except UnicodeDecodeError as problem:
        report.add_mistake(
            origin, f"is not UTF-8 (byte {problem.object[problem.start]:#04x})", "convert it, e.g. with iconv"
        )
    return ""


def _parse_toml(file: Path, text: str, report: MistakeReport) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError as problem:  # TOML errors, and Python's own for numbers with thousands of digits
        match = _SYNTAX.fullmatch(str(problem))
        what = f"{match['what']} in column {match['column']}" if match else str(problem)
        remedy = "put strings in quotes, and each key = value on its own line"
        line = int(match["line"]) if match else 0
        report.add_mistake(ValueOrigin("file", str(file), line), f"invalid TOML: {what[0].lower()}{what[1:]}", remedy)
        return {}


def _build_table(file: Path, lines: dict[_KeyPath, int], path: _KeyPath, values: dict[str, Any]) -> RawTable:
    start = lines.get(path, 0)
    entries = {
        key: RawEntry(value, ValueOrigin("file", str(file), lines.get((*path, key), start)))
        for key, value in values.items()
    }
    name, *number = path
    return RawTable(
        format_table_label(str(name), entries, sum(map(int, number), 1)), ValueOrigin("file", str(file), start), entries
    )


def _report_unknown_table(report: MistakeReport, origin: ValueOrigin, name: str) -> None:
    """Report an unknown name at the top level: a misspelled table, or a key outside its table."""
    homes = [kind.header for kind in TABLES.values() if name in kind.settings.__struct_fields__]
    if homes:
        remedy = f"it belongs under {' or '.join(homes)}"
    elif close := find_closest_name(name, TABLES):
        remedy = f"did you mean {TABLES[close].header}?"
    else:
        remedy = f"known tables: {', '.join(kind.header for kind in TABLES.values())}"
    report.add_mistake(origin, f'unknown table or key "{name}"', remedy)


def _find_lines(text: str) -> dict[_KeyPath, int]:
    """Return the line of each header and key. Only messages use it, so multi-line strings are not handled."""
    lines: dict[_KeyPath, int] = {}
    counts: dict[_KeyPath, int] = {}
    table: _KeyPath = ()
    for number, line in enumerate(text.split("\n"), 1):
        match = _LINE.match(line)
        if match is None:
            continue
        path: _KeyPath = () if match["header"] else table
        for name in re.findall(_NAME, match["header"] or match["key"]):
            path = (*path, *((counts[path],) if path in counts and match["header"] else ()), name.strip("\"'"))
            lines.setdefault(path, number)
        if match["header"]:
            table = path
        if match["bracket"] == "[[":
            counts[path] = counts.get(path, -1) + 1
            table = (*path, counts[path])
            lines.setdefault(table, number)
    return lines
