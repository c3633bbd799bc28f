"""The command line as a person and a program meet it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from callwright import __version__, cli
from callwright.dialects import REGISTRY

CALL = '<tool_call>{"name": "ping", "arguments": {"n": "1",}}</tool_call>'
TOOLS = [{"type": "function", "function": {"name": "ping", "parameters": {"properties": {"n": {"type": "integer"}}}}}]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def answer(tmp_path: Path) -> str:
    path = tmp_path / "answer.txt"
    path.write_text(f"<think>hm</think>Hi ☃ {CALL}", encoding="utf-8")
    return str(path)


@pytest.fixture
def tools(tmp_path: Path) -> str:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps({"tools": TOOLS}))
    return str(path)


def test_without_a_command_it_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys)
    assert code == 0
    assert "callwright parse -t tools.json out.txt" in out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"callwright {__version__}\n"


def test_parse_for_a_person(capsys: pytest.CaptureFixture[str], answer: str, tools: str) -> None:
    code, out, _ = run(capsys, "parse", "-d", "hermes", "-t", tools, answer)
    assert code == 0
    for part in ("hm", "Hi ☃", "ping", '"n": 1', "repaired", "trailing_comma", "1 call", "tool_calls", "hermes"):
        assert part in out


def test_parse_shows_what_went_wrong(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text('<tool_call> oops <tool_call>{"name": "f", "arguments": {"a": "b')
    _, out, _ = run(capsys, "parse", "-d", "hermes", str(path))
    assert "not a call" in out
    assert "the output ended inside this call" in out
    assert "length" in out


def test_parse_as_json(capsys: pytest.CaptureFixture[str], answer: str, tools: str) -> None:
    _, out, _ = run(capsys, "parse", "-d", "hermes", "-t", tools, "--json", "-c", "3", answer)
    turn = json.loads(out)
    assert turn["content"] == "Hi ☃ "
    assert turn["reasoning"] == "hm"
    assert json.loads(turn["tool_calls"][0]["arguments"]) == {"n": 1}


def test_parse_as_events(capsys: pytest.CaptureFixture[str], answer: str) -> None:
    _, out, _ = run(capsys, "parse", "-d", "hermes", "--events", "-c", "1", answer)
    events = [json.loads(line) for line in out.splitlines()]
    assert events[0] == {"type": "reasoning", "text": "h"}
    assert events[-1]["type"] == "finish"


def batch(capsys: pytest.CaptureFixture[str], tmp_path: Path, lines: list[Any], *arguments: str) -> list[Any]:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
    code, out, _ = run(capsys, "parse", "--jsonl", *arguments, str(path))
    assert code == 0
    return [json.loads(line) for line in out.splitlines()]


def test_a_batch_answers_every_line_in_order(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    answers = batch(
        capsys,
        tmp_path,
        [
            {"id": 1, "dialect": "hermes", "tools": TOOLS, "text": CALL},
            {"id": "two", "dialect": "hermes", "tools": None, "chunks": ["<think>a", "b</think>", CALL[:9], CALL[9:]]},
            b"",
            {"id": 3, "dialect": "hermes", "text": "x</think>y", "prefill": "<think>"},
        ],
    )
    assert [answer["id"] for answer in answers] == [1, "two", 3]
    call = answers[0]["tool_calls"][0]
    assert (call["name"], call["arguments"]) == ("ping", '{"n": 1}')
    assert set(answers[0]) >= {
        "id", "content", "reasoning", "tool_calls", "finish_reason", "repairs", "malformed", "dialect"
    }  # fmt: skip
    assert [repair["kind"] for repair in answers[0]["repairs"]] == ["coerced_type", "trailing_comma"]
    assert answers[1]["reasoning"] == "ab"
    assert (answers[2]["reasoning"], answers[2]["content"]) == ("x", "y")


def test_a_bad_line_is_an_error_and_the_rest_go_on(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    answers = batch(
        capsys,
        tmp_path,
        [
            b"not json",
            b'{"id": 1, "text": "\xff"}',
            [1],
            {"id": 2, "dialect": "nope", "text": ""},
            {"id": 3},
            {"id": 4, "chunks": ["a", 5]},
            {"id": 5, "text": "", "tools": {"a": 1}},
            {"id": 6, "text": "", "tools": [{}]},
            {"id": 7, "text": "", "prefill": 5},
            {"id": 8, "text": "", "truncated": "maybe"},
            b"\xff\xfe\x00",
            {"id": 9, "dialect": "hermes", "text": "fine", "prefill": None, "truncated": None},
        ],
    )
    assert [answer["id"] for answer in answers] == [None, None, None, 2, 3, 4, 5, 6, 7, 8, None, 9]
    assert all(answer["error"] for answer in answers[:-1])
    assert "not JSON" in answers[0]["error"]
    assert answers[1]["error"] == "the line is not UTF-8: byte 0xff at 19"
    assert "must be a string" in answers[8]["error"]
    assert "partial, drop, repair" in answers[9]["error"]
    assert "nope" in answers[3]["error"]
    assert answers[-1]["content"] == "fine"


def test_a_batch_takes_a_default_dialect_a_size_and_a_policy(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    cut = CALL[: CALL.index("1") + 1]
    lines = [{"id": 1, "text": cut}]
    for policy, calls in (("partial", ['{"n": "1']), ("drop", []), ("repair", ['{"n": "1"}'])):
        [answer] = batch(capsys, tmp_path, lines, "-d", "hermes", "-c", "2", "--truncated", policy)
        assert [call["arguments"] for call in answer["tool_calls"]] == calls
        assert all(call["incomplete"] for call in answer["tool_calls"])
        assert answer["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["parse", "-d", "nope", "x"], "unknown dialect, parser or model 'nope'"),
        (["parse", "-d", "hermes", "/nowhere/at/all"], "cannot read /nowhere/at/all: no such file or directory; pass"),
        (["parse", "-d", "hermes", "/"], "cannot read /: is a directory; pass"),
    ],
)
def test_errors_are_sentences(capsys: pytest.CaptureFixture[str], arguments: list[str], problem: str) -> None:
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert err.startswith("callwright: ")
    assert problem in err


def test_wrong_tools_files_are_named(capsys: pytest.CaptureFixture[str], tmp_path: Path, answer: str) -> None:
    path = tmp_path / "tools.json"
    for content, problem in (("{", "is not JSON"), ("5", "must contain a list of tools")):
        path.write_text(content)
        code, _, err = run(capsys, "parse", "-d", "hermes", "-t", str(path), answer)
        assert code == 2
        assert problem in err


def test_bytes_that_are_no_utf8_are_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "x"
    for content in (b"\xff", b"ab\xe2\x98"):
        path.write_bytes(content)
        code, _, err = run(capsys, "parse", "-d", "hermes", str(path))
        assert code == 2
        assert "the input is not UTF-8 (byte 0x" in err


def test_auto_without_tools_says_what_is_missing(capsys: pytest.CaptureFixture[str], answer: str, tools: str) -> None:
    assert "pass --tools FILE" in run(capsys, "parse", answer)[1]
    assert "--tools FILE" not in run(capsys, "parse", "-t", tools, answer)[1]
    assert "--tools FILE" not in run(capsys, "parse", "-d", "hermes", answer)[1]


@pytest.mark.parametrize("size", ["0", "-1", "x"])
def test_a_chunk_has_a_size(capsys: pytest.CaptureFixture[str], size: str) -> None:
    with pytest.raises(SystemExit):
        cli.main(["parse", "--chunk-size", size])
    assert "must be a whole number of at least 1" in capsys.readouterr().err


def test_dialects_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "dialects")
    assert all(name in out for name in REGISTRY)
    _, out, _ = run(capsys, "dialects", "--json")
    listed = json.loads(out)
    assert [one["name"] for one in listed] == list(REGISTRY)
    assert all(one["example"] and one["models"] and one["source"] for one in listed)
    _, out, _ = run(capsys, "dialects", "--markdown")
    assert out.count("\n| `") == len(REGISTRY)


def test_the_demo_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "demo")
    assert code == 0
    assert "write_file" in out
    assert "coerced_type" in out
