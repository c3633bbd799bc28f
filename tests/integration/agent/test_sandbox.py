"""What a command can reach in the sandbox, tried with real commands; and what is said where there is none."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from callwright.agent.shell.sandbox import NO_SANDBOX, ProtectedPaths, Sandbox, SandboxSettings, open_sandbox
from callwright.agent.shell.terminal import CommandResult, Terminal, TerminalSettings
from callwright.agent.workspace.workspace import Workspace
from callwright.errors import ConfigError
from tests.support.sandboxes import needed

PATH = "/usr/local/bin:/usr/bin:/bin"


class Session:
    """A person's home folder with secrets in it, and a project in that."""

    def __init__(self, folder: Path, settings: SandboxSettings, protected: ProtectedPaths) -> None:
        self.home = folder / "home"
        self.root = self.home / "project"
        (self.root / ".git" / "hooks").mkdir(parents=True)
        (self.root / ".git" / "config").write_text("[core]\n")
        (self.root / ".env").write_text("KEY=hunter2")
        (self.home / ".ssh").mkdir()
        (self.home / ".ssh" / "id_rsa").write_text("hunter2")
        for tool in (".cargo/bin/crab", ".nvm/versions/node/v1/bin/knot", "bin/mine"):
            (self.home / tool).parent.mkdir(parents=True)
            (self.home / tool).write_text("#!/bin/sh\necho runs\n")
            (self.home / tool).chmod(0o755)
        (self.home / ".cargo" / "credentials.toml").write_text("hunter2")
        (self.home / ".nvm" / "versions" / "node" / "v1" / "lib").mkdir()
        entries = [f"{self.home}/.cargo/bin", f"{self.home}/.nvm/versions/node/v1/bin", f"{self.home}/bin", PATH]
        self.environment = {"HOME": str(self.home), "PATH": ":".join(entries), "TMPDIR": "/elsewhere"}
        self.workspace = Workspace(self.root)
        self.sandbox: Sandbox = open_sandbox(
            self.workspace, settings, environment=self.environment, find_protected=lambda: protected
        )

    def ran(self, *commands: str, timeout_s: float = 20) -> list[CommandResult]:
        async def run() -> list[CommandResult]:
            settings = TerminalSettings(timeout_s=timeout_s)
            terminal = Terminal(self.workspace, settings, self.sandbox, environment=self.environment)
            try:
                return [await terminal.run(command, on_output=lambda text: None) for command in commands]
            finally:
                await terminal.close()

        return asyncio.run(run())

    def output(self, command: str) -> str:
        return self.ran(command)[0].output


@pytest.fixture
def session(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Session]:
    needed()
    settings = getattr(request, "param", SandboxSettings())
    protected = ProtectedPaths(
        hidden=(".env", "secrets", "missing", "out"), read_only=(".git/hooks", ".git/config", "link/../../x")
    )
    made = Session(tmp_path.resolve(), settings, protected)
    assert made.sandbox.is_enabled, made.sandbox.note
    yield made
    made.sandbox.close()
    assert made.sandbox.scratch_folder is not None
    assert not made.sandbox.scratch_folder.exists()


without_network = pytest.mark.parametrize("session", [SandboxSettings(network=False)], indirect=True)


def test_the_workspace_can_be_changed(session: Session) -> None:
    assert session.ran("mkdir a; cd a; echo x > y; pwd")[0].folder == "a"
    assert (session.root / "a" / "y").read_text() == "x\n"


def test_nothing_else_can_be_changed(session: Session, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("theirs")
    places = f"{tmp_path}/other {tmp_path}/new {session.home}/project2 /etc/callwright-test /usr/callwright-test"
    session.ran(f"for at in {places}; do echo ours > $at; done; rm -rf {tmp_path}/other; rm -rf ~/.ssh")
    assert (tmp_path / "other").read_text() == "theirs"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "other"]
    assert (session.home / ".ssh" / "id_rsa").exists()
    assert not Path("/etc/callwright-test").exists()


