"""`callwright journal`, on a journal that a gateway wrote."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from callwright import cli
from tests.integration.hosted import Hosted, backend, model
from tests.integration.turns import said, spoken
from tests.integration.wires import CHAT
from tests.support.upstream import Upstream, refused

CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris", "days": "3"}}</tool_call>'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a gateway that served three turns: a call, one that was asked again, and a failure."""
    folder = tmp_path_factory.mktemp("served")
    address = f'[store]\njournal = "full"\naddress = "sqlite:///{folder / "store.db"}"\n'
    with Upstream(spoken(CALL), said(), spoken("Hello."), refused(400, "no such temperature")) as upstream:
        tables = backend("main", upstream.url) + model("m", "main", dialect="hermes")
        with Hosted(folder, address + tables) as gateway:
            for number in range(3):
                gateway.post(CHAT.path, CHAT.body("m", stream=True), x_request_id=f"req-{number}")
    return folder


@pytest.fixture
def config(tmp_path: Path, served: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration of that gateway, with a journal that the test may change."""
    monkeypatch.setenv("COLUMNS", "200")
    shutil.copytree(served, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "callwright.toml"
    file.write_text(file.read_text(encoding="utf-8").replace(str(served), str(tmp_path)), encoding="utf-8")
    return file


def run(capsys: pytest.CaptureFixture[str], config: Path, *words: str) -> tuple[int, str]:
    code = cli.main(["journal", words[0], "--config", str(config), *words[1:]])
    out, err = capsys.readouterr()
    return code, out + err


def test_the_list_says_what_became_of_each(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    code, out = run(capsys, config, "list")
    lines = out.splitlines()
    assert code == 0
    assert [line.split()[0] for line in lines] == ["turn", "3", "2", "1"]
    assert "backend error: invalid_request_error" in lines[1]
    assert "2 attempts" in lines[2]
    assert "get_weather; 1 repaired" in lines[3]


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        (["--failed"], [3]),
        (["--model", "other"], []),
        (["--contains", "hello."], [2]),
        (["-n", "2"], [3, 2]),
        (["1", "req-1"], [1, 2]),
        (["--since", "2020-01-01"], [3, 2, 1]),
        (["--since", "2099-01-01T08:30"], []),
    ],
)
def test_rows_are_chosen(
    capsys: pytest.CaptureFixture[str], config: Path, options: list[str], numbers: list[int]
) -> None:
    code, out = run(capsys, config, "list", "--json", *options)
    assert (code, [row["number"] for row in json.loads(out)]) == (0, numbers)
    exported = config.with_name("rows.jsonl")
    exported.write_text(run(capsys, config, "export")[1], encoding="utf-8")
    code, out = run(capsys, config, "list", "--json", "--file", str(exported), *options)
    assert (code, sorted(row["number"] for row in json.loads(out))) == (0, sorted(numbers))


def test_a_row_is_shown_from_the_request_to_the_answer(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    code, out = run(capsys, config, "show", "2")
    assert code == 0
    signs = [
        "request of the client",
        '"content": "How is the weather',
        "attempt 1: request to main",
        "retried: it is empty",
    ]
    signs += ["attempt 2: request to main", "response of the model", "Hello.", "response to the client", "Hello."]
    places = [out.index(sign) for sign in signs]
    assert places[:4] == sorted(places[:4])
    code, out = run(capsys, config, "show", "3")
    assert "no such temperature" in out


def test_turns_come_out_the_same_and_a_change_is_shown(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    code, out = run(capsys, config, "replay")
    assert (code, out.count("the same")) == (0, 3), out
    config.write_text(config.read_text(encoding="utf-8").replace('"hermes"', '"kimi_k2"'), encoding="utf-8")
    code, out = run(capsys, config, "replay")
    assert (code, out.count("the same"), out.count("different")) == (1, 2, 1)
    assert '-call get_weather {"city": "Paris", "days": 3}' in out
    assert "+finish stop" in out
    code, out = run(capsys, config, "replay", "--json", "1")
    assert json.loads(out)[0]["same"] is False


def test_exported_rows_are_read_where_there_is_no_journal(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    code, out = run(capsys, config, "export")
    lines = [json.loads(line) for line in out.splitlines()]
    assert (code, [line["number"] for line in lines]) == (0, [1, 2, 3])
    file = tmp_path / "rows.jsonl"
    file.write_text(out, encoding="utf-8")
    (tmp_path / "store.db").unlink()
    assert run(capsys, config, "replay", "--file", str(file))[0] == 0
    code, out = run(capsys, config, "list", "--json", "--file", str(file), "req-2")
    assert [row["number"] for row in json.loads(out)] == [3]
    file.write_text("{}", encoding="utf-8")
    code, out = run(capsys, config, "list", "--file", str(file))
    assert (code, "is not a journal export" in out) == (2, True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["show", "99"], "no turn 99 in the journal; callwright journal list shows the newest turns"),
        (["show", "nobody"], "no turn nobody in the journal"),
        (["list", "-n", "0"], "--limit must be at least 1"),
        (["list", "1", "--failed"], "--failed has no effect with an ID"),
    ],
)
def test_what_cannot_be_is_a_sentence(
    capsys: pytest.CaptureFixture[str], config: Path, words: list[str], sentence: str
) -> None:
    code, out = run(capsys, config, *words)
    assert code == 2
    assert sentence in out


def test_no_journal_says_how_to_switch_it_on_and_makes_none(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = tmp_path / "c.toml"
    file.touch()
    code, out = run(capsys, file, "list")
    assert code == 2
    assert "callwright serve --journal full" in out
    assert list(tmp_path.iterdir()) == [file]


def test_without_a_verb_it_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["journal"]) == 0
    assert "callwright journal replay 42" in capsys.readouterr().out
