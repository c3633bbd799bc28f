"""Laws of what a model is told: nothing is lost, nothing moves, and a conversation that grows keeps its beginning."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.dialects import REGISTRY
from callwright.errors import RequestError
from callwright.model import Image, Message, Part, Request, Text, ToolCall, ToolResult, ToolSpec
from callwright.prompt.client_tags import read_client_tags
from callwright.prompt.history_repair import repair_history
from callwright.prompt.message_text import wrap_parts
from callwright.prompt.result_pairing import LOST_RESULT
from callwright.prompt.tool_prompt import render_tool_prompt
from callwright.prompt.tool_rounds import check_tool_rounds, count_tool_rounds
from tests.unit.prompt.telling import assistant, decoded, kinds, result, said, system, told, user

WORDS = st.text(max_size=20) | st.sampled_from(
    ["<system_context>", "</system_context>", "{{ message }}", "\0message\0"]
)
PARTS = st.lists(WORDS.map(Text) | st.sampled_from([Image("data:a"), Image("data:b")]), max_size=4).map(tuple)
IDS = st.sampled_from(["a", "b", "c"])
CALLS = st.lists(IDS.map(lambda name: ToolCall(name, f"tool_{name}", "{}")), min_size=1, max_size=3).map(tuple)
MESSAGES = st.lists(
    st.builds(Message, st.sampled_from(["system", "developer", "user"]), PARTS)
    | st.builds(lambda parts, calls: Message("assistant", (*parts, *calls)), PARTS, CALLS | st.just(()))
    | st.builds(lambda name, words: Message("tool", (ToolResult(name, words),)), IDS, WORDS),
    max_size=10,
)
TOOL = ToolSpec("read_file", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}})
SETTINGS: list[dict[str, Any]] = [
    {},
    {"system": "fold"},
    {"system": "fold", "redundant_system": True, "teach": "code", "house_rules": "Be kind."},
    {"reteach_after": 3},
    {"system": "fold", "reteach_after": 4, "final_answer": "tag"},
]


def flat(messages: tuple[Message, ...], role: str | None = None) -> list[Part]:
    return [part for message in messages for part in message.parts if role in (None, message.role)]


# ── folding ──────────────────────────────────────────────────────────────────────────────────────


@given(MESSAGES, st.sampled_from(["fold", "fold_first", "native"]), st.booleans())
def test_nothing_that_was_said_is_lost(messages: list[Message], mode: str, tools: bool) -> None:
    history = repair_history(messages).messages
    request = Request("m", history, (TOOL,) if tools else ())
    out = told(request, strategy="native", system=mode).request.messages
    whole = "".join(part.text for part in flat(out) if isinstance(part, Text))
    for part in flat(history):
        if isinstance(part, Text) and part.text.strip():
            assert part.text in whole
    for kind in (Image, ToolCall):
        wanted = [part for part in flat(history) if isinstance(part, kind)]
        assert sorted(map(repr, wanted)) == sorted(repr(part) for part in flat(out) if isinstance(part, kind))
    assert flat(out, "assistant") == flat(history, "assistant")


@given(MESSAGES)
def test_folding_leaves_no_system_message_and_one_block(messages: list[Message]) -> None:
    history = repair_history(messages).messages
    out = told(Request("m", history), strategy="none", system="fold").request.messages
    assert not [message for message in out if message.role in ("system", "developer")]


def test_only_the_first_request_of_a_kept_conversation_is_folded() -> None:
    first = decoded(system("Rules"), user("Hi"))
    assert "<system_context>" in said(told(first, system="fold_first"))[0][1]
    later = decoded(system("Rules"), user("Hi"), assistant("Hello"), user("More"))
    (_, rules), (_, hi), (_, hello), (_, more) = said(told(later, system="fold_first"))
    assert (rules, hi, hello) == ("Rules", "Hi", "Hello")
    assert more.endswith("More")
    assert "- read_file(path: string, lines?: integer)" in more, "later turns get the short form"


def test_a_kept_conversation_gets_context_that_only_its_system_message_has() -> None:
    rules = "<instructions>old</instructions><instructions>Use tabs.</instructions><context>branch main</context>"
    later = decoded(system(rules), user("Hi"), assistant("Hello"), user("<context>a.py</context>More"), tools=[])
    text = said(told(later, system="fold_first"))[-1][1]
    assert text == (
        "<instructions>\nUse tabs.\n</instructions>\n\n"
        "<context>\nbranch main\n</context>\n\n<context>a.py</context>More"
    )


def test_a_kept_conversation_gets_the_context_with_its_results() -> None:
    later = decoded(
        system("<context>branch main</context>"),
        user("Go"),
        assistant(None, ("a", "read_file", "{}")),
        result("a", "text"),
    )
    text = said(told(later, system="fold_first"))[-1][1]
    assert text.index("Call: read_file") < text.index("<context>\nbranch main\n</context>") < text.index("- edit_file(")


# ── tags ─────────────────────────────────────────────────────────────────────────────────────────


def test_context_is_merged_with_the_users_newest_first() -> None:
    messages = (
        Message("system", (Text("<context>s</context><instructions>a</instructions><instructions>b</instructions>"),)),
        Message("user", (Text("<context>one</context><attachments>f</attachments><userRequest>x</userRequest>"),)),
        Message("user", (Text("<context>two</context><context>one</context><userRequest> y </userRequest>"),)),
    )
    assert read_client_tags(messages) == ("one\n\ntwo\n\ns", "f", "y", "b")


def test_tags_that_are_not_closed_count_for_nothing() -> None:
    text = "<context>" * 20_000
    assert read_client_tags([Message("user", (Text(text),))]) == ("", "", text, "")


# ── the prompt cache ─────────────────────────────────────────────────────────────────────────────


def grown(rounds: int) -> list[dict[str, Any]]:
    """A conversation of so many tool rounds, with another question in its middle."""
    messages = [system("You help."), user("Read them all")]
    for number in range(rounds):
        call = (f"call_{number}", "read_file", json.dumps({"path": f"{number}.txt"}))
        messages += [assistant(f"Reading {number}.", call), result(f"call_{number}", f"text {number}")]
        if number == 4:
            messages += [assistant("Half is done."), user("Go on")]
    return messages


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("dialect", ["hermes", "invoke", "harmony", "react"])
def test_what_was_told_keeps_its_bytes_over_ten_rounds(settings: dict[str, Any], dialect: str) -> None:
    before: tuple[Message, ...] = ()
    for rounds in range(11):
        after = told(decoded(*grown(rounds)), dialect=dialect, **settings).request.messages
        assert after[: len(before)] == before
        assert [msgspec.json.encode(message) for message in after[: len(before)]] == list(
            map(msgspec.json.encode, before)
        )
        assert len(after) > len(before)
        before = after


def test_a_demanded_call_changes_the_last_message_only() -> None:
    free = told(decoded(*grown(3))).request.messages
    bound = told(decoded(*grown(3), tool_choice="required")).request.messages
    assert bound[:-1] == free[:-1]
    assert said_last(bound).startswith(said_last(free))
    assert said_last(bound).endswith("Your next answer must be a call of one of the tools.")


def said_last(messages: tuple[Message, ...]) -> str:
    return "".join(part.text for part in messages[-1].parts if isinstance(part, Text))


def test_a_line_that_changes_with_each_request_does_not_spoil_the_beginning() -> None:
    def asked(number: int) -> tuple[Message, ...]:
        line = f"x-anthropic-billing-header: cch={number};"
        request = decoded(system(f"{line}\nYou help."), *grown(3)[1:])
        return told(request, volatile=("x-anthropic-billing-header:",)).request.messages

    one, two = asked(1), asked(2)
    assert one[:-1] == two[:-1]
    assert said_last(one).endswith("\n\nx-anthropic-billing-header: cch=1;")


@given(st.lists(WORDS, max_size=4))
def test_volatile_lines_only_move(lines: list[str]) -> None:
    text = "\n".join([*lines, "Date: today", "rest"])
    request = decoded(system(text), user("Hi"), tools=[])
    out = told(request, strategy="none", volatile=("Date:",)).request.messages
    assert said_last(out).endswith("Hi\n\nDate: today")
    assert "".join(part.text for part in flat(out, "system")) == text.replace("Date: today\n", "")


# ── teaching ─────────────────────────────────────────────────────────────────────────────────────

RICH = ToolSpec(
    "search",
    'Looks "things" up.\nQuickly.',
    {
        "type": "object",
        "properties": {
            "kind": {"enum": ["a", "b"], "description": "which  one"},
            "words": {"type": "array", "items": {"type": "string"}},
            "where": {"type": "object", "properties": {"deep": {"type": "boolean"}}, "required": ["deep"]},
            "limit": {"type": ["integer", "null"]},
            "any": {},
        },
        "required": ["words"],
    },
)


def test_the_short_form_is_a_signature() -> None:
    signature = (
        '- search(kind?: "a"|"b", words: array<string>, where?: {deep: boolean}, limit?: integer|null, any?: any)'
    )
    assert signature in render_tool_prompt([RICH], REGISTRY["hermes"], "short").split("\n")


def test_the_code_form_is_python() -> None:
    text = render_tool_prompt([RICH, TOOL], REGISTRY["hermes"], "code")
    functions = text.split("\n\n", 1)[1].rpartition("\n\nTo call one")[0]
    compile(functions, "lesson", "exec")
    assert "def search(words: list[str], kind: Literal[" in functions
    assert "kind: which one" in functions


@pytest.mark.parametrize("name", [name for name in REGISTRY if name != "auto"])
@pytest.mark.parametrize("form", ["full", "short", "code"])
def test_every_dialect_teaches_every_form_with_its_way_of_calling(name: str, form: Any) -> None:
    text = render_tool_prompt([RICH, TOOL], REGISTRY[name], form)
    assert "search" in text
    assert "read_file" in text
    assert text.endswith(REGISTRY[name].describe_call_format())
    assert render_tool_prompt([RICH, TOOL], REGISTRY[name], form) == text


def test_tools_are_told_again_after_so_many_messages_in_the_short_form() -> None:
    texts = [text for _, text in said(told(decoded(*grown(6)), reteach_after=4))]
    assert ['"parameters"' in text for text in texts] == [True] + [False] * (len(texts) - 1)
    again = [number for number, text in enumerate(texts) if "- read_file(path: string" in text]
    assert len(again) >= 2
    assert all(later - earlier >= 4 for earlier, later in pairwise(again))


def test_without_tools_earlier_calls_are_told_in_words_nevertheless() -> None:
    out = said(told(decoded(*grown(1), tools=[])))
    assert [role for role, _ in out] == ["system", "user", "assistant", "user"]
    assert '<invoke name="read_file">' in out[2][1]


def test_house_rules_are_told_in_every_mode() -> None:
    request = decoded(system("S"), user("Hi"))
    for settings in ({"system": "native"}, {"system": "fold"}):
        for strategy in ("native", "taught", "none"):
            assert "Be kind." in said(told(request, strategy=strategy, house_rules="Be kind.", **settings))[0][1]


def test_a_native_request_with_nothing_to_tell_passes_untouched() -> None:
    request = decoded(*grown(3))
    assert told(request, strategy="native") == (request, ())


def test_pictures_of_results_follow_their_words() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:x"}}
    request = decoded(user("Go"), assistant(None, ("a", "read_file", "{}")), result("a", [picture]))
    assert told(request).request.messages[-1].parts[1:] == (Image("data:x"),)


# ── rounds ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("made", "counted"), [(0, 0), (1, 1), (4, 4), (5, 0), (6, 1), (10, 5)])
def test_rounds_are_counted_since_the_user_last_asked(made: int, counted: int) -> None:
    assert count_tool_rounds(decoded(*grown(made)).messages) == counted


def test_a_reminder_beside_results_is_no_new_request() -> None:
    reminder = user("<system-reminder>todo</system-reminder>\n<system-reminder>x</system-reminder>")
    assert count_tool_rounds(decoded(*grown(3), reminder).messages) == 3
    assert count_tool_rounds(decoded(*grown(3), user("<system-reminder>todo</system-reminder> and stop")).messages) == 0


def test_a_round_too_many_is_refused_with_a_way_to_go_on() -> None:
    told(decoded(*grown(3)), max_rounds=4)
    with pytest.raises(RequestError, match=r"4 rounds.*allowed 4; send another message.*max_rounds") as caught:
        told(decoded(*grown(4)), max_rounds=4)
    assert (caught.value.status, caught.value.code) == (400, "tool_rounds_exceeded")
    check_tool_rounds(decoded(*grown(4)).messages, 0)


def test_placeholders_say_what_happened() -> None:
    prepared = told(decoded(user("Go"), assistant(None, ("a", "read_file", "{}")), user("Hello?")))
    assert LOST_RESULT in said(prepared)[-2][1]
    assert kinds(prepared) == ["missing_result"]


# ── words around parts ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((Text("a"),), (Text("<\na\n>"),)),
        ((Text("a"), Image("i"), Text("b")), (Text("<\na"), Image("i"), Text("b\n>"))),
        ((Image("i"),), (Text("<"), Image("i"), Text(">"))),
        ((), (Text("<\n>"),)),
    ],
)
def test_words_join_the_text_that_they_touch(parts: tuple[Part, ...], expected: tuple[Part, ...]) -> None:
    assert wrap_parts(parts, "<\n", "\n>") == expected


def test_words_at_the_end_of_a_tool_round_are_the_users() -> None:
    request = decoded(*grown(1))
    messages = told(request, strategy="native", volatile=("You",)).request.messages
    assert [message.role for message in messages] == ["user", "assistant", "tool", "user"]
    assert said_last(messages) == "You help."
