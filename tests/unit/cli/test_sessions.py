"""`callwright sessions`, over sessions that were recorded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from callwright import app, cli
from callwright.agent.session_api import SessionRow
from callwright.agent.session_events import StampedEvent
from tests.support.played import PlayedSessions, recorded


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> PlayedSessions:
    played = PlayedSessions(stored={name: recorded(name) for name in ("fix", "undo", "question")})

    @asynccontextmanager
    async def open_archive(config: object, *, environment: object) -> AsyncIterator[PlayedSessions]:
        yield played

    monkeypatch.setattr(app, "load_config", lambda path, *, environment: None)
    monkeypatch.setattr(app, "open_session_archive", open_archive)
    monkeypatch.setenv("COLUMNS", "120")
    return played


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.main(["sessions", *words])
    return code, *capsys.readouterr()


@pytest.mark.usefixtures("sessions")
@pytest.mark.parametrize("words", [[], ["list"], ["list", "-n", "5"]])
def test_the_list_has_a_line_for_each(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    code, out, _ = run(capsys, *words)
    assert code == 0
    header, *lines = out.splitlines()
    assert header.split() == ["id", "task", "when", "state", "lines", "workspace"]
    assert [line.split()[0] for line in lines] == ["fix", "undo", "question"]
    assert "+2 −1" in lines[0]


@pytest.mark.usefixtures("sessions")
def test_a_search_finds_by_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert "undo" in run(capsys, "search", "type", "hints")[1]
    assert run(capsys, "search", "no such thing")[1] == "No matching sessions.\n"


@pytest.mark.usefixtures("sessions")
@pytest.mark.parametrize("words", [["--json", "list", "-n", "2"], ["list", "--json", "-n", "2"]])
def test_rows_are_json_wherever_it_is_said(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    lines = run(capsys, *words)[1].splitlines()
    assert [msgspec.json.decode(line, type=SessionRow).id for line in lines] == ["fix", "undo"]


@pytest.mark.usefixtures("sessions")
def test_a_session_is_shown_as_it_was_or_event_by_event(capsys: pytest.CaptureFixture[str]) -> None:
    shown = run(capsys, "show", "fix")[1]
    assert "› Fix the failing test" in shown
    assert "/undo" not in shown
    lines = run(capsys, "show", "fix", "--json")[1].splitlines()
    assert [msgspec.json.decode(line, type=StampedEvent) for line in lines] == recorded("fix")


def test_a_session_is_forgotten(capsys: pytest.CaptureFixture[str], sessions: PlayedSessions) -> None:
    assert "Deleted session undo" in run(capsys, "delete", "undo")[1]
    assert sessions.deleted == ["undo"]


@pytest.mark.usefixtures("sessions")
@pytest.mark.parametrize("words", [["show", "nope"], ["delete", "nope"], ["list", "-n", "0"]])
def test_what_cannot_be_done_is_a_sentence_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith("callwright: ")


def test_without_sessions_it_says_so(capsys: pytest.CaptureFixture[str], sessions: PlayedSessions) -> None:
    sessions.stored.clear()
    assert run(capsys)[1] == "No sessions yet.\n"
