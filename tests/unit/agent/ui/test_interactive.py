"""Talking in a terminal: keys in, a session told what they mean. The keys go through prompt_toolkit's own input."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session, get_app_session
from prompt_toolkit.document import Document
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console

from callwright.agent.session_events import FilesChanged
from callwright.agent.ui.console import run_terminal_ui
from callwright.agent.ui.console.session_transcript import SessionTranscript
from callwright.agent.ui.console.slash_commands import SLASH_COMMANDS, CompleteEvent, SlashCompleter
from callwright.errors import MisuseError
from tests.support.played import Played, PlayedSessions, recorded, review_of, stamped, stat

HUNKS = ("@@ -1 +1 @@\n-a\n+b", "@@ -9 +9 @@\n-c\n+d")
CTRL_C, CTRL_D, CTRL_T, ALT_ENTER = "\x03", "\x04", "\x14", "\x1b\r"


class Person:
    """Somebody at a terminal, who types when the screen says something."""

    def __init__(self, keys: PipeInput, screen: io.StringIO, session: Played) -> None:
        self._keys = keys
        self._screen = screen
        self._prompted: object = None
        self.session = session

    @property
    def screen(self) -> str:
        return self._screen.getvalue()

    def press(self, keys: str) -> None:
        """While the agent works."""
        self._keys.send_text(keys)

    async def type(self, *lines: str) -> None:
        """Each at a prompt of its own, once that listens."""
        for keys in lines:
            await self.wait(self._has_new_prompt)
            self._prompted = get_app_session().app.future  # type: ignore[union-attr]
            self._keys.send_text(keys)

    def _has_new_prompt(self) -> bool:
        app = get_app_session().app
        return app is not None and app.is_running and app.future is not self._prompted

    async def wait(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.01)

    async def sees(self, words: str) -> None:
        await self.wait(lambda: words in self.screen)


def at_terminal(
    session: Played,
    act: Callable[[Person], Coroutine[None, None, None]],
    *,
    task: str = "",
    once: bool = False,
    sessions: PlayedSessions | None = None,
    resume: str = "",
    history: Path | None = None,
) -> tuple[int, str]:
    screen = io.StringIO()
    console = Console(file=screen, width=100, height=40, force_terminal=True, color_system=None, highlight=False)

    async def go() -> int:
        with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
            talking = asyncio.ensure_future(
                run_terminal_ui(
                    sessions or PlayedSessions(session),
                    task=task,
                    resume=resume,
                    once=once,
                    console=console,
                    interactive=True,
                    history=history,
                )
            )
            acting = asyncio.ensure_future(act(Person(keys, screen, session)))
            done, _ = await asyncio.wait({talking, acting}, timeout=30, return_when=asyncio.FIRST_EXCEPTION)
            assert talking in done, screen.getvalue()[-2000:]
            await acting
            return talking.result()

    return asyncio.run(go()), screen.getvalue()


def changed() -> Played:
    """A session whose task is over and left two files changed."""
    session = Played(recorded("undo"))
    session.reviews = (review_of("util.py", *HUNKS), review_of("with space 2.py", HUNKS[0]))
    return session


def test_a_task_is_done_and_the_prompt_comes_again() -> None:
    async def act(person: Person) -> None:
        await person.type("Fix the failing test\r")
        await person.sees("/diff shows the changes")
        await person.type(CTRL_D)

    session = Played(recorded("fix"))
    code, screen = at_terminal(session, act)
    assert code == 0
    assert session.tasks == ["Fix the failing test"]
    assert session.closed
    assert "callwright agent --resume fix" in screen


def test_with_once_it_ends_with_the_task_and_its_exit_code() -> None:
    async def act(person: Person) -> None:
        await person.sees("always needs approval")
        await person.type("n")
        await person.type("only inside the workspace\r")

    session = Played(recorded("denied"))
    code, _ = at_terminal(session, act, task="Make room", once=True)
    assert code == 3
    assert [(reply.verdict, reply.words) for _, reply in session.replies] == [("deny", "only inside the workspace")]


def test_several_lines_are_one_task() -> None:
    async def act(person: Person) -> None:
        await person.type(f"first{ALT_ENTER}second\r")
        await person.sees("✓ Done")
        await person.type(CTRL_D)

    session = Played(recorded("question"))
    at_terminal(session, act)
    assert session.tasks == ["first\nsecond"]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["y"], ("once", "", "")),
        (["Y"], ("once", "", "")),
        (["x\ry"], ("once", "", "")),
        (["s"], ("stop", "", "")),
        ([CTRL_C], ("stop", "", "")),
        (["n", "\r"], ("deny", "", "")),
        (["n", CTRL_C, "y"], ("once", "", "")),
        (["e", "\x15git push\r"], ("once", "git push", "")),
        (["e", "\r"], ("once", "", "")),
        (["e", CTRL_C, "n", "no\r"], ("deny", "", "no")),
        (["ay"], ("once", "", "")),
    ],
)
def test_what_a_key_answers(keys: list[str], expected: tuple[str, str, str]) -> None:
    async def act(person: Person) -> None:
        await person.sees("edits of .env")
        await person.type("y")
        await person.sees("git-push-force")
        await person.type(*keys)

    session = Played(recorded("approval"))
    at_terminal(session, act, task="Publish", once=True)
    reply = session.replies[1][1]
    assert (reply.verdict, reply.command, reply.words) == expected


def test_always_is_an_answer_where_it_is_offered() -> None:
    async def act(person: Person) -> None:
        await person.sees("edits of .env")
        await person.type("a")
        await person.sees("git-push-force")
        await person.type("y")

    session = Played(recorded("approval"))
    at_terminal(session, act, task="Publish", once=True)
    assert session.replies[0][1].verdict == "always"


def test_a_key_pressed_before_the_question_is_no_answer() -> None:
    async def act(person: Person) -> None:
        await person.sees("edits of .env")
        await person.type("yyyyyy")
        await person.sees("git-push-force")
        assert len(person.session.replies) == 1
        await person.type("n")
        await person.type("\r")

    session = Played(recorded("approval"))
    at_terminal(session, act, task="Publish", once=True)
    assert [reply.verdict for _, reply in session.replies] == ["once", "deny"]


def test_ctrl_c_stops_the_task_and_the_prompt_comes_again() -> None:
    async def act(person: Person) -> None:
        await person.type("Fix it\r")
        await person.sees("Thinking")
        person.press(CTRL_C)
        await person.sees("Stopped: you stopped it")
        await person.type("/quit\r")

    session = Played(recorded("fix"), speed=1)
    assert at_terminal(session, act)[0] == 0


def test_ctrl_c_twice_leaves() -> None:
    class Stubborn(Played):
        def stop(self) -> None:
            pass

    async def act(person: Person) -> None:
        await person.type("Fix it\r")
        await person.sees("Thinking")
        person.press(CTRL_C)
        await person.sees("Ctrl-C again quits")
        person.press(CTRL_C)

    assert at_terminal(Stubborn(recorded("fix"), speed=1), act)[0] == 130


def test_ctrl_c_twice_at_the_prompt_leaves() -> None:
    async def act(person: Person) -> None:
        await person.type(CTRL_C)
        await person.sees("Press Ctrl-C again to quit")
        await person.type(CTRL_C)

    assert at_terminal(Played(recorded("fix")), act)[0] == 0


def test_ctrl_t_shows_what_the_model_thinks() -> None:
    async def act(person: Person) -> None:
        await person.sees("Thinking")
        person.press(CTRL_T)
        await person.sees("Thought for")

    _, screen = at_terminal(Played(recorded("fix"), speed=5), act, once=True, task="Fix it")
    assert "Then I can look at the code that is under" in screen


@pytest.mark.parametrize(
    ("lines", "undone"),
    [
        (["/undo util.py"], [("util.py", "", False)]),
        (["/undo util.py 2"], [("util.py", "h1", False)]),
        (["/undo with space 2.py"], [("with space 2.py", "", False)]),
        (["/undo with space 2.py 1"], [("with space 2.py", "h0", False)]),
        (["/undo util.py 3"], []),
        (["/undo other.py"], []),
        (["/undo", "y"], [("", "", False)]),
        (["/undo", "n"], []),
    ],
)
def test_what_undo_takes_back(lines: list[str], undone: list[tuple[str, str, bool]]) -> None:
    async def act(person: Person) -> None:
        await person.sees("/diff shows the changes")
        await person.type(f"{lines[0]}\r", *lines[1:], CTRL_D)

    session = changed()
    at_terminal(session, act, task="Add hints")
    assert session.undone == undone


@pytest.mark.parametrize(("key", "forced"), [("y", [False, True]), ("n", [False])])
def test_what_the_person_changed_is_only_taken_back_when_he_says_so(key: str, forced: list[bool]) -> None:
    async def act(person: Person) -> None:
        await person.sees("/diff shows the changes")
        await person.type("/undo util.py\r")
        await person.sees("changed by you")
        await person.type(key)
        await person.type(CTRL_D)

    session = changed()
    session.conflicts = ("util.py was changed by you since",)
    at_terminal(session, act, task="Add hints")
    assert [force for _, _, force in session.undone] == forced


def test_slash_commands_answer() -> None:
    async def act(person: Person) -> None:
        await person.sees("/diff shows the changes")
        for line in (
            "/help",
            "/diff",
            "/diff util.py",
            "/files",
            "/output",
            "/thinking",
            "/sessions",
            "/stop",
            "/nope",
        ):
            await person.type(f"{line}\r")
            await person.sees(f"› {line}")
        await person.type("/keep util.py\r")
        await person.sees("Kept: util.py")
        await person.type("/quit\r")

    session = changed()
    sessions = PlayedSessions(session, stored={"older": recorded("question")})
    code, screen = at_terminal(session, act, task="Add hints", sessions=sessions)
    assert code == 0
    assert session.kept == [("util.py", "")]
    for words in (
        "undo all changes",
        "change 2",
        "No command output yet",
        "How does the retry",
        "no task is running",
        "unknown command /nope",
    ):
        assert words in screen


def test_a_session_that_was_left_goes_on() -> None:
    async def act(person: Person) -> None:
        await person.sees("which is the limit")
        await person.type(CTRL_D)

    sessions = PlayedSessions(stored={"interrupted": recorded("interrupted")})
    code, screen = at_terminal(Played([]), act, sessions=sessions, resume="interrupted")
    assert code == 0
    assert screen.index("Rename Foo to Bar") < screen.index("Reopened with") < screen.index("There is one place")


def test_what_was_typed_is_remembered(tmp_path: Path) -> None:
    async def act(person: Person) -> None:
        await person.type("Fix the failing test\r")
        await person.sees("✓ Done")
        await person.type(CTRL_D)

    at_terminal(Played(recorded("fix")), act, history=tmp_path / "typed")
    assert "Fix the failing test" in (tmp_path / "typed").read_text()


def test_without_a_terminal_it_is_done_once_and_nobody_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    session = Played(recorded("approval"))
    asyncio.run(run_terminal_ui(PlayedSessions(session), task="Publish", interactive=False))
    assert all(reply.is_unattended for _, reply in session.replies)
    assert capsys.readouterr().out == "The port is 8787 and the branch is published, without force.\n"
    with pytest.raises(MisuseError, match="pass a task"):
        asyncio.run(run_terminal_ui(PlayedSessions(session), interactive=False))


def test_commands_and_files_are_completed() -> None:
    transcript = SessionTranscript()
    transcript.feed(stamped(FilesChanged(files=(stat("src/app.py", 1, 0), stat("tests/a.py", 2, 2))))[0])
    completer = SlashCompleter(transcript)

    def offered(text: str) -> list[str]:
        return [each.text for each in completer.get_completions(Document(text), CompleteEvent())]

    assert offered("/") == [f"/{name}" for name in SLASH_COMMANDS]
    assert offered("/un") == ["/undo"]
    assert offered("/undo s") == ["src/app.py"]
    assert offered("/files s") == offered("what is /un") == offered("") == []
