"""What the vectors of the J1 families do not reach."""

from __future__ import annotations

from harness import read, told

from callwright import dialect


def test_objects_may_be_joined_by_commas() -> None:
    turn = read(dialect("hermes"), '<tool_call>{"name": "ping"}, {"name": "ping"};</tool_call>', 2)
    assert told(turn) == [("ping", {}), ("ping", {})]
    assert turn.text == ""


def test_json_follows_an_opener() -> None:
    assert dialect("hermes").starts == ("{", "[")


def test_inkling_without_known_tools_takes_every_name() -> None:
    text = '<|message_model|>look<|content_invoke_tool_json|>{"at": "this"}<|end_message|>'
    assert told(read(dialect("inkling"), text, 3, tools=())) == [("look", {"at": "this"})]
