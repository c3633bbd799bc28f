"""What a session's events come to when it is opened again."""

import pytest

from callwright.agent.loop.answer_stream import COMPLETION_SIGNAL
from callwright.agent.loop.effects import CallModel
from callwright.agent.loop.nudges import strip_code_fence
from callwright.agent.loop.recorded_answers import RecordedAnswers, build_history, find_unfinished_task
from callwright.agent.loop.task_summary import summarize_task
from callwright.agent.session_events import (
    CallDecided,
    HistoryCondensed,
    SessionOpened,
    StampedEvent,
    ToolFinished,
    ToolStarted,
)
from callwright.errors import StoreError
from callwright.model import Text
from tests.support.loops import Script, brief, call, says

OPENED = StampedEvent(1, 0.0, SessionOpened(session="s", workspace="/w", model="m", system="You are an agent."))


def played(task, *answers):
    script = Script(answers)
    ended = script.drive(brief(task))
    return script.events, ended


def test_the_history_of_a_task_is_what_the_loop_told_the_model():
    look = call("look", path="a")
    events, ended = played(
        "Create it", says("I look", look), says(call("write", path="a", content="x")), says(COMPLETION_SIGNAL)
    )
    assert build_history([OPENED, *events]) == ended.history


def test_what_the_person_said_to_a_call_stays_in_the_history():
    def edit(effect):
        return CallDecided(call=effect.call, verdict="allow", by="person", why="ok", words="The person changed it")

    script = Script([says(call("shell", command="ls")), says("Seen.")], decide=edit)
    ended = script.drive(brief("Look"))
    assert "The person changed it" in ended.history[3].parts[0].content
    assert build_history([OPENED, *script.events]) == ended.history


@pytest.mark.parametrize(("size", "summary"), [(900, "I read a lot."), (900, ""), (30_000, "Much.")])
def test_what_was_condensed_stays_so(size, summary):
    class Model(Script):
        def _perform(self, effect):
            if isinstance(effect, CallModel) and effect.purpose == "condense":
                return says(summary, purpose="condense")
            return super()._perform(effect)

    def big(effect):
        return ToolFinished(call=effect.call.id, name="look", view="", status="ok", content="x " * size)

    script = Model([*(says(call("look", path=str(n))) for n in range(20)), says("Seen.")], run=big)
    ended = script.drive(brief("Look at it all", window=5000))
    assert ended.stopped.reason == "done"
    assert len(script.told(HistoryCondensed)) > 1
    assert build_history([OPENED, *script.events]) == ended.history


@pytest.mark.parametrize("broken", [{"stopped": True}, {"problem": "the server went away"}])
def test_calls_of_an_answer_that_broke_off_are_not_told_again(broken):
    events, _ = played("Look", says("I look.", call("look", path="a"), **broken))
    assert [(m.role, m.parts) for m in build_history([OPENED, *events])[2:]] == [("assistant", (Text("I look."),))]


def test_a_call_of_a_task_that_was_left_has_a_result_before_the_next_task():
    look = call("look", path="a")
    script = Script([says(look), says("ok")])
    assert script.drive(brief("Look"), crash_after=4) is None
    again, _ = played("Look again", says("ok"))
    history = build_history([OPENED, *script.events, *again])
    assert [m.role for m in history] == ["system", "user", "assistant", "tool", "user", "assistant"]
    assert history[3].parts[0].call_id == look.id


def test_an_id_that_every_call_has_does_not_hide_what_ran():
    events, _ = played("Look", says(call("shell", command="ls")), says("ok"))
    used = next(stamped.event.call for stamped in events if isinstance(stamped.event, ToolFinished))
    assert RecordedAnswers(
        [*events, StampedEvent(9, 0.0, ToolStarted(call=used, name="shell", view="$ ls"))]
    ).started_calls == {used}


def test_a_task_without_an_end_is_found():
    events, _ = played("What?", says("That."))
    assert find_unfinished_task(events) is None
    assert find_unfinished_task(events[:-1]) == 0
    assert find_unfinished_task([*events, *events[:-1]]) == len(events)
    assert find_unfinished_task([]) is None


def test_what_ran_when_the_process_ended_is_known():
    events, _ = played("Look", says(call("shell", command="ls")), says("ok"))
    began = StampedEvent(9, 0.0, ToolStarted(call="call_z", name="shell", view="$ ls"))
    assert RecordedAnswers([*events, began]).started_calls == {"call_z"}


def test_another_course_of_events_is_not_taken_for_this_one():
    events, _ = played("Look", says(call("look", path="a")), says("ok"))
    with pytest.raises(StoreError, match="another version"):
        Script([]).drive(brief("Look"), past=[events[0], events[-1]])


def test_a_summary_says_what_was_done_and_what_was_not():
    events, _ = played(
        "Create", says(call("write", path="a", content="x"), call("nix")), says(f"I made a. {COMPLETION_SIGNAL}")
    )
    summary = summarize_task(events, ())
    assert summary.text == "I made a."
    assert summary.done == ("write",)
    assert summary.failed == ("nix",)
    assert (summary.turns, summary.tokens, summary.task) == (2, 30, 1)


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("x = 1\n", "x = 1\n"),
        ("```python\nx = 1\n```", "x = 1\n"),
        ("\n~~~\nx\n\n~~~\n", "x\n\n"),
        ("Here:\n```\nx\n```", "Here:\n```\nx\n```"),
        ("```md\na\n```\nb\n```\nc\n```", "a\n```\nb\n```\nc\n"),
    ],
)
def test_the_fence_around_a_whole_file_is_not_part_of_it(said, content):
    assert strip_code_fence(said) == content
