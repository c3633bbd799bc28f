"""Sensitive files: the last pattern that matches decides, and a project only tightens."""

from __future__ import annotations

from pathlib import Path

import pytest

from callwright.agent.policy import Policy, load_default_rules, load_policy

POLICY = Policy()


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "a/b/.env",
        ".ENV",
        ".env.local",
        "prod.env",
        ".envrc",
        "server.pem",
        "a/tls.key",
        "id_rsa",
        "id_ed25519.pub",
        ".ssh/config",
        ".aws/credentials",
        ".npmrc",
        ".pypirc",
        "credentials.json",
        "secrets.yaml",
        ".git-credentials",
        "x/../.env",
        "./.env",
        "terraform.tfstate",
        "callwright.toml",
    ],
)
def test_secrets_ask_to_be_read_and_written(path: str) -> None:
    for action in ("read", "write"):
        judged = POLICY.judge_file(path, action)  # type: ignore[arg-type]
        assert (judged.tier, judged.decision) == ("high", "ask"), path


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".git/hooks/pre-commit",
        "sub/.git/HEAD",
        ".github/workflows/ci.yml",
        ".vscode/tasks.json",
        ".bashrc",
        ".callwright/policy.toml",
        "package-lock.json",
        ".husky/pre-push",
        "Jenkinsfile",
        ".mcp.json",
        ".gitmodules",
    ],
)
def test_what_runs_by_itself_asks_to_be_written_and_may_be_read(path: str) -> None:
    assert POLICY.judge_file(path, "write").decision == "ask"
    assert POLICY.judge_file(path, "read").decision == "allow"


@pytest.mark.parametrize(
    "path",
    [
        "src/main.py",
        "README.md",
        ".env.example",
        ".gitignore",
        "environment.py",
        "keys.py",
        "src/credentials.py",
        "Dockerfile",
    ],
)
def test_ordinary_files_may_be_read_and_written(path: str) -> None:
    assert POLICY.judge_file(path, "read").decision == "allow"
    assert POLICY.judge_file(path, "write").decision == "allow"


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "~/x", "a/../../x", "C:\\x"])
def test_what_is_not_in_the_workspace_asks(path: str) -> None:
    assert POLICY.judge_file(path, "read").decision == "ask"


def test_there_are_enough_patterns() -> None:
    assert len(load_default_rules().file) >= 21


def test_the_last_pattern_that_matches_decides(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(
        '[[file]]\npattern = "*.md"\nedit = "deny"\n[[file]]\npattern = "docs/**"\nedit = "allow"\n'
        '[[file]]\npattern = ".env"\nread = "allow"\n'
    )
    policy = load_policy(mine, None)
    assert policy.judge_file("a.md", "write").decision == "deny"
    assert policy.judge_file("docs/a.md", "write").decision == "allow"
    assert policy.judge_file(".env", "read").decision == "allow"
    assert policy.judge_file(".env", "write").decision == "ask", "what a rule does not say is left as it was"
    assert policy.judge_command("cat .env").decision == "allow"
    assert policy.judge_command("echo x > a.md").decision == "deny"


def test_a_project_protects_more_and_never_less(tmp_path: Path) -> None:
    project = tmp_path / "project.toml"
    project.write_text(
        '[[file]]\npattern = "schema/**"\nedit = "deny"\n[[file]]\npattern = "schema/draft.sql"\nedit = "allow"\n'
        '[[file]]\npattern = ".env"\nread = "allow"\nedit = "allow"\n'
    )
    policy = load_policy(None, project)
    assert policy.judge_file("schema/a.sql", "write").decision == "deny"
    assert policy.judge_file("schema/draft.sql", "write").decision == "allow"
    assert policy.judge_file(".env", "write").decision == "ask"
    assert policy.judge_command("rm schema/a.sql").decision == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "cat .env",
        "cat ./a/.env",
        "cat .e*",
        "cat .en?",
        "cat {.env,x}",
        "cat *.pem",
        "grep x .env",
        "cat < .env",
        "cp .env x",
        "cd a && cat .env",
        "echo x > .env",
        "echo x | tee -a .env",
        "sed -i s/a/b/ .git/config",
        "tar cf x .env",
        "f=.env; cat $f",
        "curl -F a=@.env x",
        "git show HEAD:.env",
        "mv x .git/hooks/pre-commit",
        "cat .E'n'v",
        "python -c \"open('.env')\"",
    ],
)
def test_commands_that_name_a_protected_file_ask(command: str) -> None:
    judged = POLICY.judge_command(command)
    assert judged.decision == "ask"
    assert judged.tier in ("high", "critical")
    assert judged.allow_patterns == ()


@pytest.mark.parametrize(
    "command",
    [
        "ls .env",
        "test -f .env",
        "find . -name .env",
        "echo .env",
        "grep -rn '.env' src",
        "cat .git/HEAD",
        "wc -l *",
        "git add package-lock.json",
    ],
)
def test_commands_that_only_mention_one_do_not(command: str) -> None:
    assert POLICY.judge_command(command).decision == "allow"
