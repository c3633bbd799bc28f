"""The loop decides; what it decides is seen in the effects that it asks for."""

import json

import pytest

from callwright.agent.loop.answer_stream import COMPLETION_SIGNAL
from callwright.agent.loop.effects import CallModel, DecideCall, RunTool, SaveCheckpoint
from callwright.agent.session_events import CallDecided, HistoryCondensed, ModelNudged, TaskStopped, ToolFinished
from callwright.agent.settings import TaskLimits
from callwright.errors import MisuseError
from callwright.model import Message, Reasoning, Text, ToolResult
from tests.support.loops import Script, brief, call, says

DONE = says(f"I did it. {COMPLETION_SIGNAL}")


def run(task, *answers, **more):
    limits = more.pop("limits", TaskLimits())
    window = more.pop("window", 0)
    script = Script(answers, **more)
    ended = script.drive(brief(task, limits=limits, window=window))
    return script, ended


def results(ended):
    return [part for message in ended.history for part in message.parts if isinstance(part, ToolResult)]


def test_a_question_is_answered_at_once():
    script, ended = run("What is in here?", says("Two files."))
    assert ended.stopped.reason == "done"
    assert len(script.asked()) == 1


def test_calls_run_in_order_and_their_results_are_told_by_id_and_name():
    first, second = call("look", path="a.py"), call("shell", command="ls")
    _, ended = run("Look around", says(first, second), DONE)
    assert [(part.call_id, part.name, part.content) for part in results(ended)] == [
        (first.id, "look", "look done"),
        (second.id, "shell", "shell done"),
    ]


def test_thinking_content_and_calls_stay_in_the_history():
    look = call("look", path="a.py")
    _, ended = run("Look", says(Reasoning("Hm.", {"signature": "s"}), "I look.", look), DONE)
    assert ended.history[2] == Message("assistant", (Reasoning("Hm.", {"signature": "s"}), Text("I look."), look))


def test_only_edits_have_a_checkpoint_and_have_it_before_they_run():
    script, _ = run("Create a.py", says(call("write", path="a.py", content="x"), call("look", path="a.py")), DONE)
    kinds = [type(effect) for effect in script.effects if isinstance(effect, SaveCheckpoint | RunTool | DecideCall)]
    assert kinds == [DecideCall, SaveCheckpoint, RunTool, DecideCall, RunTool]


def deny(effect):
    return CallDecided(call=effect.call, verdict="deny", by="person", why="it deletes things", words="use mv")


def test_a_denied_call_never_runs_and_the_model_is_told_why():
    script, ended = run("Run it", says(call("shell", command="rm x")), says("All right."), decide=deny)
    assert not any(isinstance(effect, RunTool) for effect in script.effects)
    assert script.told(ToolFinished)[0].status == "denied"
    told = results(ended)[0]
    assert told.is_error
    assert "it deletes things" in told.content
    assert "use mv" in told.content


def test_what_nobody_was_there_to_allow_is_no_success():
    def alone(effect):
        return CallDecided(call=effect.call, verdict="deny", by="settings", why="nobody was there to ask")

    _, ended = run("Run it", says(call("shell", command="rm x")), DONE, decide=alone)
    assert ended.stopped.reason == "denied"


def test_an_edited_command_runs_as_edited_and_the_model_hears_of_it():
    def edit(effect):
        changed = call("shell", command="ls -l")
        changed = type(changed)(effect.call.id, "shell", changed.arguments)
        return CallDecided(call=changed, verdict="allow", by="person", why="ok", words="The person changed the command")

    script, ended = run("Run it", says(call("shell", command="ls")), DONE, decide=edit)
    assert [json.loads(effect.call.arguments) for effect in script.effects if isinstance(effect, RunTool)] == [
        {"command": "ls -l"}
    ]
    assert "The person changed the command" in results(ended)[0].content


def test_a_stop_leaves_no_call_without_a_result():
    def stop(effect):
        return CallDecided(call=effect.call, verdict="stop", by="person", why="stop")

    script, ended = run("Run it", says(call("shell", command="a"), call("shell", command="b")), decide=stop)
    assert ended.stopped.reason == "person"
    assert [event.status for event in script.told(ToolFinished)] == ["denied", "stopped"]
    assert len(results(ended)) == 2


@pytest.mark.parametrize(
    ("bad", "part"),
    [
        (call("loook", path="a"), "Did you mean look?"),
        (call("nothing", path="a"), "The tools are: look, write, shell"),
        (type(call("look"))("call_x", "look", "[1]"), "not a JSON object"),
        (call("write", complete=False, path="a"), "cut off"),
    ],
)
def test_a_call_that_cannot_run_is_explained_and_does_not(bad, part):
    script, ended = run("Look", says(bad), DONE)
    assert part in results(ended)[0].content
    assert not any(isinstance(effect, DecideCall | RunTool) for effect in script.effects)
    assert ended.stopped.reason == "done"
    assert all(json.loads(c.arguments) is not None for m in ended.history for c in m.parts if hasattr(c, "arguments"))


def test_done_is_not_believed_of_a_task_that_wrote_nothing():
    script, ended = run("Fix the bug in a.py", DONE, DONE, DONE)
    assert ended.stopped.reason == "unfinished"
    assert len(script.told(ModelNudged)) == 2
    assert [effect.must_edit for effect in script.asked()] == [False, False, True]


def test_done_is_believed_once_something_was_written():
    _, ended = run("Fix the bug in a.py", DONE, says(call("write", path="a.py", content="x")), DONE)
    assert ended.stopped.reason == "done"


