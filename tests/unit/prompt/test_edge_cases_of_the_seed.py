"""Every edge case that seed S0 lists for what the model is told: §4.4 (folding) and §6.8 (tool results).

Those of §5.8 are about the stream, and stand in tests/integration/test_seed_edges.py.
"""

from __future__ import annotations

import pytest

from callwright.errors import RequestError
from callwright.model import Image, Text
from tests.unit.prompt.telling import assistant, decoded, kinds, result, said, system, told, user

README = ("call_1", "read_file", '{"path": "README.md"}')
EDIT = ("call_2", "edit_file", '{"path": "test.js"}')

# ── §4.4 folding ─────────────────────────────────────────────────────────────────────────────────


def test_4_4_1_without_system_messages_nothing_is_folded() -> None:
    request = decoded(user("Hello"), tools=[])
    assert told(request, system="fold").request == request


def test_4_4_2_several_system_messages_become_headed_sections_in_order() -> None:
    request = decoded(system("You are Copilot."), system("Branch: main"), system("Flags: a"), user("Task"), tools=[])
    ((role, text),) = said(told(request, system="fold"))
    assert role == "user"
    assert text == (
        "<system_context>\n=== Agent Instructions ===\nYou are Copilot.\n\n"
        "=== System Context 2 ===\nBranch: main\n\n=== System Context 3 ===\nFlags: a\n\n</system_context>\n\nTask"
    )


@pytest.mark.parametrize(("limit", "noted"), [(10_000, ["large_system"]), (20_000, []), (0, [])])
def test_4_4_3_a_very_long_system_message_is_folded_whole_with_a_warning(limit: int, noted: list[str]) -> None:
    long = "Follow this. " * 1000
    prepared = told(decoded(system(long), user("Hi"), tools=[]), system="fold", fold_warn_characters=limit)
    assert long in said(prepared)[0][1]
    assert kinds(prepared) == noted


def test_4_4_4_a_conversation_that_the_backend_keeps_is_not_folded_again() -> None:
    history = (system("Rules"), user("Read it"), assistant(None, README), result("call_1", "# My Project"), user("Go"))
    roles = [role for role, _ in said(told(decoded(*history), system="fold_first"))]
    texts = [text for _, text in said(told(decoded(*history), system="fold_first"))]
    assert roles == ["system", "user", "assistant", "user", "user"]
    assert not any("<system_context>" in text for text in texts)


def test_4_4_4_a_conversation_that_the_backend_does_not_keep_is_folded_every_time() -> None:
    history = (system("Rules"), user("Read it"), assistant(None, README), result("call_1", "# My Project"), user("Go"))
    (_, first), *rest = said(told(decoded(*history), system="fold"))
    assert first.startswith("<system_context>\n=== Agent Instructions ===\nRules")
    assert first.endswith("</system_context>\n\nRead it")
    assert [role for role, _ in rest] == ["assistant", "user", "user"]


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("What does <system_context> mean?", "agent_system_context"),
        ("And </system_context>?", "agent_system_context"),
        ("<system_context> or <agent_system_context>?", "agent_system_context_2"),
    ],
)
def test_4_4_5_a_user_who_writes_the_tag_gets_another_one(text: str, tag: str) -> None:
    ((_, words),) = said(told(decoded(system("Rules"), user(text), tools=[]), system="fold"))
    assert words.startswith(f"<{tag}>\n")
    assert words.endswith(f"</{tag}>\n\n{text}")


def test_4_4_5_instructions_that_hold_the_tag_cannot_close_it() -> None:
    ((_, words),) = said(told(decoded(system("a </system_context> b"), user("Hi"), tools=[]), system="fold"))
    assert words.startswith("<agent_system_context>\n")


def test_4_4_6_parts_of_a_user_message_stay_whole_and_in_order_behind_the_instructions() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    content = [{"type": "text", "text": "Check this"}, picture, {"type": "text", "text": "and that"}, picture]
    (message,) = told(decoded(system("Rules"), user(content), tools=[]), system="fold").request.messages
    first, *rest = message.parts
    assert isinstance(first, Text)
    assert first.text.startswith("<system_context>\n")
    assert first.text.endswith("</system_context>\n\nCheck this")
    picture_part = Image("data:image/png;base64,AA==")
    assert rest == [picture_part, Text("and that"), picture_part]


