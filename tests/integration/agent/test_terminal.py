"""Real commands in a real terminal: where they run, how they end, and what is seen of them."""

from __future__ import annotations

import asyncio
import os
import signal
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from callwright.agent.shell.sandbox import NO_SANDBOX
from callwright.agent.shell.terminal import CommandResult, Terminal, TerminalSettings
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import ConfigError, ToolError
from tests.support.escapes import SECRET, Escape, escapes, ground

Answer = TypeVar("Answer")
REFUSED = [escape for escape in escapes() if not escape.stays_inside]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "project"
    (folder / "src" / "deep").mkdir(parents=True)
    return folder


def within(
    root: Path, use: Callable[[Terminal], Awaitable[Answer]], settings: TerminalSettings | None = None
) -> Answer:
    """Use a terminal in a loop of its own, and see that it leaves nothing open."""

    async def session() -> Answer:
        terminal = Terminal(Workspace(root), settings or TerminalSettings(), NO_SANDBOX, environment=os.environ)
        try:
            return await use(terminal)
        finally:
            await terminal.close()

    before = len(list(Path("/dev/fd").iterdir()))
    answer = asyncio.run(session())
    assert len(list(Path("/dev/fd").iterdir())) <= before  # files of an earlier test may be closed meanwhile
    return answer


def ran(root: Path, *commands: str, settings: TerminalSettings | None = None) -> list[CommandResult]:
    async def one_after_the_other(terminal: Terminal) -> list[CommandResult]:
        return [await terminal.run(command, on_output=lambda text: None) for command in commands]

    return within(root, one_after_the_other, settings)


def output(root: Path, command: str, settings: TerminalSettings | None = None) -> str:
    return ran(root, command, settings=settings)[0].output


def is_running(pid: int) -> bool:
    with suppress(FileNotFoundError):
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    return False


def gone(pid: int) -> bool:
    """Whether a process ends, long before it would by itself."""
    deadline = time.monotonic() + 50
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_running(pid)


# --- what comes back


def test_output_and_exit_code(root: Path) -> None:
    done = ran(root, "echo one; echo two >&2; exit 3")[0]
    assert (done.output, done.exit_code, done.timed_out, done.stopped, done.note) == ("one\ntwo", 3, False, False, "")


def test_a_signal_is_an_exit_code_as_a_shell_says_it(root: Path) -> None:
    assert [done.exit_code for done in ran(root, "kill -KILL $$", "sh -c 'kill -TERM $$'")] == [137, 143]


def test_a_command_that_does_not_exist_says_so(root: Path) -> None:
    done = ran(root, "no-such-program --help")[0]
    assert done.exit_code == 127
    assert "command not found" in done.output


@pytest.mark.parametrize("command", ["echo 'unclosed", "if true", ")", "\\", "", "   ", "# nothing", "\n\n"])
def test_a_command_that_is_no_sentence_of_the_shell_ends(root: Path, command: str) -> None:
    assert ran(root, command, "echo next")[1].output == "next"


def test_the_command_is_one_argument_and_nothing_is_added_to_it(root: Path) -> None:
    command = """printf '[%s]' "$#" "$*" "$0"; echo '"' "'" \\$HOME `echo sub`; cat <<'END'\n$1 `x`\nEND"""
    assert output(root, command) == "[0][][bash]\" ' $HOME sub\n$1 `x`"


def test_a_nul_is_refused(root: Path) -> None:
    with pytest.raises(ToolError, match="NUL"):
        ran(root, "echo a\0b")


def test_a_long_output_keeps_fifteen_lines_and_eighty_five(root: Path) -> None:
    done = ran(root, "seq 1000")[0]
    lines = done.output.split("\n")
    assert done.omitted_lines == 900
    assert (lines[0], lines[14], lines[15], lines[16], lines[-1]) == (
        "1",
        "15",
        "[… 900 lines omitted …]",
        "916",
        "1000",
    )
    assert len(lines) == 101


def test_progress_colours_and_binary_data_are_read_as_a_terminal_would(root: Path) -> None:
    command = r"""for i in 1 50 100; do printf '\r%d%%' $i; done; echo; printf '\033[31mred\033[0m\n'
    head -c 50000 /bin/bash; echo; echo a; echo b; echo c"""
    first, second, *rest = output(root, command).split("\n")
    assert (first, second) == ("100%", "red")
    assert "KiB of binary output omitted]" in rest[0]
    assert rest[-3:] == ["a", "b", "c"]


