"""Which files are sensitive: patterns in a list of which the last that matches decides, whatever the case of letters.

A pattern without a slash is a name in any folder; `folder/**` is the folder and everything in it; `{a,b}` is either.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from callwright.agent.policy.judgement import Decision

__all__ = ["FileAction", "FileRule", "extract_paths", "find_file_decision", "find_glob_decision"]

FileAction = Literal["read", "edit"]


class FileRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[[file]]`: what may be done with the files of a pattern. What it does not say is left as it was."""

    pattern: str
    edit: Decision | None = None
    read: Decision | None = None
    why: str = ""

    def get_decision(self, action: FileAction) -> Decision | None:
        """What it says about an action, if anything."""
        return self.edit if action == "edit" else self.read


_COMPILED_PATTERNS: dict[str, re.Pattern[str]] = {}
_PATTERN_PIECE = re.compile(r"(\*\*/)|(/\*\*$)|(\*\*)|(\*)|(\?)|(\[[^\]]+\])|(\{[^{}]*\})")


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    if pattern not in _COMPILED_PATTERNS:
        whole = pattern if "/" in pattern else f"**/{pattern}"
        made, at = "", 0
        for found in _PATTERN_PIECE.finditer(whole):
            choices = "|".join(map(re.escape, (found[7] or "")[1:-1].split(",")))
            piece = ("(?:.*/)?", "(?:/.*)?", ".*", "[^/]*", "[^/]", found[6], f"(?:{choices})")[
                (found.lastindex or 1) - 1
            ]
            made += re.escape(whole[at : found.start()]) + piece
            at = found.end()
        _COMPILED_PATTERNS[pattern] = re.compile(made + re.escape(whole[at:]), re.IGNORECASE | re.DOTALL)
    return _COMPILED_PATTERNS[pattern]


def find_file_decision(rules: Sequence[FileRule], path: str, action: FileAction) -> tuple[Decision, FileRule] | None:
    """What the last rule that matches says about a path, and which one that is."""
    for rule in reversed(rules):
        decision = rule.get_decision(action)
        if decision and _compile_pattern(rule.pattern).fullmatch(path):
            return decision, rule
    return None


def find_glob_decision(rules: Sequence[FileRule], pattern: str, action: FileAction) -> tuple[Decision, FileRule] | None:
    """The same for a pattern of the shell, such as `.e*`: what it says about a file that the pattern may stand for.

    Patterns that begin with a wildcard stand for so many files that they count only if they are written as the rule is.
    """
    if named := find_file_decision(rules, pattern, action):
        return named
    name = pattern.rpartition("/")[2].lower()
    if not name or name[0] in "*?[":
        return None
    for rule in rules:
        for example in _list_example_names(rule.pattern):
            if (
                fnmatchcase(example, name)
                and (found := find_file_decision(rules, example, action))
                and found[0] != "allow"
            ):
                return found
    return None


def _list_example_names(pattern: str) -> list[str]:
    """Names that a pattern is about."""
    name = re.sub(r"\*\*/|/\*\*", "", pattern).rpartition("/")[2].replace("*", "x").lower()
    braces = re.search(r"\{([^{}]*)\}", name)
    return [name.replace(braces[0], choice) for choice in braces[1].split(",")] if braces else [name]


def extract_paths(text: str) -> list[str]:
    """The paths that a word may hold: itself, and what follows a sign in it (`--file=x`, `@x`, `HEAD:x`, `a,x`)."""
    if "://" in text:
        return []
    parts = [text, *re.split(r"[=@:,]", text)[1:]]
    return [part for part in parts if part and len(part) < 400]
