"""Histories: whatever a client sends back, the model sees a conversation that holds, and nothing of it is lost."""

from __future__ import annotations

import itertools
import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.dialects import get_dialect
from callwright.model import Image, Message, Reasoning, Text, ToolCall, ToolResult, ToolSpec
from callwright.parser import Parser
from callwright.prompt.history_repair import repair_history
from callwright.prompt.message_roles import drop_reasoning, merge_roles_strictly, move_result_images
from callwright.prompt.result_pairing import LOST_RESULT
from callwright.turn import Collected, collect
from tests.unit.prompt.conversations import BROKEN, parts_of, sound, words_of

READ = ToolSpec("read_file", parameters={"type": "object", "properties": {"path": {"type": "string"}}})
PICTURE = Image("data:image/png;base64,AA==")


def read(text: str) -> Collected:
    parser = Parser(get_dialect("auto"), [READ])
    return collect([*parser.feed(text), *parser.close()])


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def answer(*parts: Text | Reasoning | ToolCall) -> Message:
    return Message("assistant", parts)


def result(call_id: str, content: str, name: str = "read_file", **changes: object) -> Message:
    return Message("tool", (ToolResult(call_id, content, name, **changes),))  # type: ignore[arg-type]


def call(call_id: str, arguments: str = "{}", name: str = "read_file") -> ToolCall:
    return ToolCall(call_id, name, arguments)


def kinds(messages: tuple[Message, ...], **reading: object) -> list[str]:
    return [repair.kind for repair in repair_history(messages, **reading).repairs]  # type: ignore[arg-type]


# ── laws ─────────────────────────────────────────────────────────────────────────────────────────


@given(BROKEN)
def test_mending_twice_is_mending_once(messages: tuple[Message, ...]) -> None:
    once = repair_history(messages).messages
    assert repair_history(once) == (once, ())


@given(sound())
def test_a_sound_history_stays_as_it_is(messages: tuple[Message, ...]) -> None:
    assert repair_history(messages, read, {"read_file"}) == (messages, ())


@given(BROKEN)
def test_nothing_that_was_said_is_lost(messages: tuple[Message, ...]) -> None:
    mended, repairs = repair_history(messages)
    # Results of one call that say the same are one result.
    lost = set(words_of(messages)) - set(words_of(mended))
    if any(repair.kind == "extra_result" for repair in repairs):
        assert lost <= set(words_of(message for message in messages if message.role == "tool"))
        return
    assert not lost
    assert sum(isinstance(part, Image) for part in parts_of(messages)) <= sum(
        isinstance(part, Image) + len(getattr(part, "images", ())) for part in parts_of(mended)
    )


@given(BROKEN)
def test_every_call_has_its_one_result_right_behind_it(messages: tuple[Message, ...]) -> None:
    mended = repair_history(messages).messages
    waiting: list[str] = []
    seen: set[str] = set()
    for message in mended:
        if message.role == "tool":
            (part,) = message.parts
            assert isinstance(part, ToolResult)
            assert part.call_id == waiting.pop(0)
            continue
        assert not waiting
        made = [part for part in message.parts if isinstance(part, ToolCall)]
        assert not any(isinstance(part, ToolResult) for part in message.parts)
        assert all(isinstance(json.loads(part.arguments), dict) for part in made)
        waiting = [part.id for part in made]
        assert "" not in waiting
        assert seen.isdisjoint(waiting)
        assert len(set(waiting)) == len(waiting)
        seen.update(waiting)
    assert not waiting


@given(BROKEN, sound())
def test_what_was_told_is_told_the_same_way_in_the_next_turn(
    messages: tuple[Message, ...], more: tuple[Message, ...]
) -> None:
    """Or no prompt cache holds."""
    before, after = repair_history(messages).messages, repair_history((*messages, *more)).messages
    assert after[: len(before)] == before


@given(BROKEN)
def test_whatever_changes_is_noted(messages: tuple[Message, ...]) -> None:
    mended, repairs = repair_history(messages)
    same_words = words_of(mended) == words_of(messages)
    assert repairs or (same_words and len(parts_of(mended)) == len(parts_of(messages)))


