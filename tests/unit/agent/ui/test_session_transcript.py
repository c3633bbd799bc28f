"""The transcript: live and opened again it is the same, and nothing that it shows can be taken for something else."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from callwright.agent.session_events import (
    ApprovalRequested,
    CallDecided,
    CallProgress,
    FilesChanged,
    GroupClosed,
    GroupOpened,
    ModelAnswered,
    ModelNudged,
    SessionEvent,
    SessionOpened,
    StampedEvent,
    TaskStarted,
    TaskStopped,
    TaskSummarized,
    TextAppended,
    ThinkingAppended,
    ThinkingEnded,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnStarted,
    WarningIssued,
)
from callwright.agent.ui.console.session_screen import SessionScreen
from callwright.agent.ui.console.session_transcript import SessionTranscript, render_stored_session
from callwright.model import Message, ToolCall, Usage
from tests.support.effort import count_calls
from tests.support.played import NAMES, Played, recorded, stamped, stat
from tests.support.screens import Terminal

CALL = ToolCall("c", "run_terminal_command", "{}")
TEXT = st.text(st.sampled_from("ab \n`*-1.#>~<é数\u202e\x1b[31m\r\t"), max_size=40)
EVENTS = st.one_of(
    TEXT.map(TextAppended),
    TEXT.map(ThinkingAppended),
    st.floats(0, 100).map(ThinkingEnded),
    TEXT.map(WarningIssued),
    TEXT.map(ModelNudged),
    st.just(TurnStarted(number=1)),
    st.builds(CallProgress, name=TEXT, characters=st.integers(0, 9999)),
    TEXT.map(
        lambda text: ModelAnswered(
            purpose="turn", message=Message("assistant", ()), finish="stop", usage=Usage(), seconds=1, problem=text
        )
    ),
    st.builds(GroupOpened, title=TEXT, calls=st.integers(1, 3)),
    st.just(GroupClosed()),
    TEXT.map(lambda text: ToolStarted(call="c", name="run", view=text, command=text)),
    TEXT.map(lambda text: ToolOutput(call="c", text=text)),
    st.builds(
        lambda text, status, code: ToolFinished(
            call="c", name="run", view=text, status=status, content=text, seconds=0.1, exit_code=code
        ),
        TEXT,
        st.sampled_from(["ok", "error", "denied", "stopped", "unknown"]),
        st.sampled_from([None, 0, 1]),
    ),
    TEXT.map(lambda text: CallDecided(call=CALL, verdict="allow", by="person", why=text, remembered=(text,))),
    st.builds(
        ApprovalRequested,
        approval=st.just("a"),
        call=st.just("c"),
        subject=st.just("command"),
        title=TEXT,
        why=TEXT,
        tier=st.sampled_from(["none", "medium", "high", "critical"]),
        command=TEXT,
        diff=TEXT,
        remember=st.lists(TEXT, max_size=2).map(tuple),
    ),
)


def printed(pieces: Sequence[object], width: int = 80) -> list[str]:
    terminal, file = Terminal(), io.StringIO()
    console = Console(file=file, width=width, height=30, force_terminal=True, highlight=False)
    for piece in pieces:
        console.print(piece)
    terminal.write(file.getvalue())
    return terminal.lines


def text_of(*events: SessionEvent, width: int = 80) -> str:
    return "\n".join(printed(render_stored_session(stamped(*events)), width))


def live(events: Sequence[StampedEvent], width: int = 80, batch: int = 1) -> list[str]:
    """What stands on the terminal after the events were shown as they came, with the moving part drawn each time."""
    terminal, file = Terminal(), io.StringIO()
    console = Console(file=file, width=width, height=30, force_terminal=True, highlight=False)
    session = Played([], told=0)
    screen = SessionScreen(console, session, SessionTranscript(home="/home/me"))
    with screen.show_live_region() as draw:
        for start in range(0, len(events), batch):
            session.events.extend(events[start : start + batch])  # type: ignore[attr-defined]
            screen.print_new_events()
            draw()
    screen.print(*screen.transcript.close())
    terminal.write(file.getvalue())
    return terminal.lines


@pytest.mark.parametrize("width", [40, 80, 140])
@pytest.mark.parametrize("name", NAMES)
def test_a_session_looks_the_same_live_and_opened_again(name: str, width: int) -> None:
    events = recorded(name)
    again = printed(render_stored_session(events, home="/home/me"), width)
    assert live(events, width) == live(events, width, batch=7) == again
    assert max(map(len, again)) <= width


@given(st.lists(EVENTS, max_size=12), st.integers(1, 4), st.sampled_from([20, 80]))
def test_any_events_look_the_same_live_and_opened_again(events: list[SessionEvent], batch: int, width: int) -> None:
    told = stamped(*events)
    assert live(told, width, batch) == printed(render_stored_session(told, home="/home/me"), width)


@given(st.lists(TEXT, max_size=8))
def test_the_pieces_in_which_text_arrives_make_no_difference(pieces: list[str]) -> None:
    for kind in (TextAppended, ThinkingAppended):
        ending = ThinkingEnded(1.0)
        assert text_of(*map(kind, pieces), ending) == text_of(kind("".join(pieces)), ending) or not any(pieces)


@given(TEXT, st.sampled_from(["title", "why", "command", "folder", "diff"]))
def test_no_word_of_a_model_reaches_the_terminal_as_a_control(text: str, field: str) -> None:
    asked = {
        "approval": "a",
        "call": "c",
        "subject": "command",
        "title": "Run",
        "why": "",
        field: text + "\x1b]0;x\x07",
    }
    text_of(ApprovalRequested(**asked), TextAppended(text), WarningIssued(text))  # the terminal of the tests raises


def test_every_event_has_a_place_in_the_transcript() -> None:
    shown = {type(event.event) for name in NAMES for event in recorded(name)}
    missing = {kind.__name__ for kind in get_args(SessionEvent)} - {kind.__name__ for kind in shown}
    assert not missing, "a vector in tests/vectors/sessions should have one"


def test_thinking_is_one_line_until_it_is_asked_for() -> None:
    events = stamped(ThinkingAppended("first this, "), ThinkingAppended("then that"), ThinkingEnded(4.2))
    assert printed(render_stored_session(events)) == ["Thought for 4.2 s"]
    assert printed(render_stored_session(events, thinking=True)) == ["Thought for 4.2 s", "  first this, then that"]


def test_thinking_that_nobody_ended_is_timed_by_the_events() -> None:
    assert (
        printed(render_stored_session(stamped(ThinkingAppended("hm"), TextAppended("So."), step=1.5)))[0]
        == "Thought for 1.5 s"
    )


def test_a_command_that_failed_shows_more_of_its_output_than_one_that_worked() -> None:
    output = "".join(f"line {number}\n" for number in range(9))
    began = ToolStarted(call="c", name="run", view="Run make", command="make")

    def shown(code: int) -> list[str]:
        ended = ToolFinished(
            call="c", name="run", view="Run make", status="ok", content="", seconds=0.5, exit_code=code
        )
        return printed(render_stored_session(stamped(began, ToolOutput(call="c", text=output), ended)))

    assert shown(0) == ["✓ Run make  500 ms", "  │ … 8 lines", "  │ line 8"]
    assert shown(2)[:2] == ["✗ Run make  exit 2 · 500 ms", "  │ … 4 lines"]
    assert len(shown(2)) == 7


def test_calls_of_one_answer_stand_under_their_title() -> None:
    ended = ToolFinished(call="c", name="read", view="Read a.py", status="ok", content="")
    group = (GroupOpened(title="2 steps", calls=2), ended, ended, GroupClosed(), ended)
    assert text_of(*group).split("\n") == ["● 2 steps", "  ✓ Read a.py", "  ✓ Read a.py", "✓ Read a.py"]


def test_an_approval_says_what_always_means_and_for_how_long() -> None:
    asked = ApprovalRequested(
        approval="a",
        call="c",
        subject="command",
        title="Run a command",
        why="rule npm",
        tier="high",
        command="npm i",
        remember=("npm install …",),
    )
    text = text_of(asked)
    assert all(
        part in text for part in ("$ npm i", "high risk", "rule npm", "until this session ends", "npm install …")
    )


def test_what_is_asked_stands_below_its_diff() -> None:
    diff = "--- a\n+++ a\n@@ -1 +1,500 @@\n-x\n" + "+y\n" * 500
    lines = text_of(
        ApprovalRequested(approval="a", call="c", subject="edit", title="Edit a", why="protected", diff=diff)
    ).split("\n")
    assert len(lines) > 500
    assert "Edit a" in lines[-3]


def test_a_denied_call_says_why() -> None:
    denied = CallDecided(call=CALL, verdict="deny", by="person", why="rule rm", words="not that one")
    ended = ToolFinished(call="c", name="run", view="Run rm x", status="denied", content="Denied")
    assert text_of(denied, ended) == "⊘ Run rm x  denied · not that one"


def test_the_summary_has_files_with_counts_and_what_did_not_happen() -> None:
    summary = TaskSummarized(
        task=1,
        text="",
        done=("Edit a.py",),
        failed=("Read x",),
        denied=("Run rm",),
        files=(stat("a.py", 2, 1), stat("src/数据.py", 10, 0)),
        turns=3,
        tokens=12_345,
        seconds=70,
    )
    lines = text_of(TaskStopped(task=1, reason="done", text=""), summary).strip().split("\n")
    assert [line.split() for line in lines] == [
        ["✓", "Done"],
        ["a.py", "+2", "−1"],
        ["src/数据.py", "+10", "−0"],
        ["2", "files", "+12", "−1"],
        ["✗", "Read", "x", "failed"],
        ["⊘", "Run", "rm", "denied"],
        ["3", "turns", "·", "1", "call", "done", "·", "12.3k", "tokens", "·", "1", "min", "10", "s"],
    ]


def test_the_question_that_is_open_is_known() -> None:
    transcript = SessionTranscript()
    asked = ApprovalRequested(approval="a", call="c", subject="command", title="Run", why="")
    events = stamped(asked, CallDecided(call=CALL, verdict="allow", by="person", why=""))
    transcript.feed(events[0])
    assert transcript.pending_approval == asked
    transcript.feed(events[1])
    assert transcript.pending_approval is None


def test_the_home_folder_is_a_tilde() -> None:
    opened = SessionOpened(session="s", workspace="/home/me/project", model="m", system="")
    assert "~/project" in "\n".join(printed(render_stored_session(stamped(opened), home="/home/me")))
    assert "/home/mean" in "\n".join(
        printed(
            render_stored_session(
                stamped(SessionOpened(session="s", workspace="/home/mean", model="m", system="")), home="/home/me"
            )
        )
    )


def test_the_moving_part_fits_on_the_screen_however_much_is_written() -> None:
    transcript = SessionTranscript()
    for event in stamped(TurnStarted(number=1), TextAppended("```\n" + ("x" * 200 + "\n") * 500)):
        transcript.feed(event)
    lines = printed([transcript.build_live_region(time.time(), "Ctrl-C stops")])
    assert len(lines) == 28
    assert "Ctrl-C stops" in lines[-1]


def test_a_session_twice_as_long_is_twice_the_work_to_open_again() -> None:
    once = [event.event for event in recorded("fix")[2:]]

    def work(times: int) -> int:
        events = stamped(TaskStarted(task=1, text="x"), *once * times)
        return count_calls(lambda: printed(render_stored_session(events)))

    work(1)  # what is imported and compiled the first time does not count
    assert work(8) < 2.2 * work(4)


def test_files_that_were_kept_are_no_longer_changed() -> None:
    transcript = SessionTranscript()
    for event in stamped(FilesChanged(files=(stat("a", 1, 0),)), FilesChanged(files=())):
        transcript.feed(event)
    assert transcript.files == ()
