"""Describes the changes between two configurations for the log. Secrets are masked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from callwright.config.secrets import mask_config
from callwright.config.settings import TABLES, Config

__all__ = ["NEEDS_RESTART", "describe_changes"]

NEEDS_RESTART = frozenset({"host", "port"})
"""Keys of `[server]` that are read only at the start, when the socket is opened."""


def describe_changes(old: Config, new: Config) -> tuple[str, ...]:
    """Return a sentence for each change. It says so if the change needs a restart."""
    return tuple(_iter_changes(old, new))


def _iter_changes(old: Config, new: Config) -> Iterator[str]:
    shown_old, shown_new = mask_config(old), mask_config(new)
    for name, kind in TABLES.items():
        before, after = getattr(old, name), getattr(new, name)
        if not kind.is_array:
            yield from _iter_table_changes(
                kind.header, (before, after), (getattr(shown_old, name), getattr(shown_new, name))
            )
            continue
        was, now = _index_by_name(before), _index_by_name(after)
        shown_was, shown_now = _index_by_name(getattr(shown_old, name)), _index_by_name(getattr(shown_new, name))
        yield from (f'{kind.header} "{each}" was removed' for each in was if each not in now)
        yield from (f'{kind.header} "{each}" was added' for each in now if each not in was)
        common = [each for each in now if each in was]
        for each in common:
            label = f'{kind.header} "{each}"'
            yield from _iter_table_changes(label, (was[each], now[each]), (shown_was[each], shown_now[each]))
        if common != [each for each in was if each in now]:
            yield f"{kind.header} tables were reordered"


def _index_by_name(tables: tuple[Any, ...]) -> dict[str, Any]:
    return {table.name: table for table in tables}


def _iter_table_changes(label: str, tables: tuple[Any, Any], masked_tables: tuple[Any, Any]) -> Iterator[str]:
    """Compare the values themselves, and describe them by their masked form."""
    for key in tables[0].__struct_fields__:
        if getattr(tables[0], key) == getattr(tables[1], key):
            continue
        before, after = (msgspec.json.encode(getattr(table, key)).decode() for table in masked_tables)
        change = "changed" if before == after else f"changed from {before} to {after}"
        needs_restart = label == "[server]" and key in NEEDS_RESTART
        yield f"{label} {key} {change}{'; restart the server to apply it' if needs_restart else ''}"
