"""Rules for commands and tools, and the TOML files that define them.

A rule matches a command by the program's name and its first operands, and by flags and words. It can set how dangerous
the command is (`tier`) and what happens with it (`decision`). `match` and `not_match` are examples that the rule must
and must not match; they are tried when a file is loaded. Every mistake raises a `PolicyError` with the file and the
line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import msgspec

from callwright.agent.policy.command_options import CommandOptions
from callwright.agent.policy.file_rules import FileRule
from callwright.agent.policy.judgement import Decision, Tier
from callwright.agent.policy.shell_command import ShellCommand
from callwright.errors import PolicyError

__all__ = ["CODE_RUNNERS", "CommandRule", "RuleFile", "ToolRule", "load_rules", "parse_rules"]

# fmt: off
CODE_RUNNERS = frozenset((
    "*", "sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "python", "python2", "python3", "pypy", "pypy3", "perl",
    "ruby", "node", "nodejs", "php", "lua", "Rscript", "npx", "bunx", "uvx", "env", "sudo", "doas", "su", "xargs",
    "eval", "exec", "source", ".", "busybox", "toybox", "ssh", "parallel", "watch", "awk", "gawk", "find",
))
# fmt: on
"""Programs that run any code passed to them: allowing one by name would allow everything."""

_BARE_CODE_RUNNERS = frozenset(("deno", "bun"))


class CommandRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[[rule]]`: a rule for commands. It matches if all of its conditions do."""

    pattern: tuple[str | tuple[str, ...], ...]
    """The program and its first operands: each a word, a list of words, or `*` for any word."""
    flags: tuple[str | tuple[str, ...], ...] = ()
    """One of these flags is present; a list within it means flags that are present together."""
    unless: tuple[str, ...] = ()
    """None of these flags is present, and the operand after the pattern is none of these words."""
    words: tuple[str, ...] = ()
    """One of these patterns matches an operand, an option's value or the piped input, ignoring case."""
    max_operands: int | None = None
    """The maximum number of operands after those of the pattern."""
    decision: Decision | None = None
    tier: Tier | None = None
    """How dangerous it is; for an `allow`, the highest tier that it allows (default `high`)."""
    why: str = ""
    read_only: bool = False
    """For an `allow`: what it allows changes nothing."""
    runs_project_code: bool = False
    """It runs the project's own code: allowed if `project_code` is `allow`."""
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()

    def matches(self, command: ShellCommand, options: CommandOptions) -> bool:
        """Return whether the rule covers a command. An `allow` takes no subcommand for an option's
        value.
        """
        names, *operands = (each if isinstance(each, tuple) else (each,) for each in self.pattern)
        if not any(name in (command.name, "*") for name in names):
            return False
        fits = options.starts_with if self.decision == "allow" or self.runs_project_code else options.can_start_with
        return (
            fits(operands)
            and (not self.flags or any(self._has_flags(each, options) for each in self.flags))
            and not self._is_excluded(options, len(operands))
            and (not self.words or self._matches_words(command, options))
            and (self.max_operands is None or len(options.operands) - len(operands) <= self.max_operands)
        )

    def _is_excluded(self, options: CommandOptions, length: int) -> bool:
        after = [word.known_text for word in options.operands[length : length + 1]]
        return any(each in after or (each.startswith("-") and options.has_flag(each)) for each in self.unless)

    def _has_flags(self, flags: str | tuple[str, ...], options: CommandOptions) -> bool:
        return options.has_flag(flags) if isinstance(flags, str) else all(map(options.has_flag, flags))

    def _matches_words(self, command: ShellCommand, options: CommandOptions) -> bool:
        texts = [word.known_text for word in (*options.operands, *(word for _, word in options.values))]
        texts += [command.stdin.text] if command.stdin and command.stdin.text else []
        return any(fnmatchcase(" ".join(text.split()).lower(), words) for text in texts for words in self.words)

    @property
    def program_names(self) -> tuple[str, ...]:
        """The program names that it can match."""
        return (self.pattern[0],) if isinstance(self.pattern[0], str) else self.pattern[0]

    @property
    def label(self) -> str:
        """What it covers, as text for the user."""
        words = [each if isinstance(each, str) else ", ".join(each) for each in self.pattern]
        flags = ["+".join(each) if isinstance(each, tuple) else each for each in self.flags]
        return " ".join([*words, *([f"({' or '.join(flags)})"] if flags else [])])


class ToolRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[[tool]]`: a rule for tools of plugins and MCP servers, by a pattern of their names."""

    name: str
    decision: Decision
    tier: Tier = "none"
    why: str = ""


class RuleFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All rules of one file."""

    rule: tuple[CommandRule, ...] = ()
    file: tuple[FileRule, ...] = ()
    tool: tuple[ToolRule, ...] = ()
    project_code: Literal["allow", "ask"] | None = None
    """Whether commands that run the project's own code, such as its tests, may run."""


def load_rules(path: Path, *, tighten_only: bool = False) -> RuleFile:
    """Load a file. With `tighten_only` it may not allow anything. Raises `PolicyError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise PolicyError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except OSError as problem:
        raise PolicyError(f"{path} cannot be read: {(problem.strerror or str(problem)).lower()}") from None
    return parse_rules(text, str(path), tighten_only=tighten_only)


def parse_rules(text: str, name: str, *, tighten_only: bool = False) -> RuleFile:
    """Parse the text of a file. Raises `PolicyError`."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise PolicyError(f"{name}: {problem}") from None
    for kind in ("rule", "file", "tool"):
        if kind in tables and not isinstance(tables[kind], list):
            raise PolicyError(f"{name}: write [[{kind}]] with two brackets: it is a list of tables")
    try:
        found = msgspec.convert(tables, RuleFile)
    except msgspec.ValidationError as problem:
        raise PolicyError(_format_problem(text, name, str(problem))) from None
    for number, rule in enumerate(found.rule):
        if mistake := _find_mistake(rule, tighten_only=tighten_only):
            raise PolicyError(f"{name}, line {find_table_line(text, 'rule', number)}: {mistake}")
    for number, tool in enumerate(found.tool):
        if tighten_only and tool.decision == "allow":
            raise PolicyError(f"{name}, line {find_table_line(text, 'tool', number)}: {_TIGHTEN_ONLY_MESSAGE}")
    if tighten_only and found.project_code == "allow":
        raise PolicyError(f"{name}: {_TIGHTEN_ONLY_MESSAGE}")
    return found


_TIGHTEN_ONLY_MESSAGE = "a project's policy cannot allow anything; move this rule to your user policy"


def find_table_line(text: str, kind: str, number: int) -> int:
    """Return the line on which the table with this kind and number begins."""
    headers = [at for at, line in enumerate(text.splitlines(), 1) if re.match(rf"\s*\[\[\s*{kind}\s*\]\]", line)]
    return headers[number] if number < len(headers) else 1


def _format_problem(text: str, name: str, problem: str) -> str:
    location = re.search(r"`\$\.(\w+)\[(\d+)\]", problem)
    line = f", line {find_table_line(text, location[1], int(location[2]))}" if location else ""
    return f"{name}{line}: {problem}"


def _find_mistake(rule: CommandRule, *, tighten_only: bool) -> str:
    if not rule.pattern or not all(rule.pattern):
        return "the pattern is empty; start it with a program name"
    if rule.decision is None and rule.tier is None and not rule.runs_project_code:
        return 'the rule has no effect; add a decision ("allow", "ask", "deny") or a tier'
    is_version_only = rule.max_operands == 0 and rule.flags and set(rule.flags) <= {"-v", "-V", "-version", "--version"}
    if rule.decision == "allow" or rule.runs_project_code:
        if tighten_only:
            return _TIGHTEN_ONLY_MESSAGE
        code_runners = CODE_RUNNERS | (_BARE_CODE_RUNNERS if len(rule.pattern) == 1 else set())
        if (risky := code_runners.intersection(rule.program_names)) and not is_version_only:
            return f"{sorted(risky)[0]} runs any code passed to it, so it cannot be allowed by name"
        if rule.tier == "critical":
            return "critical commands always need approval, so they cannot be allowed"
    return ""


def format_pattern(tokens: Sequence[str]) -> str:
    """Format a pattern as TOML."""
    return msgspec.json.encode(list(tokens)).decode()


def parse_pattern(text: str) -> Any:
    """Parse what `format_pattern` wrote, or any other TOML value. Raises `PolicyError`."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError as problem:
        raise PolicyError(f"invalid pattern {text!r}: {problem}") from None