def test_programs_believe_that_they_write_to_a_terminal_of_the_given_width(root: Path) -> None:
    settings = TerminalSettings(columns=97)
    program = "import os, sys; print(sys.stdout.isatty(), sys.stdin.isatty(), os.get_terminal_size(1).columns)"
    assert output(root, f'python3 -c "{program}"', settings) == "True False 97"


def test_what_is_printed_is_told_while_the_command_runs(root: Path) -> None:
    async def watch(terminal: Terminal) -> None:
        heard = asyncio.Event()
        running = asyncio.create_task(terminal.run("echo early; sleep 300", on_output=lambda text: heard.set()))
        await asyncio.wait_for(heard.wait(), 60)
        terminal.stop()
        assert (await running).output == "early"

    within(root, watch)


def test_memory_stays_bounded_whatever_is_printed(root: Path) -> None:
    settings = TerminalSettings(timeout_s=2)
    told: list[int] = []

    async def flood(terminal: Terminal) -> CommandResult:
        await terminal.run("true", on_output=lambda text: None)
        tracemalloc.start()
        return await terminal.run("yes | tr -d '\\n' & yes", on_output=lambda text: told.append(len(text)))

    done = within(root, flood, settings)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert done.timed_out
    assert done.omitted_lines > 1_000
    assert peak < 3_000_000
    assert len(told) < 30 * done.seconds
    assert len(done.output) < 300_000


# --- folders


def test_the_folder_is_kept_and_the_variables_are_not(root: Path) -> None:
    first, second = ran(root, "cd src/deep; export X=1", "pwd; echo [$X]")
    assert first.folder == second.folder == "src/deep"
    assert second.output == f"{root}/src/deep\n[]"


def test_a_command_that_ends_outside_is_set_back_and_told(root: Path) -> None:
    _, out, after = ran(root, "cd src", "cd /; pwd", "pwd")
    assert out.output == "/"
    assert out.folder == "src"
    assert "ended outside the workspace: the terminal is back in 'src'" in out.note
    assert after.output == f"{root}/src"


def test_a_folder_that_is_gone_is_left(root: Path) -> None:
    first, second = ran(root, "mkdir x; cd x; rmdir ../x", "pwd")
    assert first.folder == "."
    assert second.output == str(root)


def test_a_folder_that_vanished_between_two_commands_is_left(root: Path) -> None:
    async def vanish(terminal: Terminal) -> CommandResult:
        await terminal.run("cd src/deep", on_output=lambda text: None)
        (root / "src" / "deep").rmdir()
        return await terminal.run("pwd", on_output=lambda text: None)

    assert within(root, vanish).output == str(root)


def test_a_linked_folder_is_called_by_its_real_name(root: Path) -> None:
    (root / "link").symlink_to("src/deep")
    assert ran(root, "cd link")[0].folder == "src/deep"


def test_an_exit_a_trap_and_a_replaced_shell_leave_the_folder_known(root: Path) -> None:
    folders = [done.folder for done in ran(root, "cd src; exit 1", "cd deep; exec true", "trap true EXIT; cd deep")]
    assert folders == ["src", "src", "src"]


@pytest.mark.parametrize("escape", REFUSED, ids=lambda escape: escape.id)
def test_a_folder_outside_is_refused(tmp_path: Path, escape: Escape) -> None:
    there = ground(tmp_path, escape)

    async def start(terminal: Terminal) -> None:
        with pytest.raises(ToolError) as refused:
            await terminal.run("ls; touch made", folder=there.path, on_output=lambda text: None)
        assert SECRET not in str(refused.value)

    within(there.workspace.root, start)
    assert there.is_untouched()


def test_a_folder_can_be_asked_for_and_must_be_one(root: Path) -> None:
    (root / "file").touch()

    async def ask(terminal: Terminal) -> str:
        for wrong in ("file", "missing"):
            with pytest.raises(ToolError, match="no folder"):
                await terminal.run("pwd", folder=wrong, on_output=lambda text: None)
        return (await terminal.run("pwd", folder="src", on_output=lambda text: None)).output

    assert within(root, ask) == f"{root}/src"


# --- ends


STARTING = [
    "sleep 100 & echo $!; sleep 100",
    "trap '' TERM HUP INT; sh -c 'trap \"\" TERM; echo $$; sleep 100'",
    "setsid sh -c 'echo $$; sleep 100' & sleep 100",
    "nohup sh -c 'echo $$; exec sleep 100' 2>&1 | cat",
    "(sh -c 'echo $$; exec sleep 100' &) ; sleep 100",
]


