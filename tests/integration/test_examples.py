"""The examples of docs/library.md, each run as a program of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SECONDS = 50.0


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "src")}


def command(name: str, *words: str) -> list[str]:
    return [sys.executable, "-W", "error", str(EXAMPLES / name), *words]


def run(name: str, environment: dict[str, str], folder: Path, *words: str) -> str:
    done = subprocess.run(
        command(name, *words), cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_every_example_is_run_here_and_in_the_documentation() -> None:
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names == {"drive_agent.py", "mount_gateway.py", "run_turn.py"}
    assert not [name for name in names if f"(../examples/{name})" not in page]


def test_a_script_runs_one_turn(environment: dict[str, str], tmp_path: Path) -> None:
    said = run("run_turn.py", environment, tmp_path, "What is the weather?")
    assert said == 'I will use a tool for that.\ndemo calls get_weather with {"city": "Lisbon"}\n'


def test_a_script_drives_the_agent(environment: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    said = run("drive_agent.py", environment, tmp_path, str(folder))
    assert "write_file: ok\n" in said
    assert "the task ended: done\n" in said
    assert "+Hello, reader.\n" in said
    assert (folder / "greeting.txt").read_text() == "Hello, reader.\n"


def test_a_program_needs_nothing_of_the_command_line(environment: dict[str, str]) -> None:
    show = "print([name for name in sys.modules if name.startswith('callwright.cli')])"
    modules = ["callwright.app", "callwright.gateway.mountable_app", "callwright.agent.session.agent_app"]
    code = "\n".join(["import sys", *(f"import {module}; {show}" for module in modules)])
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert dict(zip(modules, done.stdout.splitlines(), strict=True)) == dict.fromkeys(modules, "[]")


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def mounted(environment: dict[str, str], tmp_path: Path, port: int) -> Iterator[str]:
    with subprocess.Popen(
        command("mount_gateway.py", str(port)), cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            wait_for(f"http://127.0.0.1:{port}/", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            _, err = process.communicate(timeout=SECONDS)
    assert "Application shutdown complete" in err


def wait_for(url: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the example does not serve")


def test_the_gateway_serves_inside_another_application(mounted: str) -> None:
    with urllib.request.urlopen(mounted, timeout=SECONDS) as page:
        assert b"/llm/v1" in page.read()
    body = {"model": "demo", "messages": [{"role": "user", "content": "Hello"}]}
    request = urllib.request.Request(f"{mounted}/llm/v1/chat/completions", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        assert "demo model" in json.load(answer)["choices"][0]["message"]["content"]
