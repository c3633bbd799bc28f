"""What holds an answer, in the fields that each kind of server takes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from callwright.model import Constraint, Message, Request, Text
from callwright.wire.constraint import Flavour, constrained_fields
from callwright.wire.openai_chat import CalledChat

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
GRAMMAR = 'root ::= "yes" | "no"'


@pytest.mark.parametrize(
    ("flavour", "constraint", "fields"),
    [
        ("llamacpp", Constraint(grammar=GRAMMAR), {"grammar": GRAMMAR}),
        ("llamacpp", Constraint(schema=SCHEMA), {"json_schema": SCHEMA}),
        ("llamacpp", Constraint(schema=SCHEMA, grammar=GRAMMAR), {"grammar": GRAMMAR}),
        ("llamacpp", Constraint(schema={}), {"json_schema": {}}),
        ("llamacpp", Constraint(), {}),
        ("llamacpp", None, {}),
        ("none", Constraint(schema=SCHEMA, grammar=GRAMMAR), {}),
    ],
)
def test_each_server_gets_its_own_fields(
    flavour: Flavour, constraint: Constraint | None, fields: dict[str, Any]
) -> None:
    assert constrained_fields(flavour, constraint) == fields
    request = Request("m", (Message("user", (Text("Is it?"),)),), constraint=constraint)
    body = json.loads(CalledChat(flavour).body(request, {}))
    assert {name: body[name] for name in ("grammar", "json_schema") if name in body} == fields


def test_what_we_ask_comes_before_what_a_client_sent_along() -> None:
    request = Request("m", (Message("user", (Text("Is it?"),)),), constraint=Constraint(grammar=GRAMMAR))
    assert json.loads(CalledChat("llamacpp").body(request, {"grammar": "root ::= [a-z]*"}))["grammar"] == GRAMMAR
