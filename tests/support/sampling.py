"""Which cases of a long matrix `make test` runs. `make test-all` sets CALLWRIGHT_FULL=1 and runs every one of them.

A sample depends on nothing but the values that it is taken from: two runs of one tree run the same cases.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import combinations, product
from typing import TypeVar

import pytest

T = TypeVar("T")

FULL = os.environ.get("CALLWRIGHT_FULL", "") not in ("", "0")
"""Whether this is the full run."""
full = pytest.mark.full
"""A mark for tests that only the full run has."""


def sample(values: Sequence[T], count: int) -> list[T]:
    """The first value, the last, and values at equal distances between them; all of them in the full run."""
    if FULL or count >= len(values):
        return list(values)
    if count == 1:
        return [values[len(values) // 2]]
    return [values[number * (len(values) - 1) // (count - 1)] for number in range(count)]


def sample_rows(*axes: Sequence[T]) -> list[tuple[T, ...]]:
    """Rows in which every value of every axis occurs, each axis at its own pace; the product in the full run.

    With axes of eleven and four values that is eleven rows instead of 44.
    """
    return list(product(*axes)) if FULL else cover_values(*axes)


def sample_pairs(*axes: Sequence[T]) -> list[tuple[T, ...]]:
    """Rows in which every two values of two axes meet; the product in the full run."""
    return list(product(*axes)) if FULL else cover_pairs(*axes)


def cover_values(*axes: Sequence[T]) -> list[tuple[T, ...]]:
    """As many rows as the longest axis has values; the others begin anew when they are through, one value further."""
    rows = max(len(axis) for axis in axes)
    return [tuple(axis[(row + row // len(axis)) % len(axis)] for axis in axes) for row in range(rows)]


def cover_pairs(*axes: Sequence[T]) -> list[tuple[T, ...]]:
    """Few rows that have every pair: the row with the most new pairs comes next, the first one where several have."""
    rows = list(product(*(range(len(axis)) for axis in axes)))
    places = list(combinations(range(len(axes)), 2))
    pairs = {row: {(one, row[one], other, row[other]) for one, other in places} for row in rows}
    missing = set().union(*pairs.values())
    chosen: list[tuple[int, ...]] = []
    while missing:
        best = max(rows, key=lambda row: len(pairs[row] & missing))
        missing -= pairs[best]
        chosen.append(best)
    return [tuple(axis[at] for axis, at in zip(axes, row, strict=True)) for row in sorted(chosen)]
