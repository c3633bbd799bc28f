"""What is taken out of values and bodies before they are written, and what is left as it was."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.redaction import MASK, Redactor
from callwright.store.journal_redaction import JournalRedactor

SECRET = 'key "of\nthe\\house é'
CLEANER = JournalRedactor(Redactor([SECRET]), [re.compile(r"card\s\d{4}")])
WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
PLANTED = st.sampled_from([SECRET, "card\n1234", "Bearer abcdefgh", "sk-0123456789"])


def trees(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """JSON values, with JSON inside their strings too, as arguments of tools are."""

    def grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        tables = st.dictionaries(WORDS, inner, min_size=1, max_size=3)
        return tables | st.lists(inner, min_size=1, max_size=3) | tables.map(json.dumps)

    return st.recursive(leaves, grown, max_leaves=6)


def strings(value: Any) -> list[str]:
    """Every string in a value, and in the JSON inside its strings."""
    match value:
        case dict():
            return [found for pair in value.items() for each in pair for found in strings(each)]
        case list():
            return [found for each in value for found in strings(each)]
        case str():
            try:
                inner = json.loads(value)
            except ValueError:
                return [value]
            return [value, *strings(inner)] if isinstance(inner, dict | list) else [value]
        case _:
            return []


@given(trees(PLANTED | st.builds("a {} b".format, PLANTED)))
def test_law_a_secret_is_gone_however_deep_it_lies(value: Any) -> None:
    secrets = (SECRET, "card\n1234", "abcdefgh", "0123456789")
    for cleaned in (CLEANER.redact_value(value), json.loads(CLEANER.redact_body(json.dumps({"a": value})))):
        found = strings(cleaned)
        assert not [text for text in found for secret in secrets if secret in text]
        assert any(MASK in text for text in found)


@given(trees(WORDS | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False, allow_infinity=False)))
def test_law_what_holds_no_secret_is_untouched(value: Any) -> None:
    body = json.dumps(value, indent=1)
    assert CLEANER.redact_body(body) == body


@pytest.mark.parametrize("name", ["api_key", "X-API-Key", "Authorization", "access_token", "my_password"])
@pytest.mark.parametrize("value", ["short", 12345678, ["a", "b"]])
def test_what_is_called_a_secret_is_one(name: str, value: Any) -> None:
    masked = [MASK, MASK] if isinstance(value, list) else MASK
    assert CLEANER.redact_value({name: value}) == {name: masked}
    assert json.loads(CLEANER.redact_body(json.dumps({"a": {name: value}}))) == {"a": {name: masked}}


@pytest.mark.parametrize(
    "value", [{"password": True}, {"api_key": None}, {"password": ""}, {"password": {"type": "string"}}, {"keys": "a"}]
)
def test_a_name_alone_is_no_secret(value: Any) -> None:
    assert CLEANER.redact_value(value) == value


@pytest.mark.parametrize(
    "body",
    [
        '{"a": "sk-0123456789", "a": "the first one is not seen in the value"}',
        '{"a": "sk-0123456789',
        '{"a": "\\u0073k-0123456789"}',
        "[" * 3000 + '"sk-0123456789"' + "]" * 3000,
        '{"a": "\\ud800", "b": "sk-0123456789"}',
    ],
    ids=["repeated", "broken", "escaped", "deep", "half a pair"],
)
def test_no_way_of_writing_a_body_hides_a_secret(body: str) -> None:
    assert "0123456789" not in CLEANER.redact_body(body)
