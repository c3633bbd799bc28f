"""The headless face: every event once and as it is stored, nobody asked, and an exit code that does not lie."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from callwright.agent.session_events import (
    SessionOpened,
    StampedEvent,
    StopReason,
    TaskStarted,
    TaskStopped,
    TaskSummarized,
    TextAppended,
    ToolFinished,
)
from callwright.agent.ui.headless import run_headless
from callwright.agent.ui.unattended import EXIT_CODES
from callwright.errors import MisuseError
from tests.support.played import NAMES, Played, recorded, stamped

ROOT = Path(__file__).parents[4]
PIPED = """
import asyncio, sys
from callwright.agent.ui.headless import run_headless
from tests.support.played import Played, recorded
sys.exit(asyncio.run(run_headless(Played(recorded("fix"), speed=float(sys.argv[1])), "x")))
"""


def short(reason: StopReason) -> list[StampedEvent]:
    return stamped(
        SessionOpened(session="s", workspace="/w", model="m", system=""),
        TaskStarted(task=1, text="x"),
        TextAppended("The answer."),
        TaskStopped(task=1, reason=reason, text="because"),
        TaskSummarized(
            task=1, text="The answer.", done=(), failed=(), denied=(), files=(), turns=1, tokens=9, seconds=1
        ),
    )


def run(session: Played, task: str = "x", *, json: bool = True, resume: bool = False) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = asyncio.run(run_headless(session, task, json=json, resume=resume, out=out, err=err))
    return code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("interrupted", "undo")])
def test_each_line_is_an_event_as_it_is_stored(name: str) -> None:
    session = Played(recorded(name))
    _, out, _ = run(session)
    assert (
        msgspec.json.decode(b"[" + ",".join(out.splitlines()).encode() + b"]", type=list[StampedEvent])
        == session.events
    )
    assert out.encode() == b"".join(msgspec.json.encode(event) + b"\n" for event in session.events)
    assert session.closed


@pytest.mark.parametrize("reason", get_args(StopReason))
def test_the_exit_code_says_how_it_ended(reason: StopReason) -> None:
    expected = {"done": 0, "denied": 3, "iterations": 4, "tokens": 4, "time": 4, "person": 130}.get(reason, 1)
    assert run(Played(short(reason)))[0] == expected


def test_every_way_to_end_has_an_exit_code() -> None:
    assert EXIT_CODES.keys() == set(get_args(StopReason))


def test_what_would_be_asked_is_denied_with_a_reason() -> None:
    session = Played(recorded("approval"))
    run(session)
    assert [(name, reply.verdict, reply.is_unattended) for name, reply in session.replies] == [
        ("a1", "deny", True),
        ("a2", "deny", True),
    ]
    assert all("runs unattended" in reply.words.lower() for _, reply in session.replies)
    statuses = [each.event.status for each in session.events if isinstance(each.event, ToolFinished)]
    assert statuses == ["denied", "denied"]


def test_in_words_the_answer_is_alone_on_standard_output() -> None:
    code, out, err = run(Played(recorded("fix")), json=False)
    assert code == 0
    assert out == "The test passes now. `total` adds each number to the result, and an empty list gives 0.\n"
    assert "✗ Run pytest -q" in err
    assert "src/app.py  +2" in err
    assert "The test passes now" not in err
    assert "\x1b" not in err


def test_a_session_that_is_opened_again_tells_only_what_is_new() -> None:
    events = recorded("interrupted")
    session = Played(events, told=10)
    code, out, _ = run(session, task="", resume=True)
    lines = [msgspec.json.decode(line, type=StampedEvent) for line in out.splitlines()]
    assert code == 4
    assert [line.seq for line in lines] == [event.seq for event in events[9:]]


def test_going_on_with_nothing_is_a_mistake() -> None:
    with pytest.raises(MisuseError, match="no unfinished task to resume"):
        run(Played(recorded("fix")), task="", resume=True)


@pytest.mark.parametrize("speed", ["0", "1"])
def test_a_reader_who_goes_away_ends_it_cleanly(speed: str) -> None:
    command = [sys.executable, "-c", PIPED, speed]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=ROOT) as child:
        assert child.stdout
        assert child.stderr
        first = child.stdout.readline()
        child.stdout.close()
        complaint = child.stderr.read().decode()
    assert b"session_opened" in first
    assert complaint == ""
    assert child.returncode in (0, 130) if speed == "0" else child.returncode == 130


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_work_and_the_end_is_told(number: signal.Signals) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", PIPED, "0.2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=ROOT) as child:
        assert child.stdout
        while b"turn_started" not in child.stdout.readline():
            pass
        child.send_signal(number)
        out, err = child.communicate()
    assert (child.returncode, err) == (130, b"")
    last = [msgspec.json.decode(line, type=StampedEvent).event for line in out.splitlines()[-2:]]
    assert isinstance(last[0], TaskStopped)
    assert last[0].reason == "person"
    assert isinstance(last[1], TaskSummarized)
