"""The samples of `make test`: nothing is left out that a sample promises, and two runs run the same cases."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from tests.support import sampling
from tests.support.sampling import cover_pairs, cover_values, sample, sample_pairs, sample_rows

AXES = [("abc", "12", "xyzw"), ("abcde", "1"), ("ab", "ab", "ab", "ab"), ("abcdefgh", "1234", "xy")]


@pytest.mark.parametrize("axes", AXES)
def test_every_pair_occurs_in_fewer_rows_than_the_product_has(axes: tuple[str, ...]) -> None:
    rows = cover_pairs(*axes)
    for one, other in combinations(range(len(axes)), 2):
        assert {(row[one], row[other]) for row in rows} == set(product(axes[one], axes[other]))
    assert len(rows) == len(set(rows)) <= len(list(product(*axes)))
    assert len(axes) < 3 or len(rows) < len(list(product(*axes)))
    assert rows == cover_pairs(*axes)


@pytest.mark.parametrize("axes", AXES)
def test_every_value_occurs_in_as_many_rows_as_the_longest_axis_has(axes: tuple[str, ...]) -> None:
    rows = cover_values(*axes)
    assert [set(values) for values in zip(*rows, strict=True)] == [set(axis) for axis in axes]
    assert len(rows) == max(map(len, axes))


def test_axes_of_one_length_do_not_walk_in_step() -> None:
    assert len(set(cover_values("abcdefgh", "1234"))) == 8


def test_a_sample_has_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "FULL", False)
    assert sample(range(100), 4) == [0, 33, 66, 99]
    assert sample("abc", 1) == ["b"]
    assert sample("abc", 5) == ["a", "b", "c"]


def test_the_full_run_has_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "FULL", True)
    assert sample(range(100), 4) == list(range(100))
    assert sample_pairs("ab", "12", "xy") == sample_rows("ab", "12", "xy") == list(product("ab", "12", "xy"))
