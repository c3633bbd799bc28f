"""`callwright serve` as a person meets it: what it prints, how it ends, and why it does not begin."""

from __future__ import annotations

import errno
import io
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from callwright import cli
from callwright.backends.settings import BackendSettings
from callwright.cli import banner
from callwright.cli.discovery import ModelServer
from callwright.cli.serve import _describe_listen_error
from callwright.cli.startup import ConfigLoader
from callwright.config import Config
from callwright.engine import ModelListing
from callwright.gateway.settings import KeySettings

DEMO = '[[backends]]\nname = "demo"\nkind = "scripted"\n'
SERVE = (sys.executable, "-m", "callwright", "serve")


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "callwright.toml"
    path.write_text(DEMO)
    return str(path)


@contextmanager
def running(config: str) -> Iterator[tuple[subprocess.Popen[str], list[str], str]]:
    """A service of its own: the process, what it said at the beginning, and its address."""
    process = subprocess.Popen([*SERVE, "--config", config, "--port", "0"], stdout=subprocess.PIPE, text=True)
    with process:
        try:
            assert process.stdout
            lines: list[str] = []
            while not lines or "Stop it: Ctrl-C" not in lines[-1]:
                lines.append(process.stdout.readline())
                assert lines[-1], "it ended early"
            url = next(word for line in lines for word in line.split() if word.startswith("http://127.0.0.1:"))
            yield process, lines, url
        finally:
            process.kill()


def test_it_says_where_it_is_answers_and_stops_when_told(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    with running(config) as (process, lines, url):
        assert cli.main(["models", "--url", url]) == 0
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    assert "demo" in capsys.readouterr().out
    assert sum("codex -m demo" in line for line in lines) == 1


def test_after_a_reload_the_backends_are_asked_again(config: str) -> None:
    with running(config) as (process, _, url):
        more = Path(config).with_name("more.toml")
        more.write_text('models = ["new"]\n[[turns]]\nsteps = [{ text = "Hi." }]\n')
        Path(config).write_text(f'{DEMO}[[backends]]\nname = "more"\nkind = "scripted"\nscript = "{more}"\n')
        process.send_signal(signal.SIGHUP)
        ends = time.monotonic() + 20
        while "new" not in (names := _names(url)) and time.monotonic() < ends:
            time.sleep(0.05)
    assert names == ["demo", "new"]


def _names(url: str) -> list[str]:
    with urllib.request.urlopen(f"{url}/v1/models") as answer:
        return [entry["id"] for entry in json.load(answer)["data"]]


def test_a_port_that_is_taken_is_told(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert cli.main(["serve", "--config", config, "--port", str(port)]) == 2
    assert f"port {port} is already in use" in capsys.readouterr().err


def test_an_open_door_needs_a_key(
    config: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CALLWRIGHT_API_KEY", raising=False)
    assert cli.main(["serve", "--config", config, "--host", "0.0.0.0", "--port", "0"]) == 2
    assert "key" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.EADDRINUSE, "pass --port 81 or --port 0"),
        (errno.EACCES, "permission denied for port 80; use a port above 1023"),
        (errno.EADDRNOTAVAIL, "--host must be an address of this machine"),
    ],
)
def test_an_address_that_cannot_be_used_says_what_to_do(number: int, sentence: str) -> None:
    assert sentence in _describe_listen_error("10.0.0.1", 80, OSError(number, "Reason"))


def model(name: str, backend: str = "ollama") -> ModelListing:
    return ModelListing(name=name, backend=backend, kind="ollama", dialect="hermes", context=4096)


def shown(
    config: Config, models: list[ModelListing], *, found: tuple[ModelServer, ...] = (), stand_in: Any = ""
) -> str:
    out = io.StringIO()
    banner.print_banner(
        Console(file=out, width=100), ConfigLoader(None, {}, found, stand_in), config, models, "http://h:1"
    )
    return " ".join(out.getvalue().split())


BACKEND = BackendSettings(name="ollama", kind="ollama", url="http://127.0.0.1:11434")


def test_the_models_are_named_and_many_are_counted() -> None:
    text = shown(Config(backends=(BACKEND,)), [model(f"m{number}") for number in range(10)])
    assert "m0, m1, m2, m3, m4, m5, m6, m7 and 2 more from ollama, http://127.0.0.1:11434" in text
    assert "codex -m m0" in text, "the clients are shown how to use the first"


def test_a_backend_that_does_not_answer_is_told_and_nothing_is_there_to_paste() -> None:
    text = shown(Config(backends=(BACKEND,)), [])
    assert "no models; is the server running?" in text
    assert "codex" not in text


def test_the_demo_says_that_it_is_one() -> None:
    empty = ModelServer(label="Ollama", kind="ollama", url="http://127.0.0.1:11434", models=())
    demo = BackendSettings(name="demo", kind="scripted")
    text = shown(Config(backends=(demo,)), [model("demo", "demo")], found=(empty,), stand_in="demo")
    assert "Serving a demo instead" in text
    assert "Ollama at http://127.0.0.1:11434 has no models yet." in text


def test_the_embedded_model_says_how_to_get_a_larger_one() -> None:
    own = BackendSettings(name="embedded", kind="embedded")
    text = shown(Config(backends=(own,)), [model("tiny", "embedded")], stand_in="embedded")
    assert "a very small embedded model" in text
    assert "--backend URL" in text
    assert "tiny from embedded, embedded" in text
    assert "codex -m tiny" in text


def test_keys_are_never_printed() -> None:
    config = Config(backends=(BACKEND,), keys=(KeySettings(name="team", key="sk-secret"),))
    text = shown(config, [model("m")])
    assert "sk-secret" not in text
    assert "YOUR-KEY" in text