def test_the_home_folder_is_hidden_but_its_programs_run(session: Session) -> None:
    found = session.output("cat ~/.ssh/id_rsa ~/.cargo/credentials.toml; crab; knot; mine; ls -A1 ~")
    assert "hunter2" not in found
    assert found.count("runs") == 3
    assert found.split("\n")[-4:] == [".cargo", ".nvm", "bin", "project"]


def test_programs_of_the_home_folder_cannot_be_changed(session: Session) -> None:
    session.ran("echo evil > ~/.cargo/bin/crab; echo evil > ~/bin/new; rm ~/bin/mine")
    assert "evil" not in (session.home / ".cargo" / "bin" / "crab").read_text()
    assert [path.name for path in (session.home / "bin").iterdir()] == ["mine"]


def test_home_and_tmp_are_kept_for_the_session_and_not_longer(session: Session) -> None:
    done = session.ran("echo cached > ~/.cache-file; echo t > $TMPDIR/t", "cat ~/.cache-file /tmp/t")
    assert done[1].output == "cached\nt"
    assert not (session.home / ".cache-file").exists()
    assert not Path("/tmp/t").exists()


def test_protected_files_are_empty_or_cannot_be_changed(session: Session) -> None:
    (session.root / "secrets").mkdir()
    (session.root / "secrets" / "key.pem").write_text("hunter2")
    (session.root / "out").symlink_to("/etc/hostname")
    commands = """cat .env secrets/*; ls secrets; grep -r hunter2 . ; cat .git/config
    echo x > .env; echo x >> .git/config; echo x > .git/hooks/pre-commit; mv .git/hooks h; rm -f .env; chmod 777 .env"""
    found = session.output(commands)
    assert "hunter2" not in found
    assert "[core]" in found
    assert (session.root / ".env").read_text() == "KEY=hunter2"
    assert (session.root / ".git" / "config").read_text() == "[core]\n"
    assert list((session.root / ".git" / "hooks").iterdir()) == []


def test_a_protected_file_that_appears_later_is_protected_from_then_on(session: Session) -> None:
    (session.root / ".env").unlink()
    assert "hunter2" not in session.output("cat .env")
    (session.root / ".env").write_text("hunter2")
    assert "hunter2" not in session.output("cat .env")


def test_there_is_no_way_to_more_rights(session: Session) -> None:
    found = session.output("grep -E 'CapEff|NoNewPrivs' /proc/self/status; mount --bind / /mnt; umount .env; cat .env")
    assert "CapEff:\t0000000000000000" in found
    assert "NoNewPrivs:\t1" in found
    assert "hunter2" not in found


def test_other_processes_cannot_be_seen(session: Session) -> None:
    found = session.output(f"cat /proc/*/environ | tr '\\0' '\\n' | grep -c PYTEST_CURRENT_TEST; kill -0 {os.getpid()}")
    assert found.split("\n")[0] == "0"
    assert "No such process" in found


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        answering = threading.Thread(target=lambda: server.accept()[0].close(), daemon=True)
        answering.start()
        port = int(server.getsockname()[1])
        yield port
        with socket.create_connection(("127.0.0.1", port)):
            pass


def test_the_network_is_reached_by_default(session: Session, listener: int) -> None:
    assert session.ran(f"echo > /dev/tcp/127.0.0.1/{listener}")[0].exit_code == 0


@without_network
def test_the_network_is_not_reached_when_the_settings_say_so(session: Session, listener: int) -> None:
    assert session.ran(f"echo > /dev/tcp/127.0.0.1/{listener}")[0].exit_code != 0
    assert "no network" in session.sandbox.note


def test_sockets_of_services_are_hidden(session: Session) -> None:
    names = {path.name for path in Path("/run").iterdir()} - {"systemd", "resolvconf", "NetworkManager"}
    assert not names & set(session.output("ls -A /run").split())


