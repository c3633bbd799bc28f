"""Programs that are downloaded by one command of a text and run by a later one: nobody has seen them in between."""

from __future__ import annotations

from collections.abc import Sequence

from callwright.agent.policy.command import Command
from callwright.agent.policy.rules import NEVER_BY_PREFIX

__all__ = ["runs_a_download"]

_FETCHERS = frozenset(("curl", "wget", "aria2c", "axel", "fetch", "http", "https", "xh", "scp", "sftp", "ftp"))


def runs_a_download(commands: Sequence[Command]) -> str:
    """The name of a file that was downloaded before it is run; empty when there is none.

    A file counts as downloaded if its name stands in the command that downloads, or a redirection or `tee` wrote it.
    """
    fetched: set[str] = set()
    seen = False
    for command in commands:
        seen = seen or command.name in _FETCHERS
        words = [word.bare for word in command.argv]
        if command.name in _FETCHERS or command.name == "tee":
            fetched.update(map(_name, words[1:]))
        elif seen:
            run = words if command.name in NEVER_BY_PREFIX else [word for word in words[:1] if "/" in word]
            if found := next((word for word in run if _name(word) in fetched), ""):
                return found
        fetched.update(_name(one.target.bare) for one in command.redirections if one.writes)
    return ""


def _name(path: str) -> str:
    return path.rpartition("/")[2] or path
