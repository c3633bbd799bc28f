"""Where a value came from, and what is wrong with it: each mistake is a sentence with its place and its remedy.

A value has one mistake at most: the first that is found. Values that are secret are never quoted.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import msgspec

__all__ = ["DEFAULT", "Given", "Mistake", "Place", "Report", "Table", "nearest", "quoted"]


class Place(msgspec.Struct, frozen=True):
    """Where a value came from: `name` is the file, the variable or the flag."""

    kind: Literal["default", "file", "environment", "flag"]
    name: str = ""
    line: int = 0

    def __str__(self) -> str:
        """In the form that editors follow, for a file."""
        return f"{self.name}:{self.line}" if self.line else self.name or self.kind


DEFAULT = Place("default")


class Given(NamedTuple):
    """A value as somebody gave it, not checked yet."""

    value: Any
    place: Place


class Table(msgspec.Struct, frozen=True):
    """One table as it was given, by whomever: the values of one table may have many places."""

    label: str
    place: Place
    entries: dict[str, Given]
    settled: set[str] = msgspec.field(default_factory=set)
    """The keys of which enough was said."""

    def place_of(self, key: str) -> Place:
        """Where the value of a key came from."""
        return self.entries[key].place if key in self.entries else DEFAULT


class Mistake(msgspec.Struct, frozen=True):
    """One thing to mend. `subject` and `what` make a clause; `remedy` is what to do about it."""

    place: Place
    subject: str
    what: str
    remedy: str

    def __str__(self) -> str:
        """The whole sentence. A variable or flag is its own subject."""
        clause = f"{self.subject} {self.what}".strip() if self.place.kind == "file" else self.what
        return f"{self.place}{':' if self.place.kind == 'file' else ''} {clause}; {self.remedy}"


class Report:
    """Collects mistakes, so that a person can mend all of them at once."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []

    def alone(self, place: Place, what: str, remedy: str) -> None:
        """A mistake that is in no table: of a whole file, or of a variable."""
        self.mistakes.append(Mistake(place, "", what, remedy))

    def key(self, table: Table, key: str, what: str, remedy: str) -> None:
        """A mistake of a table: a key that it lacks, or should not have."""
        self._add(table, key, table.label, what, remedy)

    def value(self, table: Table, key: str, what: str, remedy: str) -> None:
        """A mistake of one value; silent when that value has one already."""
        self._add(table, key, f"{table.label} {key}", what, remedy)

    def _add(self, table: Table, key: str, subject: str, what: str, remedy: str) -> None:
        if key not in table.settled:
            table.settled.add(key)
            place = table.entries[key].place if key in table.entries else table.place
            self.mistakes.append(Mistake(place, subject, what, remedy))


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a person most likely meant."""
    spelled = {each.lower().replace("-", "_"): each for each in known}
    found = difflib.get_close_matches(name.lower().replace("-", "_"), spelled, n=1, cutoff=0.6)
    return spelled[found[0]] if found else None


def quoted(names: Iterable[str]) -> str:
    """Names as a person lists them: `"a", "b" or "c"`."""
    *first, final = [f'"{name}"' for name in names]
    return f"{', '.join(first)} or {final}" if first else final
