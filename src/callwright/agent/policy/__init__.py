"""Judges commands, files and tool calls: how dangerous they are, and whether they may run.

A `Policy` is immutable. It parses commands as the shell does, judges each command in them and returns the strictest
judgement. It runs nothing, and it accepts any text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from callwright.agent.policy.command_judge import CommandJudge, CommandVerdict
from callwright.agent.policy.file_rules import FileAction, find_file_decision
from callwright.agent.policy.judgement import Decision, Judgement, Tier, find_highest_tier, find_strictest_decision
from callwright.agent.policy.path_regions import classify_path, resolve_path
from callwright.agent.policy.policy_rules import (
    CODE_RUNNERS,
    RuleFile,
    find_table_line,
    format_pattern,
    load_rules,
    parse_pattern,
    parse_rules,
)
from callwright.agent.policy.program_facts import get_program_facts
from callwright.agent.policy.shell_words import ShellWord
from callwright.errors import PolicyError

__all__ = ["Decision", "Judgement", "Policy", "Tier", "load_default_rules", "load_policy"]


class Policy:
    """The default rules together with those of a user and of a project."""

    def __init__(
        self,
        user_rules: RuleFile | None = None,
        project_rules: RuleFile | None = None,
        *,
        workspace: str = "",
        remembered: frozenset[str] = frozenset(),
    ) -> None:
        self._files = (load_default_rules(), user_rules or RuleFile(), project_rules or RuleFile())
        self._workspace = workspace
        self._remembered = remembered
        defaults, user, project = self._files
        self._file_rules = ((*defaults.file, *user.file), project.file)
        code = [rules.project_code for rules in self._files if rules.project_code]
        self.allows_project_code = "ask" not in (code[1:] or code)
        """Whether the project's own code may run without approval."""
        patterns = [parse_pattern(text) for text in sorted(remembered)]
        self._allowed_tools = {
            pattern["tool"] for pattern in patterns if isinstance(pattern, dict) and "tool" in pattern
        }
        self._judge = CommandJudge(
            [rule for rules in self._files for rule in rules.rule],
            self._file_rules,
            remembered=[tuple(map(str, pattern)) for pattern in patterns if isinstance(pattern, list) and pattern],
            project_code=self.allows_project_code,
            workspace=workspace,
        )

    def judge_command(self, text: str) -> Judgement:
        """Judge a command line that is to run in a shell in the workspace."""
        verdicts = self.judge_each_command(text)
        decision = find_strictest_decision(verdict.decision for verdict in verdicts) or "allow"
        tier = find_highest_tier(verdict.tier for verdict in verdicts)
        asking = [verdict for verdict in verdicts if verdict.decision != "allow"]
        return Judgement(
            tier=tier,
            decision=decision,
            why=_explain_decision(verdicts, decision, tier),
            commands=tuple(verdict.argv for verdict in verdicts if verdict.argv),
            is_read_only=all(verdict.is_read_only for verdict in verdicts),
            allow_patterns=_build_allow_patterns(asking),
        )

    def judge_each_command(self, text: str) -> list[CommandVerdict]:
        """Judge each command of a text and return all verdicts."""
        return self._judge.judge_text(text)

    def judge_file(self, path: str, action: Literal["read", "write"]) -> Judgement:
        """Judge whether a file may be read or written. `path` is relative to the workspace."""
        does: FileAction = "edit" if action == "write" else "read"
        resolved = resolve_path(ShellWord(path.replace("\\", "/")), ".", self._workspace) or path
        if classify_path(resolved) not in ("inside", "all"):
            return Judgement(tier="high", decision="ask", why=f"{path} is not in the workspace")
        found = [one for rules in self._file_rules if (one := find_file_decision(rules, resolved, does))]
        decision = find_strictest_decision(one[0] for one in found) or "allow"
        if decision == "allow":
            return Judgement(tier="none", decision="allow", why=f"no rule protects {path}", is_read_only=does == "read")
        rule = next(rule for found_decision, rule in found if found_decision == decision)
        return Judgement(
            tier="high",
            decision=decision,
            why=f"{path} is protected ({rule.pattern}){f': {rule.why}' if rule.why else ''}",
            is_read_only=does == "read",
        )

    def judge_tool(self, name: str, arguments: Mapping[str, Any]) -> Judgement:
        """Judge whether a tool of a plugin or an MCP server may be called."""
        rules = [rule for file in self._files for rule in file.tool if fnmatchcase(name, rule.name)]
        tier = find_highest_tier(rule.tier for rule in rules)
        decision = find_strictest_decision(rule.decision for rule in rules)
        if decision is None:
            allowed = name in self._allowed_tools
            why = f"{name} was allowed earlier" if allowed else f"no rule covers the tool {name}"
            remember = () if allowed else (f"{{ tool = {format_pattern([name])[1:-1]} }}",)
            return Judgement(tier="none", decision="allow" if allowed else "ask", why=why, allow_patterns=remember)
        decision = "ask" if tier == "critical" and decision == "allow" else decision
        rule = next((rule for rule in rules if rule.decision == decision), rules[0])
        return Judgement(tier=tier, decision=decision, why=rule.why or f"matches the tool rule {rule.name}")

    def with_allowances(self, patterns: Sequence[str]) -> Policy:
        """Return the policy with more allowances, as in `Judgement.allow_patterns`. Raises `PolicyError`."""
        _, user, project = self._files
        return Policy(user, project, workspace=self._workspace, remembered=self._remembered | {*patterns})

    def list_rules(self) -> Iterable[tuple[str, RuleFile]]:
        """Return all rules, with the name of their source."""
        return zip(("default", "user", "project"), self._files, strict=True)