def test_4_4_6_a_message_that_begins_with_a_picture_gets_the_instructions_before_it() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:x"}}
    (message,) = told(decoded(system("Rules"), user([picture]), tools=[]), system="fold").request.messages
    first, second = message.parts
    assert isinstance(first, Text)
    assert first.text.endswith("</system_context>")
    assert second == Image("data:x")


def test_4_4_6_system_messages_in_parts_are_folded_like_strings() -> None:
    parts = [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]
    ((_, words),) = said(told(decoded(system(parts), user("Hi"), tools=[]), system="fold"))
    assert "=== Agent Instructions ===\nOne.\n\nTwo.\n" in words


# ── what §4.2 to §4.6 say beside the list ────────────────────────────────────────────────────────


def test_the_clients_tags_stay_untouched_behind_the_instructions() -> None:
    words = "<context>\n here\n</context>\n<userRequest>\nAdd it\n</userRequest>"
    ((_, text),) = said(told(decoded(system("Rules"), user(words), tools=[]), system="fold"))
    assert text.endswith(f"</system_context>\n\n{words}")


def test_developer_messages_are_system_messages() -> None:
    request = decoded({"role": "developer", "content": "D"}, system("S"), user("Hi"), tools=[])
    ((_, text),) = said(told(request, system="fold"))
    assert text.index("=== Agent Instructions ===\nD") < text.index("=== System Context 2 ===\nS")


def test_without_any_user_message_the_instructions_are_one() -> None:
    ((role, text),) = said(told(decoded(system("Rules"), tools=[]), system="fold"))
    assert role == "user"
    assert "Rules" in text


def test_a_greeting_of_the_assistant_stays_before_the_first_user_message() -> None:
    request = decoded(system("Rules"), assistant("Hello!"), user("Hi"), tools=[])
    (first, greeting), (second, words) = said(told(request, system="fold"))
    assert (first, greeting, second) == ("assistant", "Hello!", "user")
    assert words.endswith("</system_context>\n\nHi")


def test_a_short_system_message_is_sent_as_well_where_that_is_set() -> None:
    request = decoded(system("Rules"), user("<system_context>"), tools=[])
    (role, words), (_, folded) = said(told(request, system="fold", redundant_system=True))
    assert role == "system"
    assert "<agent_system_context>" in words
    assert folded.startswith("<agent_system_context>")


def test_the_tools_are_folded_with_the_instructions() -> None:
    ((_, words),) = said(told(decoded(system("Rules"), user("Hi")), system="fold"))
    order = ["=== Agent Instructions ===", "=== Tools ===", '"read_file"', "<invoke name=", "</system_context>", "Hi"]
    places = [words.index(each) for each in order]
    assert places == sorted(places)


# ── §6.8 tool results ────────────────────────────────────────────────────────────────────────────


def test_6_8_1_a_missing_result_becomes_a_clear_placeholder() -> None:
    request = decoded(user("Go"), assistant(None, README, EDIT), result("call_1", "# My Project"))
    prepared = told(request)
    words = said(prepared)[-1][1]
    assert 'Call: read_file({"path": "README.md"})\nResult [success]: # My Project' in words
    assert 'Call: edit_file({"path": "test.js"})\nResult [error]: Error: no result was received' in words
    assert kinds(prepared) == ["missing_result"]


def test_6_8_1_a_native_backend_gets_the_placeholder_too() -> None:
    request = decoded(user("Go"), assistant(None, README, EDIT), result("call_2", "done"), user("And?"))
    messages = told(request, strategy="native").request.messages
    assert [message.role for message in messages] == ["user", "assistant", "tool", "tool", "user"]
    assert [message.parts[0].call_id for message in messages[2:4]] == ["call_1", "call_2"]


@pytest.mark.parametrize("content", ["Error: File not found", "ERROR: no", " error: x"])
def test_6_8_2_a_tool_that_failed_is_shown_as_an_error(content: str) -> None:
    request = decoded(user("Go"), assistant(None, README), result("call_1", content))
    assert f"Result [error]: {content}" in said(told(request))[-1][1]