def test_a_failed_write_is_none():
    def fail(effect):
        one = effect.call
        return ToolFinished(call=one.id, name=one.name, view="", status="error", content="no", wrote=True)

    _, ended = run("Fix it", says(call("write", path="a", content="x")), DONE, DONE, DONE, run=fail)
    assert ended.stopped.reason == "unfinished"


def test_calls_beside_the_signal_still_run():
    script, ended = run("Create a.py", says(f"Done {COMPLETION_SIGNAL}", call("write", path="a.py", content="x")), DONE)
    assert any(isinstance(effect, RunTool) for effect in script.effects)
    assert ended.stopped.reason == "done"


def test_two_answers_without_calls_end_a_task_that_wrote():
    script, ended = run(
        "Create a.py", says(call("write", path="a.py", content="x")), says("Now I run it."), says("It works.")
    )
    assert ended.stopped.reason == "done"
    assert len(script.told(ModelNudged)) == 1


def test_a_model_that_says_nothing_is_asked_and_then_left():
    _, ended = run("What is this?", says(), says(), says())
    assert ended.stopped.reason == "unfinished"


def test_an_answer_that_was_cut_off_goes_on():
    script, ended = run("What is this?", says("It is", finish="length"), says("a program."))
    assert ended.stopped.reason == "done"
    assert "cut off" in script.told(ModelNudged)[0].text


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (TaskLimits(max_iterations=3), "iterations"),
        (TaskLimits(max_tokens=40), "tokens"),
        (TaskLimits(timeout_seconds=3), "time"),
    ],
)
def test_limits_are_typed_stops(limits, reason):
    answers = [says(call("look", path=str(number))) for number in range(10)]
    script, ended = run("Look", *answers, limits=limits)
    assert ended.stopped.reason == reason
    assert len(script.asked()) == 3


def test_a_failing_backend_is_a_failure():
    _, ended = run("Look", says(problem="nothing answers at 127.0.0.1"))
    assert ended.stopped == TaskStopped(task=1, reason="failed", text="nothing answers at 127.0.0.1")


def test_the_same_call_three_times_asks():
    answers = [says(call("look", path="a")) for _ in range(4)]
    script, _ = run("Look", *answers, DONE)
    assert [effect.is_repeat for effect in script.effects if isinstance(effect, DecideCall)] == [
        False,
        False,
        True,
        False,
    ]


def test_other_calls_in_between_do_not():
    answers = [says(call("look", path="a"), call("look", path="b")) for _ in range(4)]
    script, _ = run("Look", *answers, DONE)
    assert not any(effect.is_repeat for effect in script.effects if isinstance(effect, DecideCall))


def test_deferred_content_is_written_by_a_second_answer_without_tools():
    content = says("```python\nprint(1)\n```", purpose="content")
    script, _ = run("Create a.py", says(call("write", path="a.py", description="prints 1")), content, DONE)
    ran = next(effect for effect in script.effects if isinstance(effect, RunTool))
    assert json.loads(ran.call.arguments)["content"] == "print(1)\n"
    assert script.asked()[1].purpose == "content"
    assert "prints 1" in script.asked()[1].messages[-1].parts[0].text
    assert script.asked()[1].messages[-1] not in script.asked()[2].messages


def big(effect):
    """A tool with much to say."""
    content = effect.call.arguments + " x" * 1500
    return ToolFinished(call=effect.call.id, name="look", view="", status="ok", content=content)


def test_a_filling_window_is_condensed_without_losing_task_or_calls():
    counted = []

    class Model(Script):
        def _perform(self, effect):
            if isinstance(effect, CallModel) and effect.purpose == "condense":
                return says("I read a lot.", purpose="condense")
            return super()._perform(effect)

    script = Model([*(says(call("look", path=str(n))) for n in range(30)), DONE], run=big)
    ended = script.drive(brief("Look at it all and tell", window=8000))
    assert ended.stopped.reason == "done"
    assert script.told(HistoryCondensed)
    for effect in script.asked():
        counted.append(brief("x").count_tokens(effect.messages))
        assert "Look at it all and tell" in str(effect.messages)
        open_calls = {p.id for m in effect.messages for p in m.parts if hasattr(p, "arguments")}
        answered = {p.call_id for m in effect.messages for p in m.parts if isinstance(p, ToolResult)}
        assert open_calls == answered
    assert max(counted) < 8000


def test_one_result_that_fills_the_window_is_cut_and_the_task_goes_on():
    def huge(effect):
        return ToolFinished(call=effect.call.id, name="look", view="", status="ok", content="begins " + "x" * 60_000)

    class Model(Script):
        def _perform(self, effect):
            if isinstance(effect, CallModel) and effect.purpose == "condense":
                return says("I looked.", purpose="condense")
            return super()._perform(effect)

    script = Model([says(call("look", path="a")), DONE], run=huge)
    ended = script.drive(brief("Look", window=4000))
    assert ended.stopped.reason == "done"
    assert max(brief("x").count_tokens(effect.messages) for effect in script.asked()) < 4000
    (told,) = results(ended)
    assert told.content.startswith("begins x")
    assert "omitted here" in told.content


def test_a_task_that_cannot_fit_stops_instead_of_going_in_circles():
    class Model(Script):
        def _perform(self, effect):
            return says("s" * 40_000, purpose="condense") if isinstance(effect, CallModel) else super()._perform(effect)

    ended = Model([]).drive(brief("Look " + "x" * 9000, window=2000))
    assert ended.stopped.reason == "tokens"


def test_the_wrong_answer_is_our_own_mistake():
    class Wrong(Script):
        def _perform(self, effect):
            return DONE if isinstance(effect, DecideCall) else super()._perform(effect)

    with pytest.raises(MisuseError, match="DecideCall is answered with CallDecided, not ModelAnswered"):
        Wrong([says(call("look", path="a"))]).drive(brief("Look"))
