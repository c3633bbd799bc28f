"""What a command or a file may do: tiers of danger, and decisions by rules.

A `Policy` is immutable. It reads commands as the shell would, judges every command in them and answers with the
strictest judgement. It never runs anything, and any text gets an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from callwright.agent.policy.files import Action, decide
from callwright.agent.policy.judge import Judge, Verdict
from callwright.agent.policy.paths import region, resolve
from callwright.agent.policy.programs import program
from callwright.agent.policy.rules import (
    NEVER_BY_PREFIX,
    RuleFile,
    from_toml,
    line_of,
    load_rules,
    parse_rules,
    to_toml,
)
from callwright.agent.policy.values import Decision, Judgement, Tier, stricter, worst
from callwright.agent.policy.words import Word
from callwright.errors import PolicyError

__all__ = ["Decision", "Judgement", "Policy", "Tier", "default_rules", "load_policy"]


class Policy:
    """Rules of everybody, of a person and of a project."""

    def __init__(
        self,
        mine: RuleFile | None = None,
        project: RuleFile | None = None,
        *,
        workspace: str = "",
        remembered: frozenset[str] = frozenset(),
    ) -> None:
        self._files = (default_rules(), mine or RuleFile(), project or RuleFile())
        self._workspace = workspace
        self._remembered = remembered
        defaults, own, theirs = self._files
        self._file_rules = ((*defaults.file, *own.file), theirs.file)
        code = [said.project_code for said in self._files if said.project_code]
        self.project_code = "ask" not in (code[1:] or code)
        """The project's own code may be run without a question."""
        patterns = [from_toml(text) for text in sorted(remembered)]
        self._tools = {pattern["tool"] for pattern in patterns if isinstance(pattern, dict) and "tool" in pattern}
        self._judge = Judge(
            [rule for said in self._files for rule in said.rule],
            self._file_rules,
            remembered=[tuple(map(str, pattern)) for pattern in patterns if isinstance(pattern, list) and pattern],
            project_code=self.project_code,
            workspace=workspace,
        )

    def command(self, text: str) -> Judgement:
        """May this run in a shell, in the workspace?"""
        verdicts = self.verdicts(text)
        decision = stricter(verdict.decision for verdict in verdicts) or "allow"
        tier = worst(verdict.tier for verdict in verdicts)
        asking = [verdict for verdict in verdicts if verdict.decision != "allow"]
        return Judgement(
            tier=tier,
            decision=decision,
            why=_why(verdicts, decision, tier),
            commands=tuple(verdict.argv for verdict in verdicts if verdict.argv),
            reads_only=all(verdict.reads_only for verdict in verdicts),
            remember=_remember(asking),
        )

    def verdicts(self, text: str) -> list[Verdict]:
        """What was found out about each command in a text."""
        return self._judge.verdicts(text)

    def file(self, path: str, action: Literal["read", "write"]) -> Judgement:
        """May this file be read, or written? `path` is relative to the workspace."""
        does: Action = "edit" if action == "write" else "read"
        resolved = resolve(Word(path.replace("\\", "/")), ".", self._workspace) or path
        if region(resolved) not in ("inside", "all"):
            return Judgement(tier="high", decision="ask", why=f"{path} is not in the workspace")
        found = [one for rules in self._file_rules if (one := decide(rules, resolved, does))]
        decision = stricter(one[0] for one in found) or "allow"
        if decision == "allow":
            return Judgement(tier="none", decision="allow", why=f"no rule protects {path}", reads_only=does == "read")
        rule = next(rule for said, rule in found if said == decision)
        return Judgement(
            tier="high",
            decision=decision,
            why=f"{path} is protected ({rule.pattern}){f': {rule.why}' if rule.why else ''}",
            reads_only=does == "read",
        )

    def tool(self, name: str, arguments: Mapping[str, Any]) -> Judgement:
        """May this tool of a plugin or an MCP server be called?"""
        rules = [rule for said in self._files for rule in said.tool if fnmatchcase(name, rule.name)]
        tier = worst(rule.tier for rule in rules)
        decision = stricter(rule.decision for rule in rules)
        if decision is None:
            allowed = name in self._tools
            why = f"you allowed {name} before" if allowed else f"no rule is about the tool {name}"
            remember = () if allowed else (f"{{ tool = {to_toml([name])[1:-1]} }}",)
            return Judgement(tier="none", decision="allow" if allowed else "ask", why=why, remember=remember)
        decision = "ask" if tier == "critical" and decision == "allow" else decision
        rule = next((rule for rule in rules if rule.decision == decision), rules[0])
        return Judgement(tier=tier, decision=decision, why=rule.why or f"the rule about the tools {rule.name}")

    def allowing(self, patterns: Sequence[str]) -> Policy:
        """The same with remembered allowances: what a `Judgement.remember` said. Raises `PolicyError`."""
        _, mine, project = self._files
        return Policy(mine, project, workspace=self._workspace, remembered=self._remembered | {*patterns})

    def rules(self) -> Iterable[tuple[str, RuleFile]]:
        """All rules, by whose they are."""
        return zip(("everybody's", "yours", "the project's"), self._files, strict=True)