@cache
def load_default_rules() -> RuleFile:
    """Load the rules that ship with the package."""
    text = resources.files("callwright.agent.policy").joinpath("rules.toml").read_text(encoding="utf-8")
    return parse_rules(text, "rules.toml")


def load_policy(user_file: Path | None, project_file: Path | None, *, workspace: Path | None = None) -> Policy:
    """Load the policy of a user and a project; a missing file adds no rules. Raises `PolicyError`.

    With `workspace`, absolute paths into the workspace count as inside.
    """
    user = load_rules(user_file) if user_file and user_file.exists() else None
    project = load_rules(project_file, tighten_only=True) if project_file and project_file.exists() else None
    policy = Policy(user, project, workspace=workspace.as_posix() if workspace else "")
    for path, rules in ((user_file, user), (project_file, project)):
        if path and rules:
            _check_examples(rules, path, policy._judge)
    return policy


def _check_examples(rules: RuleFile, path: Path, judge: CommandJudge) -> None:
    for number, rule in enumerate(rules.rule):
        for examples, expected in ((rule.match, True), (rule.not_match, False)):
            for example in examples:
                matched = any(
                    command.argv and rule.matches(command, get_program_facts(command.name).parse_argv(command.argv))
                    for command in judge.list_commands(example)
                )
                if matched != expected:
                    line = find_table_line(path.read_text(encoding="utf-8"), "rule", number)
                    does = "does not match" if expected else "matches"
                    raise PolicyError(
                        f"{path}, line {line}: the rule for `{rule.label}` {does} its example {example!r}"
                    )


def _explain_decision(verdicts: Sequence[CommandVerdict], decision: Decision, tier: Tier) -> str:
    if not verdicts:
        return "The command is empty."
    deciding = [verdict for verdict in verdicts if verdict.decision == decision]
    worst_of_them = [verdict for verdict in deciding if verdict.tier == tier] or deciding
    verdict = worst_of_them[0]
    if not verdict.argv:
        return verdict.why[:1].upper() + verdict.why[1:] + "."
    command = " ".join(verdict.argv)
    return f"`{command if len(command) <= 80 else f'{command[:79]}…'}`: {verdict.why}."


def _build_allow_patterns(verdicts: Sequence[CommandVerdict]) -> tuple[str, ...]:
    """Return the patterns that would allow everything, or nothing if no pattern can."""
    patterns: list[str] = []
    for verdict in verdicts:
        name = verdict.argv[0].rpartition("/")[2] if verdict.argv else ""
        if (
            not verdict.can_be_allowed
            or name in CODE_RUNNERS
            or any("…" in word or "*" in word for word in verdict.argv)
        ):
            return ()
        length = len(verdict.argv)
        if (
            verdict.tier in ("none", "medium")
            and length > 2
            and name in _SUBCOMMAND_PROGRAMS
            and verdict.argv[1].isalpha()
        ):
            length = 2
        patterns.append(format_pattern(verdict.argv[:length]))
    return tuple(dict.fromkeys(patterns))


# fmt: off
_SUBCOMMAND_PROGRAMS = frozenset((
    "git", "npm", "pnpm", "yarn", "bun", "cargo", "go", "pip", "pip3", "uv", "poetry", "docker", "podman", "brew",
    "apt", "apt-get", "gem", "bundle", "composer", "dotnet",
))
# fmt: on
