"""Where a coding agent runs: a new home and a new work folder each time, and no variable of the person who runs it.
What it did is judged by the files and by what it printed, not by its exit code.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from tests.clients.agents import Agent, Run, filled
from tests.clients.script import TASK, script
from tests.support.npm import commands, node
from tests.support.served import Served

SECONDS = 120
MODEL = "any-model"
CONTENT = 'def greet(name):\n\treturn "<b>" + name + "</b>  & more"  # ☃\n'
"""What must be in the file: markup, quotes, a tab, a line break and a character of three bytes."""
ADDED = "".join(f"+{line}" for line in CONTENT.splitlines(keepends=True))


class Outcome(NamedTuple):
    """What became of a run; without problems it went well."""

    run: Run
    seconds: float
    requests: int
    problems: tuple[str, ...]
    output: str


def perform(run: Run) -> Outcome:
    """Start a gateway, let the client do its task, and look at what it left."""
    with tempfile.TemporaryDirectory(prefix="callwright-") as scratch:
        home, work, file = (Path(scratch, name) for name in ("home", "work", "script.jsonl"))
        home.mkdir()
        work.mkdir()
        secret = secrets.token_hex(8)
        (work / "secret.txt").write_text(f"{secret}\n", encoding="utf-8")
        gateway = Served(Path(scratch), _configuration(file))
        names = {"base": gateway.url, "home": str(home), "work": str(work), "model": MODEL, "task": TASK}
        names |= {"content": CONTENT, "added": ADDED, **run.agent.wires[run.wire]}
        run = msgspec.structs.replace(run, agent=filled(run.agent, names))
        file.write_text(script(run), encoding="utf-8")
        with gateway:
            started = time.monotonic()
            output, late = _work(run.agent, home, work)
            seconds = time.monotonic() - started
            _end_what_is_left(home)
            turns = gateway.turns()
        problems = [f"still running after {SECONDS} s"] if late else []
        problems += _problems(run, work / "hello.txt", secret, output, turns)
        output += f"\n--- the gateway's log ---\n{gateway.log.read_text(encoding='utf-8')}"
        return Outcome(run, seconds, turns.total(), tuple(problems), output)


def _configuration(file: Path) -> str:
    return (
        f'[[backends]]\nname = "model"\nkind = "scripted"\nscript = "{file.as_posix()}"\n'
        f'[[models]]\nname = "{MODEL}"\nbackend = "model"\ncontext = 128000\n'
    )


def _work(agent: Agent, home: Path, work: Path) -> tuple[str, bool]:
    """Run the client's commands; what they printed, and whether they had to be stopped."""
    for name, text in agent.files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    search = os.pathsep.join([str(commands(agent.package, agent.version)), str(node().parent), os.defpath])
    environment = {"HOME": str(home), "PATH": search, "TERM": "dumb", "LANG": "C.UTF-8", **agent.environment}
    output = ""
    for command in (*agent.before, agent.command):
        found = shutil.which(command[0], path=search)
        assert found, f"{agent.package} has no command {command[0]}"
        process = subprocess.Popen(
            [found, *command[1:]],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            printed, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return output + process.communicate()[0].decode(errors="replace"), True
        output += printed.decode(errors="replace")
    return output, False


def _end_what_is_left(home: Path) -> None:
    """End what the client left running (Cline 3 leaves a daemon): processes that have its home folder. Linux only."""
    mark = b"HOME=%s" % os.fsencode(home)
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)


def _problems(run: Run, file: Path, secret: str, output: str, turns: Counter[str]) -> list[str]:
    found = []
    if not file.is_file():
        found.append("hello.txt was not written")
    # Cline 2 and a few others put the line break at the end of a file as they like.
    elif (text := file.read_text(encoding="utf-8")).rstrip("\n") != CONTENT.rstrip("\n"):
        found.append(f"hello.txt holds {text!r}")
    if secret not in output:
        found.append("the answer does not tell the secret")
    if turns.total() > run.agent.requests:
        found.append(f"{turns.total()} requests are more than {run.agent.requests}: the client goes in circles")
    if run.agent.profile and set(turns) != {run.agent.profile}:
        found.append(f"it was taken for {', '.join(turns) or 'nobody'}")
    return found
