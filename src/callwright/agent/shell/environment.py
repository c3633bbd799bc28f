"""The environment of commands: the user's own, without credentials, and with nothing that waits for input.

Invariant: a variable that is named like a credential is passed on only if the user's settings name it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

__all__ = ["build_environment"]

_SECRET_NAME = re.compile(
    r"""
      ^CALLWRIGHT_ | SECRET | PASSWORD | PASSWD | PASSPHRASE | CREDENTIAL
    | (?:^|_)(?:\w*KEY|AUTH|TOKEN|PAT|PWD|DSN)S?(?:_ID|_FILE|_URL)?$
    """,
    re.VERBOSE | re.IGNORECASE,
)
_FOLDER_VARIABLES = frozenset({"PWD", "OLDPWD"})
# user:password@ in a URL; a proxy needs its credentials to be usable.
_URL_CREDENTIALS = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
_PROXY_NAME = re.compile(r"_proxy$", re.IGNORECASE)
# What a shell would run before the command, or instead of it.
_SHELL_STARTUP_NAME = re.compile(r"^(?:BASH_ENV|ENV|BASH_FUNC_.*|PROMPT_COMMAND|SHELLOPTS|BASHOPTS)$", re.DOTALL)
# No input is possible: no pagers, no editors, no prompts.
_UNATTENDED_DEFAULTS = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "LESS": "-dEFRX",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_EDITOR": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "npm_config_yes": "true",
}


def build_environment(
    environment: Mapping[str, str], *, allowed_names: Collection[str] = (), overrides: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Build the environment for commands. `allowed_names` are credentials to pass on; `overrides` take precedence."""
    passed = {
        name: value for name, value in environment.items() if name in allowed_names or not _is_withheld(name, value)
    }
    return {**passed, **_UNATTENDED_DEFAULTS, **(overrides or {})}


def _is_withheld(name: str, value: str) -> bool:
    if name in _FOLDER_VARIABLES or _SHELL_STARTUP_NAME.match(name):
        return True
    return bool(_SECRET_NAME.search(name)) or (bool(_URL_CREDENTIALS.search(value)) and not _PROXY_NAME.search(name))
