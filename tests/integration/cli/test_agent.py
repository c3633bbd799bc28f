"""`callwright agent` before it works: where its model comes from, and what is wrong with how it was called."""

import io
import socket
import sys

import pytest

from callwright.cli import main


@pytest.fixture(autouse=True)
def nobody(monkeypatch, tmp_path):
    """No terminal, no configuration, no sessions."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_server_that_is_not_there_is_a_failure_in_a_sentence(capsys):
    assert main(["agent", "--headless", "--backend", f"http://127.0.0.1:{free_port()}", "fix it"]) == 1
    assert "cannot connect to" in capsys.readouterr().err


def test_without_any_configuration_a_model_is_found(monkeypatch, capsys):
    monkeypatch.setattr("callwright.cli.discovery.LOCAL_URLS", ())
    monkeypatch.setattr(
        "callwright.cli.startup.is_embedded_available", lambda: False
    )  # so it is the demo, which is quick
    code = main(["agent", "--json", "--max-iterations", "1", "hello"])
    assert code in (0, 1, 4)
    assert '"type":"session_opened"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--port", "0", "x"], "--port needs --web"),
        (["--web", "fix it"], "a task has no effect with --web"),
        (["--acp", "--resume"], "--resume has no effect with --acp"),
        (["--json"], "no task given"),
        (["--headless", "--model", "nothing-like-it", "x"], "no model named 'nothing-like-it'"),
        (
            ["--headless", "--max-iterations", "0", "x"],
            "invalid limit: --max-iterations must be a whole number from 1 to 1000, not 0",
        ),
        (["--headless", "--timeout", "-1", "x"], "--timeout must be a number of at least 0, not -1.0"),
        (["--headless", "--workspace", "nowhere", "x"], "nowhere"),
        (["--resume", "--headless"], "no session to resume in this folder"),
        (["--resume", "0000-ffffff", "--headless"], "no session"),
    ],
)
def test_wrong_usage_is_a_sentence_and_exit_code_2(monkeypatch, capsys, words, sentence):
    monkeypatch.setattr("callwright.cli.discovery.LOCAL_URLS", ())
    monkeypatch.setattr("callwright.cli.startup.is_embedded_available", lambda: False)
    assert main(["agent", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_an_answer_without_an_end_is_ended_by_the_time_limit(tmp_path, capsys):
    (tmp_path / "script.toml").write_text(
        'models = ["m"]\npace = 0.01\n[[turns]]\nsteps = [{ text = "and so on ", repeat = 100000 }]\n'
    )
    (tmp_path / "callwright.toml").write_text('[[backends]]\nname = "s"\nkind = "scripted"\nscript = "script.toml"\n')
    assert main(["agent", "--json", "--timeout", "1", "What is it?"]) == 4
    said = capsys.readouterr().out
    assert '"reason":"time"' in said
    assert "and so on" in said


@pytest.mark.parametrize("flag", ["--host", "--debug"])
def test_the_agent_has_no_flags_of_a_server(capsys, flag):
    with pytest.raises(SystemExit):
        main(["agent", flag, "1", "x"])
    assert f"unrecognized arguments: {flag}" in capsys.readouterr().err
