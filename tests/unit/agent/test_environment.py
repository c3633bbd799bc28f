"""Commands get the person's environment, without credentials and with nothing that waits for keys."""

from __future__ import annotations

import pytest

from callwright.agent.shell.environment import build_environment


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GITHUB_TOKEN", "github_token", "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "DJANGO_SECRET", "CLIENT_SECRET_FILE", "PGPASSWORD", "MYSQL_PWD",
        "DB_PASSWD", "GITHUB_PAT", "SENTRY_DSN", "CALLWRIGHT_CONFIG", "GOOGLE_APPLICATION_CREDENTIALS", "APIKEY",
        "NPM_AUTH", "SSH_KEY_PASSPHRASE", "HF_TOKENS", "BASH_ENV", "ENV", "BASH_FUNC_ls%%", "OLDPWD", "PWD",
    ],
)  # fmt: skip
def test_credentials_and_what_a_shell_would_run_are_not_passed_on(name: str) -> None:
    assert name not in build_environment({name: "value"})


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "LANG", "TOKENIZERS_PARALLELISM", "SSH_AUTH_SOCK", "KEYBOARD", "PATTERN", "VIRTUAL_ENV", "TMPDIR"],
)
def test_everything_else_is(name: str) -> None:
    assert build_environment({name: "value"})[name] == "value"


def test_a_password_in_an_address_is_not_passed_on_but_that_of_a_proxy_is() -> None:
    given = {
        "DATABASE_URL": "postgres://me:hunter2@db/x",
        "HTTPS_PROXY": "http://me:hunter2@proxy:3128",
        "HOMEPAGE": "https://example.com/a:b@c",
    }
    assert set(given) - set(build_environment(given)) == {"DATABASE_URL"}


def test_the_person_has_the_last_word() -> None:
    made = build_environment(
        {"NPM_TOKEN": "n", "X_TOKEN": "x"}, allowed_names=["NPM_TOKEN"], overrides={"TERM": "xterm", "CI": "1"}
    )
    assert (made["NPM_TOKEN"], made["TERM"], made["CI"]) == ("n", "xterm", "1")
    assert "X_TOKEN" not in made


def test_nothing_waits_for_keys() -> None:
    made = build_environment({"PAGER": "less", "EDITOR": "vim"})
    assert (made["PAGER"], made["GIT_PAGER"], made["EDITOR"], made["GIT_TERMINAL_PROMPT"]) == (
        "cat",
        "cat",
        "false",
        "0",
    )