def command_lines() -> Iterator[bytes]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield path.read_bytes()


def test_out_of_time_ends_everything_even_what_hides(session: Session) -> None:
    hiding = ["trap '' TERM; sleep {0}", "setsid env -i sleep {0} & sleep {0}", "(sleep {0} &); sleep {0}"]
    marks = [f"333.{secrets.randbits(32)}" for _ in hiding]  # other tests may sleep at the same time
    commands = [command.format(mark) for command, mark in zip(hiding, marks, strict=True)]
    with ThreadPoolExecutor(len(commands)) as threads:  # each with a terminal of its own
        results = list(threads.map(lambda command: session.ran(command, timeout_s=1)[0], commands))
    for done, mark, command in zip(results, marks, commands, strict=True):
        assert done.timed_out, command
        assert not any(mark.encode() in words for words in command_lines()), command


def test_an_interpreter_that_a_virtual_environment_leads_to_is_seen_and_nothing_else(tmp_path: Path) -> None:
    needed()
    made = Session(tmp_path.resolve(), SandboxSettings(), ProtectedPaths())
    real = made.home / "pythons" / "3.99" / "bin" / "python"
    real.parent.mkdir(parents=True)
    real.write_text("#!/bin/sh\necho snake\n")
    real.chmod(0o755)
    (made.home / ".ssh" / "keys").mkdir()
    (made.home / ".ssh" / "keys" / "python").touch()
    for name, leads_to in {".venv": real, "venv": made.home / ".ssh" / "keys" / "python"}.items():
        (made.root / name / "bin").mkdir(parents=True)
        (made.root / name / "bin" / "python").symlink_to(leads_to)
    made.sandbox.close()
    made.sandbox = open_sandbox(made.workspace, SandboxSettings(), environment=made.environment)
    try:
        assert made.output(".venv/bin/python; ls -A1 ~/.ssh 2>/dev/null") == "snake"
    finally:
        made.sandbox.close()


# --- where there is none


def broken(folder: Path) -> dict[str, str]:
    """An environment whose bubblewrap cannot do its work, as in many containers."""
    fake = folder / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    return {"PATH": f"{folder}:{PATH}", "HOME": str(folder)}


def test_a_sandbox_that_does_not_work_is_said_once_and_not_used(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    before = set(Path("/tmp").glob("callwright-sandbox-*"))
    sandbox = open_sandbox(Workspace(tmp_path / "project"), SandboxSettings(), environment=broken(tmp_path))
    assert not sandbox.is_enabled
    assert "bubblewrap does not work here (bwrap: No permissions to create a new namespace)" in sandbox.note
    assert sandbox.wrap_command(["true"], tmp_path) == ["true"]
    assert set(Path("/tmp").glob("callwright-sandbox-*")) == before


def test_a_sandbox_that_is_not_installed_or_not_wanted_is_said(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    missing = open_sandbox(workspace, SandboxSettings(), environment={"PATH": str(tmp_path)})
    unwanted = open_sandbox(workspace, SandboxSettings(mode="never"), environment={"PATH": PATH})
    assert "bubblewrap is not installed" in missing.note
    assert "disabled in the settings" in unwanted.note
    assert all(sandbox.note.startswith(NO_SANDBOX.note) for sandbox in (missing, unwanted))


def test_a_sandbox_that_must_be_there_and_is_not_is_a_mistake_of_the_settings(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="bubblewrap does not work here"):
        open_sandbox(Workspace(tmp_path), SandboxSettings(mode="always"), environment=broken(tmp_path))


def test_a_home_folder_that_is_the_workspace_is_not_hidden_and_that_is_said(tmp_path: Path) -> None:
    needed()
    environment = {"PATH": PATH, "HOME": str(tmp_path)}
    sandbox = open_sandbox(Workspace(tmp_path), SandboxSettings(), environment=environment)
    try:
        assert "can read your home folder" in sandbox.note
    finally:
        sandbox.close()
