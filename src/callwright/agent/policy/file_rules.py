"""Rules for sensitive files: in a list of patterns the last match decides, ignoring case.

A pattern without a slash matches a name in any folder; `folder/**` matches the folder and everything in it; `{a,b}`
matches either.
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
    """`[[file]]`: decisions for the files of a pattern. An action without a decision is left to earlier rules."""

    pattern: str
    edit: Decision | None = None
    read: Decision | None = None
    why: str = ""

    def get_decision(self, action: FileAction) -> Decision | None:
        """Return the decision for an action, if the rule makes one."""
        return self.edit if action == "edit" else self.read


_COMPILED_PATTERNS: dict[str, re.Pattern[str]] = {}
_PATTERN_PIECE = re.compile(r"(\*\*/)|(/\*\*$)|(\*\*)|(\*)|(\?)|(\[[^\]]+\])|(\{[^{}]*\})")


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    if pattern not in _COMPILED_PATTERNS:
        full = pattern if "/" in pattern else f"**/{pattern}"
        regex, at = "", 0
        for found in _PATTERN_PIECE.finditer(full):
            choices = "|".join(map(re.escape, (found[7] or "")[1:-1].split(",")))
            piece = ("(?:.*/)?", "(?:/.*)?", ".*", "[^/]*", "[^/]", found[6], f"(?:{choices})")[
                (found.lastindex or 1) - 1
            ]
            regex += re.escape(full[at : found.start()]) + piece
            at = found.end()
        _COMPILED_PATTERNS[pattern] = re.compile(regex + re.escape(full[at:]), re.IGNORECASE | re.DOTALL)
    return _COMPILED_PATTERNS[pattern]


def find_file_decision(rules: Sequence[FileRule], path: str, action: FileAction) -> tuple[Decision, FileRule] | None:
    """Return the decision of the last matching rule for a path, and that rule."""
    for rule in reversed(rules):
        decision = rule.get_decision(action)
        if decision and _compile_pattern(rule.pattern).fullmatch(path):
            return decision, rule
    return None


def find_glob_decision(rules: Sequence[FileRule], pattern: str, action: FileAction) -> tuple[Decision, FileRule] | None:
    """Return the decision for a shell pattern such as `.e*`: that for a file which the pattern may match.

    A pattern that begins with a wildcard matches so many files that it counts only if it equals the pattern of a rule.
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
    """List example names that a pattern matches."""
    name = re.sub(r"\*\*/|/\*\*", "", pattern).rpartition("/")[2].replace("*", "x").lower()
    braces = re.search(r"\{([^{}]*)\}", name)
    return [name.replace(braces[0], choice) for choice in braces[1].split(",")] if braces else [name]


def extract_paths(text: str) -> list[str]:
    """Return the paths that a word may contain: itself, and what follows `=`, `@`, `:` or `,`."""
    if "://" in text:
        return []
    parts = [text, *re.split(r"[=@:,]", text)[1:]]
    return [part for part in parts if part and len(part) < 400]