@cache
def default_rules() -> RuleFile:
    """The rules that hold for everybody."""
    text = resources.files("callwright.agent.policy").joinpath("rules.toml").read_text(encoding="utf-8")
    return parse_rules(text, "rules.toml")


def load_policy(mine: Path | None, project: Path | None, *, workspace: Path | None = None) -> Policy:
    """The policy of a person and a project; a file that there is not says nothing. Raises `PolicyError`.

    With `workspace`, absolute paths into it are known to be inside.
    """
    own = load_rules(mine) if mine and mine.exists() else None
    theirs = load_rules(project, tightens=True) if project and project.exists() else None
    policy = Policy(own, theirs, workspace=workspace.as_posix() if workspace else "")
    for path, said in ((mine, own), (project, theirs)):
        if path and said:
            _check_examples(said, path, policy._judge)
    return policy


def _check_examples(said: RuleFile, path: Path, judge: Judge) -> None:
    for number, rule in enumerate(said.rule):
        for examples, wanted in ((rule.match, True), (rule.not_match, False)):
            for example in examples:
                matched = any(
                    command.argv and rule.matches(command, program(command.name).options(command.argv))
                    for command in judge.commands(example)
                )
                if matched != wanted:
                    line = line_of(path.read_text(encoding="utf-8"), "rule", number)
                    does = "does not match" if wanted else "matches"
                    raise PolicyError(
                        f"{path}, line {line}: the rule about `{rule.label}` {does} its example {example!r}"
                    )


def _why(verdicts: Sequence[Verdict], decision: Decision, tier: Tier) -> str:
    if not verdicts:
        return "There is nothing to run."
    deciding = [verdict for verdict in verdicts if verdict.decision == decision]
    worst_of_them = [verdict for verdict in deciding if verdict.tier == tier] or deciding
    verdict = worst_of_them[0]
    if not verdict.argv:
        return verdict.why[:1].upper() + verdict.why[1:] + "."
    shown = " ".join(verdict.argv)
    return f"`{shown if len(shown) <= 80 else f'{shown[:79]}…'}`: {verdict.why}."


def _remember(asking: Sequence[Verdict]) -> tuple[str, ...]:
    """What would make all of it allowed, or nothing if that cannot be."""
    patterns: list[str] = []
    for verdict in asking:
        name = verdict.argv[0].rpartition("/")[2] if verdict.argv else ""
        if (
            not verdict.can_be_allowed
            or name in NEVER_BY_PREFIX
            or any("…" in word or "*" in word for word in verdict.argv)
        ):
            return ()
        length = len(verdict.argv)
        if (
            verdict.tier in ("none", "medium")
            and length > 2
            and name in _HAVE_SUBCOMMANDS
            and verdict.argv[1].isalpha()
        ):
            length = 2
        patterns.append(to_toml(verdict.argv[:length]))
    return tuple(dict.fromkeys(patterns))


# fmt: off
_HAVE_SUBCOMMANDS = frozenset((
    "git", "npm", "pnpm", "yarn", "bun", "cargo", "go", "pip", "pip3", "uv", "poetry", "docker", "podman", "brew",
    "apt", "apt-get", "gem", "bundle", "composer", "dotnet",
))
# fmt: on
