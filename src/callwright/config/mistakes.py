"""Where a value came from, and what is wrong with it: each mistake is a sentence with its place and its remedy.

A value has one mistake at most: the first that is found. Values that are secret are never quoted.
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
    """Where a value came from: `name` is the file, the variable or the flag."""

    kind: Literal["default", "file", "environment", "flag"]
    name: str = ""
    line: int = 0

    def __str__(self) -> str:
        """In the form that editors follow, for a file."""
        return f"{self.name}:{self.line}" if self.line else self.name or self.kind


DEFAULT_ORIGIN = ValueOrigin("default")


class RawEntry(NamedTuple):
    """A value as somebody gave it, not checked yet."""

    value: Any
    origin: ValueOrigin


class RawTable(msgspec.Struct, frozen=True):
    """One table as it was given, by whomever: the values of one table may have many places."""

    label: str
    origin: ValueOrigin
    entries: dict[str, RawEntry]
    reported_keys: set[str] = msgspec.field(default_factory=set)
    """The keys of which enough was said."""

    def get_origin(self, key: str) -> ValueOrigin:
        """Where the value of a key came from."""
        return self.entries[key].origin if key in self.entries else DEFAULT_ORIGIN


class Mistake(msgspec.Struct, frozen=True):
    """One thing to mend. `subject` and `what` make a clause; `remedy` is what to do about it."""

    origin: ValueOrigin
    subject: str
    what: str
    remedy: str

    def __str__(self) -> str:
        """The whole sentence. A variable or flag is its own subject."""
        clause = f"{self.subject} {self.what}".strip() if self.origin.kind == "file" else self.what
        return f"{self.origin}{':' if self.origin.kind == 'file' else ''} {clause}; {self.remedy}"


class MistakeReport:
    """Collects mistakes, so that a person can mend all of them at once."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []

    def add_mistake(self, origin: ValueOrigin, what: str, remedy: str) -> None:
        """A mistake that is in no table: of a whole file, or of a variable."""
        self.mistakes.append(Mistake(origin, "", what, remedy))

    def add_key_mistake(self, table: RawTable, key: str, what: str, remedy: str) -> None:
        """A mistake of a table: a key that it lacks, or should not have."""
        self._add_once(table, key, table.label, what, remedy)

    def add_value_mistake(self, table: RawTable, key: str, what: str, remedy: str) -> None:
        """A mistake of one value; silent when that value has one already."""
        self._add_once(table, key, f"{table.label} {key}", what, remedy)

    def _add_once(self, table: RawTable, key: str, subject: str, what: str, remedy: str) -> None:
        if key not in table.reported_keys:
            table.reported_keys.add(key)
            place = table.entries[key].origin if key in table.entries else table.origin
            self.mistakes.append(Mistake(place, subject, what, remedy))


def find_closest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that a person most likely meant."""
    spelled = {each.lower().replace("-", "_"): each for each in known}
    found = difflib.get_close_matches(name.lower().replace("-", "_"), spelled, n=1, cutoff=0.6)
    return spelled[found[0]] if found else None


def format_choices(names: Iterable[str]) -> str:
    """Names as a person lists them: `"a", "b" or "c"`."""
    *first, final = [f'"{name}"' for name in names]
    return f"{', '.join(first)} or {final}" if first else final
