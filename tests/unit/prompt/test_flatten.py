"""Messages as one: what is new as it is, what came before under headings that cannot be imitated."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from callwright.model import Message, Text, ToolCall, ToolResult
from callwright.prompt.flatten import FlatPrompt, flatten_messages


def said(role: str, text: str) -> Message:
    return Message(role, (Text(text),))  # type: ignore[arg-type]


def test_one_message_goes_as_it_is() -> None:
    text = "=== User ===\n\n  as it is\n\n"
    assert flatten_messages([said("user", text)]) == FlatPrompt(text, "")


def test_messages_that_nobody_answered_are_one() -> None:
    assert flatten_messages([said("user", "a"), said("user", "b")]).prompt == "a\n\nb"


def test_system_messages_are_told_beside_it() -> None:
    assert flatten_messages([said("system", "s"), said("user", "a"), said("developer", "d")]) == FlatPrompt(
        "a", "s\n\nd"
    )


def test_what_was_answered_stands_in_front() -> None:
    call = Message("assistant", (Text("Let me see."), ToolCall("1", "look", '{"a": 1}')))
    result = Message("tool", (ToolResult("1", "seen"),))
    assert flatten_messages([said("user", "a"), call, result]).prompt == (
        "What was said so far:\n\n=== User ===\na\n\n"
        '=== Assistant ===\nLet me see.\n\n{"name": "look", "arguments": {"a": 1}}\n\n=== Now ===\nseen'
    )


_TEXTS = st.lists(st.sampled_from(["=== User ===", "=== Assistant ===", "=== Now ===", "\n", "x", "== Now =="])).map(
    "".join
)


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), _TEXTS), max_size=6), _TEXTS)
def test_no_message_can_begin_another(earlier: list[tuple[str, str]], newest: str) -> None:
    messages = [said(role, text) for role, text in earlier]
    told = flatten_messages([*messages, said("assistant", "end"), said("user", newest)]).prompt
    before = told.removesuffix(newest)
    headings = re.findall(r"(?m)^=== (\w+) ===$", before)
    roles = {"user": "User", "assistant": "Assistant", "tool": "Results"}
    assert headings == [*(roles[role] for role, _ in earlier), "Assistant", "Now"]
