"""`callwright config` as a person and a program meet it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from callwright import cli
from callwright.config.describe import build_json_schema


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("CALLWRIGHT_CONFIG", "CALLWRIGHT_PORT", "CALLWRIGHT_API_KEY", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(["config", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_without_a_verb_it_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys)
    assert code == 0
    assert "callwright config init" in out


def test_init_then_check_then_show(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert run(capsys, "init")[0] == 0
    assert run(capsys, "check") == (
        0,
        "callwright.toml: ok; 1 model, 1 backend, 0 keys, listening on 127.0.0.1:8787\n",
        "",
    )
    code, out, _ = run(capsys, "show", "--port", "9")
    assert code == 0
    assert tomllib.loads(out)["server"]["port"] == 9
    origins = {line.split(" = ")[0]: line.rpartition("# ")[2] for line in out.splitlines() if " = " in line}
    assert origins["port"] == "--port"
    assert origins["url"].startswith("callwright.toml:")
    assert origins["max_retries"] == "default"


def test_init_writes_over_nothing(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "mine.toml").write_text("# mine")
    code, _, err = run(capsys, "init", "mine.toml")
    assert code == 2
    assert err == "callwright: mine.toml already exists and was not changed; choose another file name\n"
    assert (folder / "mine.toml").read_text() == "# mine"


def test_init_says_where_it_cannot_write(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "init", "no/such/folder.toml")
    assert code == 2
    assert "cannot write no/such/folder.toml: no such file or directory" in err


def test_check_without_a_file_says_where_it_looked(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    code, out, _ = run(capsys, "check")
    assert code == 0
    assert f"searched callwright.toml, {folder}/home/.config/callwright/config.toml" in out


def test_check_lists_every_mistake(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "c.toml").write_text("[server]\nprot = 1\n[tools]\nmax_retries = -1\n")
    code, out, _ = run(capsys, "check", "c.toml")
    assert code == 1
    lines = out.splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["c.toml:2", "c.toml:4"]
    code, out, _ = run(capsys, "check", "c.toml", "--json")
    answer = json.loads(out)
    assert (code, answer["ok"], answer["file"]) == (1, False, "c.toml")
    assert [mistake["origin"]["line"] for mistake in answer["mistakes"]] == [2, 4]
    assert answer["mistakes"][0]["remedy"] == 'did you mean "port"?'
    assert [mistake["message"] for mistake in answer["mistakes"]] == lines


def test_show_refuses_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "show", "--port", "http")
    assert (code, out) == (2, "")
    assert err == 'callwright: --port is "http"; it must be a whole number from 0 to 65535\n'


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_show_has_references_and_no_secrets(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch, form: list[str]
) -> None:
    monkeypatch.setenv("TEAM_KEY", "s3cret-1")
    monkeypatch.setenv("CALLWRIGHT_API_KEY", "s3cret-2")
    (folder / "callwright.toml").write_text(
        '[[keys]]\nname = "a"\nkey = "env:TEAM_KEY"\n[[keys]]\nname = "b"\nkey = "s3cret-3"\n'
        '[[backends]]\nname = "x"\nurl = "https://me:s3cret-4@h/v1"\nkey = "s3cret-5"\nheaders = { A = "s3cret-6" }\n'
    )
    code, out, _ = run(capsys, "show", *form)
    assert code == 0
    assert "s3cret" not in out
    shown = json.loads(out)["settings"] if form else tomllib.loads(out)
    assert [key["key"] for key in shown["keys"]] == ["env:CALLWRIGHT_API_KEY", "env:TEAM_KEY", "***"]
    assert shown["backends"][0]["url"] == "https://***@h/v1"
    if form:
        origins = json.loads(out)["origins"]
        assert origins["keys"][1]["key"] == {"kind": "file", "name": "callwright.toml", "line": 3}
        assert origins["server"]["port"]["kind"] == "default"


def test_schema_is_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "schema")
    assert code == 0
    assert json.loads(out) == json.loads(json.dumps(build_json_schema()))
