"""Depth, measured without recursion."""

from __future__ import annotations

from typing import Any

import pytest

from callwright.input_limits import MAX_JSON_DEPTH
from callwright.text.nesting import count_parts, describe_unreadable, is_deeper_than, is_text_deeper_than


def nested(depth: int) -> Any:
    value: Any = 1
    for at in range(depth):
        value = [value] if at % 2 else {"a": value}
    return value


@pytest.mark.parametrize("depth", [0, 1, 2, 7])
def test_a_value_is_as_deep_as_its_containers(depth: int) -> None:
    assert not is_deeper_than(nested(depth), depth)
    if depth:
        assert is_deeper_than(nested(depth), depth - 1)


def test_any_depth_can_be_measured() -> None:
    assert is_deeper_than(nested(200_000), 100)
    assert is_text_deeper_than("[" * 200_000, 199_999)
    assert not is_text_deeper_than("[" * 200_000, 200_000)


def test_brackets_in_strings_and_closed_brackets_do_not_count() -> None:
    assert not is_text_deeper_than(r'["[[[[\"[[", [], {}, ()]', 2)
    assert not is_text_deeper_than('["[[[[', 1)
    assert is_text_deeper_than("[[(", 2)


def test_the_parts_of_a_value_are_counted() -> None:
    assert count_parts(1) == 1
    assert count_parts({"a": [1, 2], "b": {}}) == 5


def test_the_reason_says_whether_the_depth_is_the_problem() -> None:
    assert describe_unreadable("[" * MAX_JSON_DEPTH) == "nested too deeply"
    assert describe_unreadable("[" * (MAX_JSON_DEPTH - 1)) == "not JSON"
