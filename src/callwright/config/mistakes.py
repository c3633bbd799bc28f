"""The origins of values, and mistakes in them: each mistake says where it is, what is wrong, and what to do.

A value has at most one mistake: the first that is found. Secret values are never quoted.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import msgspec

__all__ = [
    "DEFAULT_ORIGIN",
    "Mistake",
    "MistakeReport",
    "RawEntry",
    "RawTable",
    "ValueOrigin",
    "find_closest_name",
    "format_choices",
]


class ValueOrigin(msgspec.Struct, frozen=True):
    """Where a value comes from: `name` is the file, the variable or the flag."""

    kind: Literal["default", "file", "environment", "flag"]
    name: str = ""
    line: int = 0

    def __str__(self) -> str:
        """Return `file:line`, which editors can open, or the name of the variable or flag."""
        return f"{self.name}:{self.line}" if self.line else self.name or self.kind


DEFAULT_ORIGIN = ValueOrigin("default")


class RawEntry(NamedTuple):
    """A value before it is checked."""

    value: Any
    origin: ValueOrigin


class RawTable(msgspec.Struct, frozen=True):
    """One table before it is checked. Its values may have different origins."""

    label: str
    origin: ValueOrigin
    entries: dict[str, RawEntry]
    reported_keys: set[str] = msgspec.field(default_factory=set)
    """The keys that already have a mistake."""

    def get_origin(self, key: str) -> ValueOrigin:
        """Return the origin of the value of a key."""
        return self.entries[key].origin if key in self.entries else DEFAULT_ORIGIN


class Mistake(msgspec.Struct, frozen=True):
    """One thing to fix. `subject` and `what` form a clause; `remedy` says what to do."""

    origin: ValueOrigin
    subject: str
    what: str
    remedy: str

    def __str__(self) -> str:
        """Return the whole sentence. A variable or flag is its own subject."""
        clause = f"{self.subject} {self.what}".strip() if self.origin.kind == "file" else self.what
        return f"{self.origin}{':' if self.origin.kind == 'file' else ''} {clause}; {self.remedy}"


class MistakeReport:
    """Collects mistakes, so that the user can fix all of them at once."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []

    def add_mistake(self, origin: ValueOrigin, what: str, remedy: str) -> None:
        """Add a mistake that belongs to no table: of a whole file, or of a variable."""
        self.mistakes.append(Mistake(origin, "", what, remedy))

    def add_key_mistake(self, table: RawTable, key: str, what: str, remedy: str) -> None:
        """Add a mistake of a table: a missing or an unknown key."""
        self._add_once(table, key, table.label, what, remedy)

    def add_value_mistake(self, table: RawTable, key: str, what: str, remedy: str) -> None:
        """Add a mistake of a value, unless the value already has one."""
        self._add_once(table, key, f"{table.label} {key}", what, remedy)

    def _add_once(self, table: RawTable, key: str, subject: str, what: str, remedy: str) -> None:
        if key not in table.reported_keys:
            table.reported_keys.add(key)
            origin = table.entries[key].origin if key in table.entries else table.origin
            self.mistakes.append(Mistake(origin, subject, what, remedy))


def find_closest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that the user most likely meant."""
    by_normal_form = {each.lower().replace("-", "_"): each for each in known}
    matches = difflib.get_close_matches(name.lower().replace("-", "_"), by_normal_form, n=1, cutoff=0.6)
    return by_normal_form[matches[0]] if matches else None


def format_choices(names: Iterable[str]) -> str:
    """Join names as in a sentence: `"a", "b" or "c"`."""
    *first, final = [f'"{name}"' for name in names]
    return f"{', '.join(first)} or {final}" if first else final
