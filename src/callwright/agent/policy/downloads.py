"""Finds programs that one command of a text downloads and a later one runs, before anybody can review them."""

from __future__ import annotations

from collections.abc import Sequence

from callwright.agent.policy.policy_rules import CODE_RUNNERS
from callwright.agent.policy.shell_command import ShellCommand

__all__ = ["find_downloaded_program"]

_DOWNLOADERS = frozenset(("curl", "wget", "aria2c", "axel", "fetch", "http", "https", "xh", "scp", "sftp", "ftp"))


def find_downloaded_program(commands: Sequence[ShellCommand]) -> str:
    """Return the name of a file that is downloaded and then run, or an empty string.

    A file counts as downloaded if the downloading command names it, or if a redirection or `tee` writes it.
    """
    fetched: set[str] = set()
    downloading = False
    for command in commands:
        downloading = downloading or command.name in _DOWNLOADERS
        words = [word.known_text for word in command.argv]
        if command.name in _DOWNLOADERS or command.name == "tee":
            fetched.update(map(_get_file_name, words[1:]))
        elif downloading:
            executed = words if command.name in CODE_RUNNERS else [word for word in words[:1] if "/" in word]
            if found := next((word for word in executed if _get_file_name(word) in fetched), ""):
                return found
        fetched.update(_get_file_name(one.target.known_text) for one in command.redirections if one.can_write)
    return ""


def _get_file_name(path: str) -> str:
    return path.rpartition("/")[2] or path
