"""Conversations at random: sound ones, and ones as broken as sessions get."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hypothesis import strategies as st

from callwright.model import Image, Message, Part, Reasoning, Text, ToolCall, ToolResult

IDS = st.sampled_from(["a", "b", "c", "call_0", "mend00001", ""])
WORDS = st.text(st.sampled_from("xyz \n☃"), max_size=6)
ARGUMENTS = st.sampled_from(["{}", '{"path": "a"}', '{"path": "a', "", "not json", "[1]", "{'a': 1}", '"{}"'])
IMAGES = st.lists(st.just(Image("data:image/png;base64,AA==")), max_size=1).map(tuple)

calls = st.builds(ToolCall, IDS, st.sampled_from(["read", "write"]), ARGUMENTS)
results = st.builds(ToolResult, IDS, WORDS, st.sampled_from(["", "read"]), st.booleans(), IMAGES)
said = st.builds(Text, WORDS) | st.builds(Image, st.just("http://h/i.png"))

MESSAGES = st.one_of(
    st.builds(
        Message, st.sampled_from(["system", "developer"]), st.lists(st.builds(Text, WORDS), max_size=2).map(tuple)
    ),
    st.builds(Message, st.just("user"), st.lists(said, max_size=2).map(tuple)),
    st.builds(
        Message,
        st.just("assistant"),
        st.lists(st.builds(Text, WORDS) | st.builds(Reasoning, WORDS) | calls, max_size=4).map(tuple),
    ),
    st.builds(Message, st.just("tool"), st.lists(results, min_size=1, max_size=2).map(tuple)),
    st.builds(Message, st.just("tool"), st.tuples(results, said)),
)
BROKEN = st.lists(MESSAGES, max_size=8).map(tuple)


@st.composite
def sound(draw: st.DrawFn) -> tuple[Message, ...]:
    """A conversation as servers want it: every call with its result behind it, ids unique, nothing empty."""
    messages: list[Message] = [Message("system", (Text("Be brief."),))] if draw(st.booleans()) else []
    number = 0
    for _ in range(draw(st.integers(1, 4))):
        messages.append(Message("user", (Text(draw(WORDS)),)))
        for _ in range(draw(st.integers(0, 2))):
            made = [
                ToolCall(f"id{(number := number + 1)}", "read", '{"path": "a"}') for _ in range(draw(st.integers(1, 2)))
            ]
            messages.append(Message("assistant", (Text(draw(WORDS)), *made)))
            body = draw(st.sampled_from(["short", "long " * 100]))
            messages += [Message("tool", (ToolResult(call.id, body, "read"),)) for call in made]
        if draw(st.booleans()):
            messages.append(Message("assistant", (Text("Done."),)))
    return tuple(messages)


def parts_of(messages: Iterable[Message]) -> list[Part]:
    return [part for message in messages for part in message.parts]


def words_of(messages: Iterable[Message]) -> Counter[str]:
    """Everything that was said, word by word and how often; results and arguments too."""
    words: Counter[str] = Counter()
    for part in parts_of(messages):
        match part:
            case Text() | Reasoning():
                words.update(part.text.split())
            case ToolResult():
                words.update(part.content.split())
            case _:
                pass
    return words
