"""What a session's events come to when it is opened again."""

import pytest
from loops import Script, brief, call, says

from callwright.agent.events import SessionOpened, Stamped, ToolBegan
from callwright.agent.nudges import unfenced
from callwright.agent.past import Past, history_of, unfinished
from callwright.agent.stream import SIGNAL
from callwright.agent.summary import summarised
from callwright.errors import StoreError

OPENED = Stamped(1, 0.0, SessionOpened(session="s", workspace="/w", model="m", system="You are an agent."))


def played(task, *answers):
    script = Script(answers)
    ended = script.drive(brief(task))
    return script.events, ended


def test_the_history_of_a_task_is_what_the_loop_told_the_model():
    look = call("look", path="a")
    events, ended = played("Create it", says("I look", look), says(call("write", path="a", content="x")), says(SIGNAL))
    assert history_of([OPENED, *events]) == ended.history


def test_a_task_without_an_end_is_found():
    events, _ = played("What?", says("That."))
    assert unfinished(events) is None
    assert unfinished(events[:-1]) == 0
    assert unfinished([*events, *events[:-1]]) == len(events)
    assert unfinished([]) is None


def test_what_ran_when_the_process_ended_is_known():
    events, _ = played("Look", says(call("shell", command="ls")), says("ok"))
    began = Stamped(9, 0.0, ToolBegan(call="call_z", name="shell", view="$ ls"))
    assert Past([*events, began]).begun == {"call_z"}


def test_another_course_of_events_is_not_taken_for_this_one():
    events, _ = played("Look", says(call("look", path="a")), says("ok"))
    with pytest.raises(StoreError, match="another version"):
        Script([]).drive(brief("Look"), past=[events[0], events[-1]])


def test_a_summary_says_what_was_done_and_what_was_not():
    events, _ = played("Create", says(call("write", path="a", content="x"), call("nix")), says(f"I made a. {SIGNAL}"))
    summary = summarised(events, ())
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
    assert unfenced(said) == content
