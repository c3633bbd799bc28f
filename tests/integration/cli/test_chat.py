"""`callwright chat`: questions, answers, calls that are run and shown; in this process and through a gateway."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from callwright import cli
from callwright.cli.chat import run_tool
from callwright.model import ToolCall
from tests.integration.cli.gateway import KEY, gateway, serving

SCRIPT = """\
models = ["one", "two"]

[[turns]]
when = { results_from = 1 }
steps = [{ text = "It is ${result}." }]

[[turns]]
when = { user = "time" }
steps = [
  { reasoning = "A clock is needed." },
  { text = "Let me look." },
  { dialect = "hermes", say = [{ name = "get_time", arguments = { timezone = "UTC" } }] },
]

[[turns]]
when = { user = "fail" }
steps = [{ error = { status = 400, message = "no such thing" } }]

[[turns]]
steps = [{ text = "Hello." }]
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    (tmp_path / "script.toml").write_text(SCRIPT)
    path = tmp_path / "callwright.toml"
    path.write_text(f'[[backends]]\nname = "demo"\nkind = "scripted"\nscript = "{tmp_path / "script.toml"}"\n')
    return str(path)


def talk(monkeypatch: pytest.MonkeyPatch, lines: Iterable[str]) -> None:
    typed = iter(lines)
    monkeypatch.setattr("builtins.input", lambda _="": next(typed))


def test_one_question_is_answered(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["chat", "--config", config, "hi", "there"]) == 0
    assert capsys.readouterr().out == "Hello.\n"


def test_a_call_is_shown_run_and_answered(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["chat", "--config", config, "What time is it?"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["A clock is needed.", "Let me look."]
    assert lines[2].startswith("→ get_time {")
    assert lines[3].endswith("+00:00")
    assert lines[4] == f"It is {lines[3].strip()}."


def test_a_talk_goes_on_until_an_empty_line(
    config: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(monkeypatch, ["hi", "please fail", "hi again", "  "])
    assert cli.main(["chat", "--config", config, "two"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("two ")
    assert out.count("Hello.") == 2, "a failure does not end the talk, and is not remembered"
    assert "no such thing" in out


def test_the_end_of_the_input_ends_the_talk(
    config: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(_: str = "") -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", end)
    assert cli.main(["chat", "--config", config]) == 0


def test_it_talks_through_a_running_gateway(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(gateway(key=KEY)) as url:
        assert cli.main(["chat", "--url", url, "--key", KEY, "m", "What is the weather?"]) == 0
    out = capsys.readouterr().out
    assert '→ get_weather {"city": "Oslo"}' in out
    assert "unknown tool get_weather" in out
    assert "called tools 5 times without answering" in out


def test_a_gateway_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["chat", "--url", "127.0.0.1:9", "hi"]) == 2
    assert "callwright serve" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "is_error", "content"),
    [
        ("{}", False, "+00:00"),
        ('{"timezone": "Asia/Kolkata"}', False, "+05:30"),
        ('{"timezone": "Mars/Olympus"}', True, "Mars/Olympus"),
        ('{"timezone": "../../etc/passwd"}', True, "Error"),
        ('{"timezone": 7}', True, "7"),
        ("[]", True, "Error"),
        ("{", True, "Error"),
    ],
)
def test_the_tool_tells_the_time_or_why_not(arguments: str, is_error: bool, content: str) -> None:
    result = run_tool(ToolCall("c", "get_time", arguments))
    assert (result.is_error, result.call_id) == (is_error, "c")
    assert content in result.content
    json.dumps(result.content)


@pytest.mark.parametrize("words", [["--journal", "full"], ["--backend", "http://gpu:8000"], ["--config", "c.toml"]])
def test_what_has_no_effect_on_a_running_gateway_is_refused(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert cli.main(["chat", "--url", "127.0.0.1:9", *words, "hi"]) == 2
    assert f"{words[0]} has no effect with --url" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--host", "--port", "--debug"])
def test_a_chat_has_no_flags_of_a_server(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    with pytest.raises(SystemExit):
        cli.main(["chat", flag, "1", "hi"])
    assert f"unrecognized arguments: {flag}" in capsys.readouterr().err