@given(BROKEN)
def test_strict_order_is_strict_and_says_the_same(messages: tuple[Message, ...]) -> None:
    ordered = merge_roles_strictly(messages, [])
    roles = ["system" if message.role == "developer" else message.role for message in ordered]
    assert "system" not in roles[1:]
    assert all(one != other or one == "tool" for one, other in itertools.pairwise(roles))
    assert words_of(ordered) == words_of(messages)
    again: list[object] = []
    assert merge_roles_strictly(ordered, again) == ordered  # type: ignore[arg-type]
    assert not again


@given(BROKEN)
def test_moved_pictures_are_all_there_and_in_no_result(messages: tuple[Message, ...]) -> None:
    moved = move_result_images(messages, [])
    held = [image for part in parts_of(messages) for image in getattr(part, "images", ())]
    shown = [part for part in parts_of(messages) if isinstance(part, Image)]
    assert sum(isinstance(part, Image) for part in parts_of(moved)) == len(held) + len(shown)
    assert not any(part.images for part in parts_of(moved) if isinstance(part, ToolResult))
    assert move_result_images(moved, []) == moved


# ── what spoils sessions ─────────────────────────────────────────────────────────────────────────


def test_rc12_a_call_without_a_result_does_not_spoil_the_session() -> None:
    """https://github.com/earendil-works/pi/issues/4189"""
    sent = (user("go"), answer(call("a"), call("b")), result("b", "second"), user("and?"))
    mended, repairs = repair_history(sent)
    assert mended == (*sent[:2], result("a", LOST_RESULT, is_error=True), *sent[2:])
    assert [repair.kind for repair in repairs] == ["missing_result"]


def test_rc12_a_result_without_a_call_becomes_words_of_the_user() -> None:
    """https://github.com/anomalyco/opencode/pull/22001: what a compaction leaves behind."""
    mended, repairs = repair_history((user("go"), result("gone", "42 files", images=(PICTURE,)), user("and?")))
    assert [message.role for message in mended] == ["user"] * 3
    assert mended[1].parts[0].text.endswith("read_file, whose call is not in this conversation:\n42 files")  # type: ignore[union-attr]
    assert mended[1].parts[1] == PICTURE
    assert [repair.kind for repair in repairs] == ["orphan_result"]


def test_a_stale_result_is_left_out() -> None:
    sent = (answer(call("a")), result("a", "here"), result("gone", "stale"), user("and?"))
    mended, repairs = repair_history(sent)
    assert mended == (*sent[:2], sent[3])
    assert [repair.kind for repair in repairs] == ["extra_result"]


@given(st.lists(st.text("abcd", min_size=1, max_size=3), unique=True, min_size=1), st.randoms())
def test_results_in_any_order_reach_their_calls(ids: list[str], random: Random) -> None:
    shuffled = random.sample(ids, len(ids))
    sent = (answer(*map(call, ids)), *(result(each, f"result of {each}") for each in shuffled))
    mended, repairs = repair_history(sent)
    assert [part.content for part in parts_of(mended) if isinstance(part, ToolResult)] == [
        f"result of {each}" for each in ids
    ]
    assert not repairs


def test_two_calls_of_one_id_take_two_results_in_order() -> None:
    sent = (answer(call("a", name="one"), call("a", name="two")), result("a", "1", ""), result("a", "2", ""))
    results = [part for part in parts_of(repair_history(sent).messages) if isinstance(part, ToolResult)]
    assert [(part.name, part.content) for part in results] == [("one", "1"), ("two", "2")]


def test_words_among_results_are_the_users() -> None:
    sent = (answer(call("a")), Message("tool", (ToolResult("a", "1"), Text("by the way"))))
    assert [message.role for message in repair_history(sent).messages] == ["assistant", "tool", "user"]


def test_a_result_that_came_late_stands_behind_its_call() -> None:
    mended, repairs = repair_history((answer(call("a")), user("hurry"), result("a", "here")))
    assert mended == (answer(call("a")), result("a", "here"), user("hurry"))
    assert [repair.kind for repair in repairs] == ["moved_result"]