def test_out_of_time_ends_everything_that_the_command_started(root: Path) -> None:
    settings = TerminalSettings(timeout_s=1)

    async def run_each(command: str) -> CommandResult:
        terminal = Terminal(Workspace(root), settings, NO_SANDBOX, environment=os.environ)
        try:
            return await terminal.run(command, on_output=lambda text: None)
        finally:
            await terminal.close()

    results = within(root, lambda _: asyncio.gather(*map(run_each, STARTING)))
    for command, done in zip(STARTING, results, strict=True):
        assert (done.exit_code, done.timed_out) == (None, True), command
        assert "stopped after 1 seconds" in done.note, command
        assert done.seconds < 60, "far from a hundred"
        assert gone(int(done.output.split()[0])), command


@pytest.mark.parametrize("command", ["sleep 100 & echo $!", "setsid sh -c 'echo $$; exec sleep 100' & sleep 0.2"])
def test_what_a_command_leaves_in_the_background_ends_with_it(root: Path, command: str) -> None:
    done = ran(root, command)[0]
    assert done.exit_code == 0
    assert done.seconds < 60, "far from a hundred"
    assert gone(int(done.output.split()[0]))


def test_a_call_can_ask_for_its_own_time_within_limits(root: Path) -> None:
    async def ask(terminal: Terminal) -> list[bool]:
        short = await terminal.run("sleep 30", timeout_s=0.2, on_output=lambda text: None)
        long = await terminal.run("sleep 30", timeout_s=9999, on_output=lambda text: None)
        return [short.timed_out, long.timed_out]

    assert within(root, ask, TerminalSettings(max_timeout_s=0.5)) == [True, True]


@pytest.mark.parametrize("times", [1, 2])
def test_a_cancelled_task_ends_its_command_at_once(root: Path, times: int) -> None:
    async def cancel(terminal: Terminal) -> int:
        heard: list[str] = []
        running = asyncio.create_task(terminal.run("echo $$; sleep 100", on_output=heard.append))
        while not heard:
            await asyncio.sleep(0.01)
        for _ in range(times):
            running.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await terminal.run("echo next", on_output=lambda text: None)).output == "next"
        return int(heard[0])

    assert gone(within(root, cancel))


def test_a_stopped_command_gives_what_it_printed(root: Path) -> None:
    async def stop(terminal: Terminal) -> CommandResult:
        heard = asyncio.Event()
        running = asyncio.create_task(terminal.run("cd src; echo half; sleep 100", on_output=lambda text: heard.set()))
        await heard.wait()
        terminal.stop()
        return await running

    done = within(root, stop)
    assert (done.stopped, done.timed_out, done.exit_code, done.output) == (True, False, None, "half")


def test_commands_run_one_after_the_other(root: Path) -> None:
    async def both(terminal: Terminal) -> list[CommandResult]:
        commands = [f"echo {name} >> log; sleep 0.1; echo {name} >> log" for name in "abc"]
        return list(await asyncio.gather(*(terminal.run(command, on_output=lambda text: None) for command in commands)))

    within(root, both)
    assert (root / "log").read_text().split() == ["a", "a", "b", "b", "c", "c"]


# --- nobody is there


@pytest.mark.parametrize(
    "command",
    ["cat", "read x", "python3 -c 'input()'", "cat /dev/tty", "read x < /dev/tty", "git commit --allow-empty"],
)
def test_a_command_that_asks_gets_no_answer_and_ends(root: Path, command: str) -> None:
    done = ran(root, f"git init -q 2>/dev/null; {command}", settings=TerminalSettings(timeout_s=10))[0]
    assert not done.timed_out


def test_a_mode_that_one_command_sets_does_not_reach_the_next(root: Path) -> None:
    first, second = ran(root, "stty -F /dev/stdout -opost 2>/dev/null; stty raw <&1; echo x", "printf 'a\\nb'")
    assert (first.output.split("\n")[-1], second.output) == ("x", "a\nb")


def test_credentials_of_the_agent_do_not_reach_commands(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2")
    monkeypatch.setenv("BASH_ENV", "/dev/null")
    assert "hunter2" not in output(root, "env; set")


def test_a_shell_that_is_not_there_is_said_at_the_start(root: Path) -> None:
    with pytest.raises(ConfigError, match="no-such-shell"):
        Terminal(Workspace(root), TerminalSettings(shell="no-such-shell"), NO_SANDBOX, environment=os.environ)


def test_a_command_that_kills_its_whole_group_is_reported(root: Path) -> None:
    first, second = ran(root, "kill -KILL 0", "echo alive")
    assert first.exit_code == 128 + signal.SIGKILL
    assert second.output == "alive"