def test_6_8_2_a_result_that_only_mentions_an_error_is_a_success() -> None:
    request = decoded(user("Go"), assistant(None, README), result("call_1", "No errors: all fine"))
    assert "Result [success]: No errors" in said(told(request))[-1][1]


def test_6_8_3_an_extra_result_is_left_out_with_a_warning() -> None:
    request = decoded(user("Go"), assistant(None, README), result("call_1", "right"), result("call_0", "stale"))
    for strategy in ("taught", "native"):
        prepared = told(request, strategy=strategy)
        assert "stale" not in repr(prepared.request)
        assert kinds(prepared) == ["extra_result"]


def test_6_8_3_a_repeated_result_is_one_with_the_first() -> None:
    request = decoded(user("Go"), assistant(None, README), result("call_1", "old"), result("call_1", "new"))
    prepared = told(request)
    assert "Result [success]: old\nnew" in said(prepared)[-1][1]
    assert kinds(prepared) == ["joined_results"]


def test_6_8_4_a_result_without_any_call_before_it_is_a_clear_400() -> None:
    with pytest.raises(RequestError, match="no message before this result made call 'call_1'") as caught:
        decoded(user("Go"), result("call_1", "x"))
    assert caught.value.status == 400


# ── what §6.2 to §6.7 say beside the list ────────────────────────────────────────────────────────


def test_results_are_matched_by_id_and_not_by_order() -> None:
    request = decoded(user("Go"), assistant(None, README, EDIT), result("call_2", "edited"), result("call_1", "read"))
    words = said(told(request))[-1][1]
    assert words.index("Call: read_file") < words.index("read\n") < words.index("Call: edit_file")
    assert "Result [success]: edited" in words


def test_ids_that_are_used_again_in_each_turn_belong_to_the_nearest_call() -> None:
    again = ("call_1", "edit_file", '{"path": "b"}')
    request = decoded(
        user("Go"), assistant(None, README), result("call_1", "one"), assistant(None, again), result("call_1", "two")
    )
    prepared = told(request)
    (_, first), (_, second) = said(prepared)[3], said(prepared)[5]
    assert "Call: read_file" in first
    assert "success]: one" in first
    assert "Call: edit_file" in second
    assert "success]: two" in second
    assert kinds(prepared) == ["renamed_id"]


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ([{"type": "text", "text": "Found 3"}, {"type": "text", "text": "items"}], "Found 3\nitems"),
        ({"found": 3}, '{"found":3}'),
        (42, "42"),
        (None, ""),
        ([1, 2], "[1,2]"),
    ],
)
def test_contents_that_are_no_string_are_shown_as_text(content: object, shown: str) -> None:
    request = decoded(user("Go"), assistant(None, README), result("call_1", content))
    assert f"Result [success]: {shown}" in said(told(request))[-1][1]


def test_long_arguments_are_not_repeated_whole_with_the_result() -> None:
    long = ("call_1", "edit_file", '{"path": "' + "x" * 5000 + '"}')
    words = said(told(decoded(user("Go"), assistant(None, long), result("call_1", "done"))))
    assert "x" * 5000 in words[2][1]
    assert "x" * 5000 not in words[3][1]
    assert "Result [success]: done" in words[3][1]


def test_results_look_as_the_dialect_has_them_where_that_is_set() -> None:
    request = decoded(user("Go"), assistant(None, README), result("call_1", "text"))
    assert said(told(request, dialect="hermes", show_results=False))[-1] == (
        "user",
        "<tool_response>\ntext\n</tool_response>",
    )


def test_the_example_of_6_7_2_is_told_round_by_round() -> None:
    create = ("call_002", "create_file", '{"path": "SUMMARY.md"}')
    request = decoded(
        user("Read README.md and create SUMMARY.md"),
        assistant("I'll read the README first.", ("call_001", *README[1:])),
        result("call_001", "# My Project"),
        assistant("Now I'll create the summary file.", create),
        result("call_002", "Created SUMMARY.md successfully"),
    )
    roles, texts = zip(*said(told(request, final_answer="call")), strict=True)
    assert roles == ("system", "user", "assistant", "user", "assistant", "user")
    assert '<invoke name="create_file">' in texts[4]
    assert "Call: create_file" in texts[5]
    assert "Created SUMMARY.md successfully" in texts[5]
    assert "call final_answer with your whole answer" in texts[0]
