"""What a project asks for is data until a person approved its exact bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.agent.mcp.settings import McpSettings, ProjectServers, load_project_servers
from callwright.config import load_config
from callwright.errors import ConfigError

FILE = {
    "mcpServers": {
        "files": {"command": "npx", "args": ["-y", "some server"], "env": {"KEY": "v"}},
        "web": {"type": "http", "url": "https://example.com/mcp", "headers": {"authorization": "x"}},
    }
}


def written(folder: Path, content: object) -> Path:
    path = folder / ".mcp.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def loaded(path: Path) -> ProjectServers:
    project = load_project_servers(path)
    assert project is not None
    return project


def test_the_common_format_is_read(tmp_path: Path) -> None:
    project = loaded(written(tmp_path, FILE))
    assert project.servers == (
        McpSettings(name="files", command=("npx", "-y", "some server"), env={"KEY": "v"}),
        McpSettings(name="web", url="https://example.com/mcp", headers={"authorization": "x"}),
    )


def test_a_person_is_shown_everything_that_would_be_started(tmp_path: Path) -> None:
    question = loaded(written(tmp_path, FILE)).approval_text
    assert "files: npx -y 'some server' (KEY: v)" in question
    assert "web: https://example.com/mcp (authorization: x)" in question


def test_what_a_terminal_would_hide_is_shown(tmp_path: Path) -> None:
    hidden = {"mcpServers": {"x": {"command": "ls", "args": ["\x1b[2K\r", "\u202egnp", ""]}}}
    assert r"x: ls '\x1b[2K\r' '\u202egnp' ''" in loaded(written(tmp_path, hidden)).approval_text


@given(at=st.integers(0, 10_000), byte=st.binary(min_size=1, max_size=1))
def test_one_byte_changed_is_not_approved(tmp_path_factory: pytest.TempPathFactory, at: int, byte: bytes) -> None:
    path = written(tmp_path_factory.mktemp("project"), FILE)
    project = loaded(path)
    approved = {project.path: project.digest}
    assert project.is_approved(approved)
    data = bytearray(path.read_bytes())
    at %= len(data)
    changed = bytes(data[:at]) + byte + bytes(data[at + 1 :])
    path.write_bytes(changed)
    try:
        again = load_project_servers(path)
    except ConfigError:
        return
    assert again is None or again.is_approved(approved) == (changed == bytes(data))


def test_an_approval_holds_for_its_own_place_only(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = (loaded(written(tmp_path / name, FILE)) for name in ("one", "two"))
    assert one.digest == two.digest
    assert not two.is_approved({one.path: one.digest})
    assert not one.is_approved({})


def test_no_file_and_no_servers_ask_for_nothing(tmp_path: Path) -> None:
    assert load_project_servers(tmp_path / ".mcp.json") is None
    assert load_project_servers(written(tmp_path, {"mcpServers": {}})) is None
    assert load_project_servers(tmp_path) is None


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        {"mcpServers": {"x": {}}},
        {"mcpServers": {"x": {"command": "a", "url": "https://b"}}},
        {"mcpServers": {"x": {"type": "sse", "url": "https://b"}}},
        {"mcpServers": {"x": {"url": "file:///etc/passwd"}}},
        {"mcpServers": {"a name\n": {"command": "a"}}},
        {"mcpServers": {"x": {"command": ["a"]}}},
        " " * 300_000,
    ],
)
def test_a_file_that_is_wrong_is_said_to_be_so(tmp_path: Path, content: object) -> None:
    with pytest.raises(ConfigError, match=r"\.mcp\.json"):
        load_project_servers(written(tmp_path, content))


@pytest.mark.parametrize(
    ("table", "flaw"),
    [
        ('name = "x"', "either a command or a url"),
        ('name = "x"\ncommand = ["a"]\nurl = "http://127.0.0.1"', "either a command or a url"),
        ('name = "x"\nurl = "ftp://127.0.0.1"', "begins with http"),
        ('name = "x"\ncommand = ["a"]\n[[mcp]]\nname = "x"\ncommand = ["b"]', "name"),
    ],
)
def test_settings_of_a_person_are_checked(tmp_path: Path, table: str, flaw: str) -> None:
    file = tmp_path / "callwright.toml"
    file.write_text(f"[[mcp]]\n{table}\n")
    with pytest.raises(ConfigError, match=flaw):
        load_config(file, {})
