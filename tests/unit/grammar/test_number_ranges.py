"""Ranges as grammars take exactly the numbers between their limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.grammar.number_ranges import build_integer_range
from tests.support.gbnf import Grammar

LIMITS = st.none() | st.integers(-2000, 2000) | st.integers(-(10**30), 10**30)


def grammar(low: int | None, high: int | None) -> Grammar:
    return Grammar.of(f"root ::= {' | '.join(build_integer_range(low, high))}\n")


@given(LIMITS, LIMITS, st.lists(st.integers(-3000, 3000) | st.integers(-(10**18), 10**18), max_size=20))
def test_a_range_takes_its_numbers_and_no_others(low: int | None, high: int | None, numbers: list[int]) -> None:
    if not build_integer_range(low, high):
        assert max(low or 0, -(high or 0)) >= 10**19 or (low is not None and high is not None and low > high)
        return
    taken = grammar(low, high)
    edges = [limit + step for limit in (low, high, 0) if limit is not None for step in (-1, 0, 1)]
    for number in (each for each in (*numbers, *edges) if abs(each) < 10**19):
        inside = (low is None or low <= number) and (high is None or number <= high)
        assert taken.accepts(str(number)) == inside, number


@given(LIMITS, LIMITS, st.integers(-999, 999))
def test_a_number_is_written_in_one_way(low: int | None, high: int | None, number: int) -> None:
    if build_integer_range(low, high):
        written = [f"0{number}", f"+{number}", f"{number}.0", "-0", "", "-"]
        assert not [text for text in written if grammar(low, high).accepts(text)]


@pytest.mark.parametrize(
    ("low", "high", "rule"),
    [
        (5, 120, '[5-9] | [1-9] [0-9] | "1" ([0-1] [0-9] | "2" "0")'),
        (1, 14, '[1-9] | "1" [0-4]'),
        (-2, 2, '"-" [1-2] | [0-2]'),
        (7, 7, '"7"'),
    ],
)
def test_the_rule_is_short(low: int, high: int, rule: str) -> None:
    assert " | ".join(build_integer_range(low, high)) == rule
