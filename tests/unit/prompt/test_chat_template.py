"""A conversation as one text: nothing that a message says can pass for another message."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.model import Image, Message, Reasoning, Text, ToolCall, ToolResult
from callwright.prompt.chat_template import CHAT_TEMPLATES, render_transcript

MARKED = st.lists(
    st.sampled_from(["<|im_start|>", "<|im_end|>", "<|im_", "start|>", "<|", "\n", "User:", "Assistant:", "a", " "])
    | st.text(max_size=5)
).map("".join)
MESSAGES = st.lists(
    st.builds(
        lambda role, texts: Message(role, tuple(map(Text, texts))),
        st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
        st.lists(MARKED, max_size=3),
    ),
    max_size=6,
)


def test_chatml_looks_as_it_should() -> None:
    messages = (
        Message("developer", (Text("Be brief."),)),
        Message("user", (Text("Weather?"), Image("data:x"))),
        Message("assistant", (Reasoning("hm"), Text("Let me look."), ToolCall("1", "get", '{"a": 1}'))),
        Message("tool", (ToolResult("1", "sunny"),)),
    )
    assert render_transcript(messages, CHAT_TEMPLATES["chatml"]) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        "<|im_start|>user\nWeather?\n\n[an image that this model cannot see]<|im_end|>\n"
        '<|im_start|>assistant\nLet me look.\n\n{"name": "get", "arguments": {"a": 1}}<|im_end|>\n'
        "<|im_start|>tool\nsunny<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_plain_looks_as_it_should() -> None:
    messages = (Message("system", (Text("Be brief."),)), Message("user", (Text("Hi"),)))
    assert render_transcript(messages, CHAT_TEMPLATES["plain"]) == "System: Be brief.\n\nUser: Hi\n\nAssistant:"


@given(MESSAGES)
def test_no_text_can_pass_for_a_message_in_chatml(messages: list[Message]) -> None:
    written = render_transcript(messages, CHAT_TEMPLATES["chatml"])
    assert written.count("<|im_start|>") == len(messages) + 1
    assert written.count("<|im_end|>") == len(messages)
    roles = ["system" if message.role == "developer" else message.role for message in messages]
    assert re.findall(r"<\|im_start\|>(\w+)\n", written) == [*roles, "assistant"]


@given(MESSAGES)
def test_no_line_can_pass_for_a_message_in_plain(messages: list[Message]) -> None:
    written = render_transcript(messages, CHAT_TEMPLATES["plain"])
    assert len(re.findall(r"(?m)^(?:System|User|Assistant|Result):", written)) == len(messages) + 1


@pytest.mark.parametrize("name", list(CHAT_TEMPLATES))
def test_text_without_markers_is_kept_as_it_is(name: str) -> None:
    text = "a\n\n  b <|not|> User says: {x} \\ ☃"
    assert text in render_transcript([Message("user", (Text(text),))], CHAT_TEMPLATES[name])
