"""`callwright policy`: for a person and for programs."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from callwright.cli import main


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(monkeypatch: pytest.MonkeyPatch, text: str | bytes) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


def test_a_command_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "check", "ls && sudo rm -rf x"]) == 0
    shown = capsys.readouterr().out
    assert "critical" in shown
    assert "rm -rf x" in shown
    assert "acts as another user" in shown
    assert "cannot be allowed permanently" in shown


def test_what_would_be_remembered_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "check", "npm install x"]) == 0
    assert '“always allow” would store: ["npm","install"]' in capsys.readouterr().out


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "check", "--json", "ls"]) == 0
    assert json.loads(capsys.readouterr().out)["reads_only"] is True


def test_lines_are_read_where_no_command_is_given(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, "ls\n\ngit push -f\n")
    assert main(["policy", "check"]) == 0
    shown = capsys.readouterr().out
    assert shown.index("allow · none") < shown.index("ask · critical")


def test_a_batch_is_answered_in_order(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    typed(
        monkeypatch,
        '{"id": 1, "command": "ls"}\n\n{"id": "b", "command": "rm -rf /"}\n{"id": null, "command": "\\ud800"}\n',
    )
    assert main(["policy", "check", "--jsonl"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["id"] for answer in answers] == [1, "b", None]
    assert [(answer["tier"], answer["decision"]) for answer in answers[:2]] == [("none", "allow"), ("critical", "ask")]
    assert all(answer.keys() == {"id", "tier", "decision", "why"} for answer in answers)


@pytest.mark.parametrize(
    "line", [b"x", b'{"id": 1}', b'{"command": "ls"}', b"[]", b'{"id": 1, "command": 2}', b"\xff", b"[" * 9999]
)
def test_a_bad_line_is_an_error_and_the_rest_go_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, line: bytes
) -> None:
    typed(monkeypatch, line + b'\n{"id": 2, "command": "ls"}\n')
    assert main(["policy", "check", "--jsonl"]) == 1
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["id"] is None
    assert first["error"]
    assert second["decision"] == "allow"


def test_the_rules_of_a_person_and_of_a_project_hold(capsys: pytest.CaptureFixture[str], own_folder: Path) -> None:
    (own_folder / "config" / "callwright").mkdir(parents=True)
    (own_folder / "config" / "callwright" / "policy.toml").write_text(
        '[[rule]]\npattern = ["foo"]\ndecision = "allow"\n'
    )
    (own_folder / "p" / ".callwright").mkdir(parents=True)
    (own_folder / "p" / ".callwright" / "policy.toml").write_text('[[rule]]\npattern = ["ls"]\ndecision = "deny"\n')
    main(["policy", "check", "--json", "--workspace", "p", "foo"])
    main(["policy", "check", "--json", "--workspace", "p", "ls"])
    main(["policy", "check", "--json", "--workspace", "p", f"echo x > {own_folder.resolve()}/p/y"])
    decisions = [json.loads(line)["decision"] for line in capsys.readouterr().out.splitlines()]
    assert decisions == ["allow", "deny", "allow"]


def test_the_rules_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "list"]) == 0
    shown = capsys.readouterr().out
    assert "git push" in shown
    assert ".env" in shown
    assert main(["policy", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["default"]["rule"]


def test_a_wrong_file_is_a_sentence(capsys: pytest.CaptureFixture[str], own_folder: Path) -> None:
    (own_folder / "x.toml").write_text('[[rule]]\npattern = ["python"]\ndecision = "allow"\n')
    assert main(["policy", "check", "--policy", "x.toml", "ls"]) == 2
    assert "x.toml, line 1: python runs any code" in capsys.readouterr().err
    assert main(["policy", "check", "--policy", "missing.toml", "ls"]) == 2
    assert "missing.toml cannot be read" in capsys.readouterr().err


def test_without_a_verb_it_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy"]) == 0
    assert "policy check" in capsys.readouterr().out
