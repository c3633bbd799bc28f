"""What each server is told about the form of an answer, and that it stands in the body of its request."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from callwright.backends.completions import CompletionsClientCodec
from callwright.model import Constraint, Message, Request, Text
from callwright.wire import CLIENT_CODECS
from callwright.wire.constraint import GRAMMAR_FLAVOURS, ConstraintFlavour, build_constraint_fields

SCHEMA = {"type": "object"}
BOTH = Constraint(SCHEMA, "root ::= [a]")
FORM = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}}
REQUEST = Request("m", (Message("user", (Text("go"),)),))


@pytest.mark.parametrize(
    ("flavour", "constraint", "fields"),
    [
        ("llamacpp", BOTH, {"grammar": BOTH.grammar}),
        ("llamacpp", Constraint(SCHEMA), {"json_schema": SCHEMA}),
        ("vllm", BOTH, {"structured_outputs": {"grammar": BOTH.grammar}}),
        ("vllm", Constraint(SCHEMA), {"structured_outputs": {"json": SCHEMA}}),
        ("openai", BOTH, {"response_format": FORM}),
        ("ollama", BOTH, {"format": SCHEMA}),
        ("openai", Constraint(grammar="root ::= [a]"), {}),
        ("ollama", Constraint(), {}),
        ("llamacpp", None, {}),
    ],
)
def test_each_server_is_told_in_its_own_words(
    flavour: ConstraintFlavour, constraint: Constraint | None, fields: dict[str, Any]
) -> None:
    assert build_constraint_fields(flavour, constraint) == fields


def test_a_server_with_grammars_is_never_told_both() -> None:
    for flavour in get_args(ConstraintFlavour):
        assert len(build_constraint_fields(flavour, BOTH)) == 1
    assert set(get_args(ConstraintFlavour)) > GRAMMAR_FLAVOURS


@pytest.mark.parametrize(
    ("called", "flavour", "field"),
    [
        (CLIENT_CODECS["openai_chat"], "llamacpp", "grammar"),
        (CLIENT_CODECS["openai_chat"], "vllm", "structured_outputs"),
        (CLIENT_CODECS["openai_chat"], "openai", "response_format"),
        (CLIENT_CODECS["ollama"], "ollama", "format"),
        (CompletionsClientCodec("plain", CLIENT_CODECS["openai_chat"]), "llamacpp", "grammar"),
        (CompletionsClientCodec("plain", CLIENT_CODECS["openai_chat"]), "vllm", "structured_outputs"),
    ],
    ids=lambda part: part if isinstance(part, str) else part.name,
)
def test_the_wires_pass_it_on(called: Any, flavour: ConstraintFlavour, field: str) -> None:
    fields = build_constraint_fields(flavour, BOTH)
    assert json.loads(called.encode_request(REQUEST, fields))[field] == fields[field]