def test_results_stand_in_the_order_of_their_calls() -> None:
    mended, _ = repair_history((answer(call("a"), call("b")), result("b", "2"), result("a", "1")))
    assert mended[1:] == (result("a", "1"), result("b", "2"))


def test_two_results_of_one_call_are_one() -> None:
    mended, repairs = repair_history((answer(call("a")), result("a", "yes"), result("a", "yes"), result("a", "no")))
    assert mended == (answer(call("a")), result("a", "yes\nno"))
    assert [repair.kind for repair in repairs] == ["joined_results"] * 2


def test_rc2_ids_that_a_server_numbers_anew_in_each_turn_are_told_apart() -> None:
    """https://github.com/ollama/ollama/issues/15457: every first call of a turn has the same id."""
    sent = (answer(call("0", '{"n": 1}')), result("0", "one"), answer(call("0", '{"n": 2}')), result("0", "two"))
    mended, repairs = repair_history(sent)
    assert mended[:2] == sent[:2]
    assert mended[2:] == (answer(call("mend00001", '{"n": 2}')), result("mend00001", "two"))
    assert [repair.kind for repair in repairs] == ["renamed_id"]


def test_a_call_that_was_sent_twice_is_made_once() -> None:
    mended, repairs = repair_history((answer(call("a"), call("a")), result("a", "yes")))
    assert mended == (answer(call("a")), result("a", "yes"))
    assert [repair.kind for repair in repairs] == ["dropped_repeat"]


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ('{"path": "a.py", "text": "half', '{"path": "a.py", "text": "half"}'),
        ("{'path': 'a.py'}", '{"path": "a.py"}'),
        ("", "{}"),
        ("cat a.py", '{"arguments": "cat a.py"}'),
        ('["a.py"]', '{"arguments": "[\\"a.py\\"]"}'),
        ('{"path":"a.py"}  ', '{"path":"a.py"}  '),
    ],
)
def test_broken_arguments_never_make_a_request_fail(sent: str, told: str) -> None:
    """Codex 0.166 sends back what it could not parse: reference on clients, section 4."""
    mended, repairs = repair_history((answer(call("a", sent)), result("a", "")))
    assert mended[0] == answer(call("a", told))
    assert [repair.kind for repair in repairs] == ["repaired_arguments"] * (sent != told)


def test_an_empty_answer_is_left_out() -> None:
    mended, repairs = repair_history((user("hi"), answer(), user("hello?"), answer(Text(""))))
    assert mended == (user("hi"), user("hello?"))
    assert {repair.kind for repair in repairs} == {"dropped_blank"}


# ── leaks ────────────────────────────────────────────────────────────────────────────────────────

LEAK = '<tool_call>{"name": "read_file", "arguments": {"path": "a.py"}}</tool_call>'


def test_rc1_a_call_that_leaked_as_text_does_not_teach_the_model_to_leak() -> None:
    """https://github.com/anthropics/claude-code/issues/77061: a leaked example in the history makes 34 % leak again."""
    sent = (user("look"), answer(Text(f"Let me see.\n{LEAK}")), user("well?"))
    mended, repairs = repair_history(sent, read, {"read_file"})
    text, made = mended[1].parts
    assert (text.text.strip(), made.name, json.loads(made.arguments)) == ("Let me see.", "read_file", {"path": "a.py"})  # type: ignore[union-attr]
    assert mended[2].parts[0] == ToolResult(made.id, LOST_RESULT, "read_file", is_error=True)  # type: ignore[union-attr]
    assert [repair.kind for repair in repairs] == ["recovered_call", "missing_result"]
    assert repair_history(sent, read, {"read_file"}) == (mended, repairs), (
        "the same every turn, or no prompt cache holds"
    )
    assert repair_history(mended, read, {"read_file"}) == (mended, ())


def test_what_was_thought_in_a_text_with_a_call_is_kept_apart() -> None:
    thinks = answer(Text(f"<think>Which file?</think>Let me see. {LEAK}"))
    thought, text, made = repair_history((thinks,), read, {"read_file"}).messages[0].parts
    assert (thought, text) == (Reasoning("Which file?"), Text("Let me see. "))
    assert isinstance(made, ToolCall)


