"""`callwright models` and `callwright usage`: tables for people, JSON for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from callwright import cli
from tests.integration.cli.gateway import KEY, gateway, pages, serving

ROWS = [
    {"model": "a", "client": "codex", "requests": 1200, "prompt_tokens": 5, "completion_tokens": 6},
    {"model": "b", "client": "", "requests": 2, "prompt_tokens": 7, "completion_tokens": 8},
]


def test_the_models_of_the_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "callwright.toml"
    path.write_text(
        '[[backends]]\nname = "demo"\nkind = "scripted"\n'
        '[[models]]\nname = "coder"\nmodel = "demo"\ndialect = "hermes"\ncontext = 32768\ntools = "taught"\n'
    )
    assert cli.main(["models", "--config", str(path)]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["name", "backend", "kind", "dialect", "context", "tools"]
    assert row.split() == ["coder", "demo", "scripted", "hermes", "32,768", "taught"]
    assert cli.main(["models", "--config", str(path), "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert (entry["name"], entry["context"], entry["tools"]) == ("coder", 32768, "taught")


def test_a_backend_that_does_not_answer_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "callwright.toml"
    path.write_text('[[backends]]\nname = "gone"\nurl = "http://127.0.0.1:9/v1"\nretries = 0\n')
    assert cli.main(["models", "--config", str(path)]) == 1
    assert capsys.readouterr().out.startswith("gone: ")


def test_the_models_of_a_gateway(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(gateway(key=KEY)) as url:
        assert cli.main(["models", "--url", url, "--key", KEY]) == 0
    assert capsys.readouterr().out.split() == ["name", "m"], "columns that nobody fills are left out"


def test_usage_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(pages({"/v1/usage": {"object": "list", "data": ROWS}})) as url:
        assert cli.main(["usage", "--url", url, "--since", "2026-11-01"]) == 0
        header, *rows, total = capsys.readouterr().out.splitlines()
        assert cli.main(["usage", "--url", url, "--json"]) == 0
    assert header.split() == ["model", "client", "requests", "prompt", "tokens", "completion", "tokens"]
    assert [row.split() for row in rows] == [["a", "codex", "1,200", "5", "6"], ["b", "–", "2", "7", "8"]]
    assert total.split() == ["total", "1,202", "12", "14"]
    assert json.loads(capsys.readouterr().out) == ROWS


def test_no_usage_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(pages({"/v1/usage": {"data": []}})) as url:
        assert cli.main(["usage", "--url", url]) == 0
    assert capsys.readouterr().out == "No usage yet.\n"


@pytest.mark.parametrize("command", ["usage", "models"])
def test_no_gateway_is_told(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([command, "--url", "127.0.0.1:9"]) == 2
    assert "cannot connect to http://127.0.0.1:9" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--host", "--port", "--debug", "--journal"])
def test_a_list_of_models_has_no_flags_of_what_runs_turns(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    with pytest.raises(SystemExit):
        cli.main(["models", flag, "1"])
    assert f"unrecognized arguments: {flag}" in capsys.readouterr().err
