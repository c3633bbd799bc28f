"""Protected files against commands: whatever a command does, in the sandbox it neither reads nor changes them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callwright.agent.policy import Policy, load_policy
from callwright.agent.shell.protection import make_protection_scanner
from callwright.agent.shell.sandbox import Sandbox, SandboxSettings, open_sandbox
from callwright.agent.shell.terminal import CommandResult, Terminal, TerminalSettings
from callwright.agent.workspace.workspace import Workspace
from tests.support.sandboxes import needed

SECRET = "hunter2"
FILES = {
    ".env": f"KEY={SECRET}\n",
    "deep/er/.env.production": f"KEY={SECRET}\n",
    "certs/server.pem": f"{SECRET}\n",
    ".npmrc": f"//registry/:_authToken={SECRET}\n",
    ".github/workflows/ci.yml": "on: push\n",
    ".env.example": "KEY=\n",
    "app.py": "print('app')\n",
}


class Project:
    """A repository with secrets in it, and the one terminal of a session there."""

    def __init__(self, folder: Path, settings: SandboxSettings | None = None) -> None:
        self.root = folder / "project"
        for name, text in FILES.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        self.git("init", "-q", "-b", "main")
        self.workspace = Workspace(self.root)
        home = folder / "home"
        home.mkdir()
        environment = {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin"}
        policy = load_policy(None, None, workspace=self.root)
        self.sandbox: Sandbox = open_sandbox(
            self.workspace,
            settings or SandboxSettings(mode="always"),
            environment=environment,
            find_protected=make_protection_scanner(self.workspace, policy),
        )
        self._environment = environment

    def git(self, *words: str) -> None:
        subprocess.run(["git", *words], cwd=self.root, check=True, capture_output=True)

    def ran(self, *commands: str) -> list[CommandResult]:
        """Commands of one session, one right after the other."""

        async def run() -> list[CommandResult]:
            terminal = Terminal(self.workspace, TerminalSettings(), self.sandbox, environment=self._environment)
            try:
                return [await terminal.run(command, on_output=lambda text: None) for command in commands]
            finally:
                await terminal.close()

        return asyncio.run(run())

    def state(self) -> dict[str, str]:
        """The protected files as they are, and what makes git run programs."""
        paths = [*FILES, ".git/config", *(str(p.relative_to(self.root)) for p in self.root.glob(".git/hooks/*"))]
        return {path: (self.root / path).read_text() for path in paths if (self.root / path).exists()}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    needed()
    made = Project(tmp_path.resolve())
    yield made
    made.sandbox.close()


READING = {
    "cat": "cat .env deep/er/.env.production certs/server.pem .npmrc",
    "a glob": "cat .e* .n* certs/* deep/er/.e* 2>&1",
    "everything": "grep -ra hunter . 2>/dev/null; find . -type f -exec cat {} +",
    "python": "python3 -c \"import pathlib; print([p.read_text() for p in pathlib.Path().rglob('*') if p.is_file()])\"",
    "a script": "printf 'cat .env\\ncp .env copy; cat copy' > run.sh; sh run.sh",
    "a link": "ln -s .env link; cat link; cat $PWD/link; cat /proc/self/cwd/.env",
    "a hard link": "ln .env other; cat other; ln -L certs/server.pem other2; cat other2",
    "a copy of the folder": "cp -r . /tmp/copy; cat /tmp/copy/.env /tmp/copy/certs/*; tar c . | tar xO",
    "a rename": "mv .env plain; cat plain; mv certs keys; cat keys/server.pem",
    "another root": "cat /proc/1/root$PWD/.env; cat /proc/self/root$PWD/.env",
    "without the mask": "umount .env; umount -l $PWD/.env; unshare -rm cat .env; unshare -rm umount .env; cat .env",
    "git": "git add -A . ; git show :.env; git diff --cached; git hash-object -w .env | xargs git cat-file -p",
}


@pytest.mark.parametrize("how", READING)
def test_a_protected_file_is_not_read(project: Project, how: str) -> None:
    before = project.state()
    ran = project.ran(READING[how], READING["everything"])
    assert all(SECRET not in each.output for each in ran), [each.output for each in ran]
    after = project.state()
    assert {path: after.get(path, "moved") for path in before} == {
        path: text if path in after else "moved" for path, text in before.items()
    }


WRITING = {
    "a redirection": "echo x >> .env; echo x > .npmrc",
    "python": "python3 -c \"open('.env', 'a').write('x')\"; python3 -c \"open('.git/config', 'a').write('x')\"",
    "a script": "printf 'echo x >> .env; echo x > .git/hooks/pre-commit' > run.sh; sh run.sh",
    "a link": "ln -s .env link; echo x >> link; ln -s .git/config c; echo x >> c",
    "a hard link": "ln .git/config c; echo x >> c",
    "a rename onto it": "echo x > new; mv -f new .env; echo x > new; mv -f new .git/config; cp -f app.py .env",
    "deletion": "rm -f .env .npmrc .git/config; rm -rf .git/hooks .github certs",
    "git's settings": "git config core.hooksPath evil; git config alias.st '!sh'",
    "hooks": "echo x > .git/hooks/pre-commit; cp app.py .git/hooks/post-checkout; mkdir .git/hooks/x",
    "another folder for git": "mv .git was; cp -r was .git; echo x >> .git/config; echo x > .git/hooks/pre-commit",
    "no folder for git": "rm -rf .git; git init -q; git config core.hooksPath evil",
    "rights": "chmod 777 .env .git/config; echo x >> .env; chmod 777 .git/hooks; echo x > .git/hooks/x",
    "sed and tee": "sed -i s/K/L/ .env; echo x | tee -a .env .git/config .github/workflows/ci.yml",
    "truncation": "truncate -s 0 .env; dd if=/dev/null of=.git/config; : > .npmrc",
}


@pytest.mark.parametrize("how", WRITING)
def test_a_protected_file_is_not_changed(project: Project, how: str) -> None:
    before = project.state()
    project.ran(WRITING[how])
    assert project.state() == before


def test_what_is_not_protected_can_be_read_and_written(project: Project) -> None:
    made = project.ran(
        "cat .env.example app.py .github/workflows/ci.yml .git/config && echo x >> app.py && echo x > new.py",
        "git add app.py new.py && git -c user.name=x -c user.email=x commit -qm x && git log && git status -s",
        "git checkout -q -b other && git stash list && git branch -D main && git gc -q",
    )
    assert [ran.exit_code for ran in made] == [0, 0, 0], [ran.output for ran in made]
    assert "on: push" in made[0].output


@pytest.mark.parametrize(
    ("making", "path"),
    [
        ("printf hunter2 > new.env", "new.env"),
        ("mkdir -p a/b/c && printf hunter2 > a/b/c/.env", "a/b/c/.env"),
        ("mv certs keys", "keys/server.pem"),
        ("mv deep/er deep/other", "deep/other/.env.production"),
        ("git init -q inner && cd inner && printf hunter2 > id_rsa", "inner/id_rsa"),
        ("mkdir target && mv certs target/certs", "target/certs/server.pem"),
        ("mkdir -p node_modules/x && mv deep node_modules/x", "node_modules/x/deep/er/.env.production"),
    ],
)
def test_a_protected_file_that_is_made_is_protected_from_the_next_command(
    project: Project, making: str, path: str
) -> None:
    made, read, written = project.ran(
        "true && " + making, f"cd {project.root}; python3 -c \"print(open('{path}').read())\"", f"echo x >> {path}"
    )
    assert made.exit_code == 0, made.output
    assert SECRET not in read.output
    assert written.exit_code != 0
    assert (project.root / path).read_text().strip().endswith(SECRET)


def test_hooks_of_a_repository_in_the_repository_are_protected_as_well(project: Project) -> None:
    subprocess.run(["git", "init", "-q", "inner"], cwd=project.root, check=True)
    before = (project.root / "inner/.git/config").read_text()
    project.ran("echo x >> inner/.git/config; echo x > inner/.git/hooks/pre-commit")
    assert (project.root / "inner/.git/config").read_text() == before
    assert not (project.root / "inner/.git/hooks/pre-commit").exists()


def test_a_folder_is_listed_again_when_something_in_it_changed(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    look = make_protection_scanner(Workspace(tmp_path), Policy(), clock=lambda: time.time_ns() + 10_000_000_000)
    assert look().hidden == ()
    for path in ("a/b/.env", "a/id_rsa", ".npmrc"):
        (tmp_path / path).touch()
        assert path in look().hidden
    (tmp_path / "a").rename(tmp_path / "c")
    assert set(look().hidden) == {"c/b/.env", "c/id_rsa", ".npmrc"}
    (tmp_path / "c/b/.env").unlink()
    assert set(look().hidden) == {"c/id_rsa", ".npmrc"}


def test_certificates_that_programs_bring_along_are_no_secrets(project: Project) -> None:
    (project.root / ".venv/certifi").mkdir(parents=True)
    (project.root / ".venv/certifi/cacert.pem").write_text("public")
    assert "public" in project.ran("cat .venv/certifi/cacert.pem")[0].output


def test_without_a_sandbox_it_is_said_that_nothing_is_hidden(tmp_path: Path) -> None:
    project = Project(tmp_path.resolve(), SandboxSettings(mode="never"))
    assert not project.sandbox.is_enabled
    assert "without a sandbox" in project.sandbox.note
    assert SECRET in project.ran("cat .env")[0].output


def test_rules_of_a_project_are_protected_too(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    for name in ("a.secret", "b.txt"):
        (tmp_path / "workspace" / name).write_text("x")
    rules = tmp_path / "policy.toml"
    rules.write_text(
        '[[file]]\npattern = "*.secret"\nread = "deny"\nedit = "deny"\n[[file]]\npattern = "b.txt"\nedit = "ask"\n'
    )
    found = make_protection_scanner(Workspace(tmp_path / "workspace"), load_policy(None, rules))()
    assert (found.hidden, found.read_only) == (("a.secret",), ("b.txt",))


def test_no_folder_is_listed_again_that_did_not_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in range(100):
        (tmp_path / f"{folder % 30}" / f"{folder}").mkdir(parents=True)
        for name in range(3):
            (tmp_path / f"{folder % 30}" / f"{folder}" / f"{name}.py").touch()
    (tmp_path / "7" / "7" / ".env").touch()
    later = 10_000_000_000  # the folders were not made just now
    look = make_protection_scanner(Workspace(tmp_path), Policy(), clock=lambda: time.time_ns() + later)
    scan, listed = os.scandir, list[str]()

    def noted(path: Path) -> Any:
        listed.append(str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", noted)
    assert look().hidden == ("7/7/.env",)
    assert len(listed) == 1 + 30 + 100
    assert look().hidden == ("7/7/.env",)
    assert len(listed) == 1 + 30 + 100, "the second time none is"
    (tmp_path / "8" / "8" / ".env").touch()
    assert sorted(look().hidden) == ["7/7/.env", "8/8/.env"]
    assert listed[131:] == [str(tmp_path / "8" / "8")]