def test_a_call_that_was_sent_both_ways_is_made_once() -> None:
    sent = (answer(Text(LEAK), call("a", '{"path":"a.py"}')), result("a", "x"))
    mended, repairs = repair_history(sent, read, {"read_file"})
    assert mended == (answer(call("a", '{"path":"a.py"}')), result("a", "x"))
    assert [repair.kind for repair in repairs] == ["dropped_repeat"]


@pytest.mark.parametrize(
    "message",
    [
        user(LEAK),
        answer(Text(LEAK.replace("read_file", "unknown"))),
        answer(Text("read_file is what I would call.")),
        answer(Text(LEAK[:40])),
        answer(Reasoning(LEAK), Text("read_file")),
    ],
    ids=["said by the user", "a tool that is not offered", "prose", "half a call", "thought"],
)
def test_what_is_no_leak_stays_text(message: Message) -> None:
    assert repair_history((message,), read, {"read_file"}) == ((message,), ())


FRAME = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>"


def in_harmony(text: str) -> Collected:
    parser = Parser(get_dialect("harmony"))
    return collect([*parser.feed(text), *parser.close()])


def test_a_frame_that_leaked_is_taken_off_an_earlier_answer() -> None:
    frames = get_dialect("harmony").frame_indicators
    mended, repairs = repair_history((answer(Text(f"{FRAME}Hello.<|return|>")),), in_harmony, frames=frames)
    assert mended == (answer(Reasoning("Hm."), Text("Hello.")),)
    assert [repair.kind for repair in repairs] == ["unframed_answer"]
    assert repair_history(mended, in_harmony, frames=frames) == (mended, ())


@pytest.mark.parametrize(
    "text", ["Write <|start|> before a message.", "All final.", f"{FRAME[:-11]}<|start|>tool<|message|>x"]
)
def test_what_is_no_frame_or_not_sound_stays_as_it_is(text: str) -> None:
    message = answer(Text(text))
    assert repair_history((message,), in_harmony, frames=get_dialect("harmony").frame_indicators) == ((message,), ())


def test_without_tools_nothing_is_read() -> None:
    assert repair_history((answer(Text(LEAK)),)).messages == (answer(Text(LEAK)),)


# ── for strict servers ───────────────────────────────────────────────────────────────────────────


def test_rc10_instructions_in_the_middle_go_to_the_front() -> None:
    """https://github.com/ggml-org/llama.cpp/issues/20733: System message must be at the beginning."""
    first, later = Message("developer", (Text("A"),)), Message("system", (Text("B"),))
    notes: list[object] = []
    ordered = merge_roles_strictly((first, user("1"), later, user("2"), answer(Text("3"))), notes)  # type: ignore[arg-type]
    assert ordered == (
        Message("developer", (Text("A"), Text("B"))),
        Message("user", (Text("1"), Text("2"))),
        answer(Text("3")),
    )
    assert [note.kind for note in notes] == ["moved_system", "merged_roles"]  # type: ignore[attr-defined]


def test_rc10_a_picture_in_a_result_goes_to_a_users_message() -> None:
    """https://github.com/vllm-project/vllm/issues/43203"""
    sent = (answer(call("a"), call("b")), result("a", "", images=(PICTURE,)), result("b", "text"), user("so?"))
    moved = move_result_images(sent, [])
    assert [message.role for message in moved] == ["assistant", "tool", "tool", "user", "user"]
    assert moved[3].parts == (Text("From the result of read_file:"), PICTURE)
    assert moved[1].parts[0].content  # type: ignore[union-attr]


def test_rc7_reasoning_is_dropped_where_that_is_set() -> None:
    """https://github.com/JohnnyZ93/oai-compatible-copilot/issues/215 has it demanded; others refuse it."""
    sent = (answer(Reasoning("hm"), call("a")), result("a", ""), answer(Reasoning("hm")))
    assert drop_reasoning(sent) == (answer(call("a")), result("a", ""))
    assert repair_history(sent).messages == sent
