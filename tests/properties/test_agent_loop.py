"""Laws of the loop: played again from any point of its past it asks the same, and what is denied never runs."""

from hypothesis import given
from hypothesis import strategies as st

from callwright.agent.loop.answer_stream import COMPLETION_SIGNAL
from callwright.agent.loop.effects import RunTool
from callwright.agent.session_events import CallDecided
from callwright.agent.settings import TaskLimits
from callwright.model import ToolResult
from tests.support.loops import Script, brief, call, says

NAMES = st.sampled_from(["look", "write", "shell", "unknown"])


@st.composite
def answers(draw):
    """What a model might say, turn by turn; it always gets to an end."""
    turns = []
    for _ in range(draw(st.integers(0, 6))):
        calls = [
            call(draw(NAMES), complete=draw(st.integers(0, 9)) > 0, path=draw(st.sampled_from("ab")), content="x")
            for _ in range(draw(st.integers(0, 3)))
        ]
        turns.append(
            says(*([draw(st.sampled_from(["", "Well.", COMPLETION_SIGNAL]))] if draw(st.booleans()) else []), *calls)
        )
    return [*turns, *[says(f"Done {COMPLETION_SIGNAL}")] * 4, *[says(problem="over")] * 3]


VERDICTS = st.lists(st.sampled_from(["allow", "allow", "deny", "stop"]), min_size=1, max_size=8)
TASKS = st.sampled_from(["What is it?", "Fix it", "Create a.py and run it"])


def deciding(verdicts):
    """The same decision for the same call, whenever it is asked."""

    def decide(effect):
        verdict = verdicts[sum(map(ord, effect.call.id)) % len(verdicts)]
        return CallDecided(call=effect.call, verdict=verdict, by="person", why="so")

    return decide


@given(TASKS, answers(), VERDICTS, st.integers(0, 60))
def test_a_loop_played_again_from_its_past_asks_for_the_same(task, said, verdicts, crash):
    whole = Script(said, deciding(verdicts))
    ended = whole.drive(brief(task, limits=TaskLimits(max_iterations=12)))
    cut = whole.events[:crash]
    answered = sum(1 for stamped in cut if type(stamped.event).__name__ == "ModelAnswered")
    again = Script(said[answered:], deciding(verdicts))
    same = again.drive(brief(task, limits=TaskLimits(max_iterations=12)), past=cut)
    assert again.effects == whole.effects
    assert same == ended
    assert [s.event for s in (*cut, *again.events)] == [s.event for s in whole.events]


@given(TASKS, answers(), VERDICTS)
def test_what_is_denied_never_runs_and_every_call_has_one_result(task, said, verdicts):
    script = Script(said, deciding(verdicts))
    ended = script.drive(brief(task, limits=TaskLimits(max_iterations=12)))
    refused = {stamped.event.call.id for stamped in script.events if getattr(stamped.event, "verdict", "") != "allow"
               and isinstance(stamped.event, CallDecided)}  # fmt: skip
    ran = [effect.call.id for effect in script.effects if isinstance(effect, RunTool)]
    assert not refused & set(ran)
    assert len(ran) == len(set(ran))
    calls = [part.id for message in ended.history for part in message.parts if hasattr(part, "arguments")]
    results = [part.call_id for message in ended.history for part in message.parts if isinstance(part, ToolResult)]
    assert calls == results
