"""JSON text that arrives: the same verdicts as a parser of the whole text, at every cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.text.json_progress import JsonProgress

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def follow(text: str, size: int) -> JsonProgress:
    progress = JsonProgress()
    for at in range(0, len(text), size):
        progress.feed(text[at : at + size])
    return progress


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@given(VALUES, st.sampled_from([None, 2]), st.integers(1, 9))
def test_every_beginning_of_json_is_possible(value: Any, indent: int | None, size: int) -> None:
    text = json.dumps(value, indent=indent)
    for end in range(len(text) + 1):
        assert follow(text[:end], size).is_possible
    assert follow(text, size).is_complete_object == isinstance(value, dict)
    assert follow(f" {text} ", size).is_complete
    assert not follow(f"{text} {text}", size).is_possible


@given(st.text(alphabet='{}[]":,01-.eE+ tfn', max_size=9))
def test_what_is_complete_is_json(text: str) -> None:
    for size in (1, 3, 99):
        progress = follow(text, size)
        ended = follow(text + " ", size)
        assert ended.is_complete == is_json(text)
        assert not progress.is_complete_object or isinstance(json.loads(text), dict)
        assert progress.is_possible or not is_json(text)


@pytest.mark.parametrize(
    "text", ["ha", "{{", '{"a"{', "[1,]", '{"a":}', "{,}", "01", "1.e", "nul ", "]", '{"a":1}}', "é"]
)
def test_what_cannot_become_json(text: str) -> None:
    assert not follow(text, 1).is_possible
    assert not follow(text, 99).is_possible


def test_long_numbers_and_deep_nesting_cost_no_more_than_their_length() -> None:
    assert follow("1" * 100_000 + " ", 3).is_complete
    assert follow('{"a":' * 50_000, 1000).is_possible
