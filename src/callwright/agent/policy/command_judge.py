"""Judges a command line: each command in it on its own, and the strictest decision for all.

For each command all findings of the rules and checks are collected, in no particular order. The highest tier among them
is its tier. If rules made decisions, the strictest one applies; otherwise the command is allowed if an allowance covers
its tier, and needs approval if none does.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from callwright.agent.policy.command_options import CommandOptions
from callwright.agent.policy.danger_checks import check_assignment, check_dangers
from callwright.agent.policy.downloads import find_downloaded_program
from callwright.agent.policy.file_access import FileAccessChecker
from callwright.agent.policy.file_rules import FileRule
from callwright.agent.policy.interpreters import inspect_interpreter
from callwright.agent.policy.judgement import (
    TIERS,
    Allowance,
    Decision,
    PolicyFinding,
    Tier,
    find_highest_tier,
    find_strictest_decision,
)
from callwright.agent.policy.lookalikes import replace_lookalikes
from callwright.agent.policy.path_regions import classify_path, resolve_path
from callwright.agent.policy.policy_rules import CommandRule
from callwright.agent.policy.program_facts import ProgramFacts, get_program_facts
from callwright.agent.policy.shell_command import ScriptContext, ShellCommand
from callwright.agent.policy.shell_script import DANGEROUS_TEXT, MAX_TEXT_LENGTH, ShellScript, parse_script
from callwright.agent.policy.shell_words import UNKNOWN, ShellWord
from callwright.agent.policy.wrappers import (
    DownloadedCommand,
    FileRead,
    FileWrite,
    InspectionItem,
    NestedScript,
    PossibleCommand,
    unwrap_command,
)

__all__ = ["CommandJudge", "CommandVerdict"]

_MAX_COMMANDS = 2_000
_MAX_DEPTH = 24
_PROGRAM_NAME = re.compile(r"[\w@%+:,.\[/~-]+", re.ASCII)


class CommandVerdict(NamedTuple):
    """The findings and allowances for one command."""

    argv: tuple[str, ...]
    findings: tuple[PolicyFinding, ...]
    allowances: tuple[Allowance, ...]
    changes_files: bool = False
    """Whether it changes files."""

    @property
    def is_read_only(self) -> bool:
        """Whether it is known to change nothing."""
        return any(one.is_read_only for one in self.allowances) and not self.findings and not self.changes_files

    @property
    def tier(self) -> Tier:
        """How dangerous it is."""
        return find_highest_tier(finding.tier for finding in self.findings)

    @property
    def decision(self) -> Decision:
        """Whether it is allowed, needs approval or is denied."""
        decided = find_strictest_decision(finding.decision for finding in self.findings if finding.decision)
        if decided and decided != "allow":
            return decided
        covered = any(TIERS.index(self.tier) <= TIERS.index(allowance.max_tier) for allowance in self.allowances)
        return "allow" if covered and self.tier != "critical" else "ask"

    @property
    def can_be_allowed(self) -> bool:
        """Whether it needs approval only because nothing allows it."""
        has_decision = any(finding.decision for finding in self.findings)
        return self.decision == "ask" and not has_decision and self.tier != "critical"

    @property
    def why(self) -> str:
        """The reason for its decision and tier: the most severe finding, or what allows it."""
        if self.findings:
            deciding = [found for found in self.findings if found.decision == self.decision == "deny"] or self.findings
            return max(deciding, key=lambda found: TIERS.index(found.tier)).why
        return self.allowances[0].why if self.allowances else "no rule covers it"


class _WorkBudget:
    """Limits the work for one text: wrappers inside wrappers must end at some depth."""

    def __init__(self) -> None:
        self.commands: list[ShellCommand] = []
        self.depth = 0

    @property
    def has_capacity(self) -> bool:
        return self.depth <= _MAX_DEPTH and len(self.commands) <= _MAX_COMMANDS


class CommandJudge:
    """Applies rules to commands. It holds no state between two commands."""

    def __init__(
        self,
        rules: Sequence[CommandRule],
        file_rules: Sequence[Sequence[FileRule]],
        *,
        remembered: Sequence[tuple[str, ...]] = (),
        project_code: bool = True,
        workspace: str = "",
    ) -> None:
        self._rules: dict[str, list[CommandRule]] = {}
        for rule in rules:
            for name in rule.program_names:
                self._rules.setdefault(name, []).append(rule)
        self._file_access = FileAccessChecker(file_rules, workspace)
        self._remembered = remembered
        self._project_code = project_code
        self._workspace = workspace

    def judge_text(self, text: str) -> list[CommandVerdict]:
        """Judge every command in a text."""
        found = [
            CommandVerdict((), (PolicyFinding(tier, why, "ask"),), ()) for tier, why in _find_deceptive_characters(text)
        ]
        if len(text) <= MAX_TEXT_LENGTH:
            work = _WorkBudget()
            self._judge_script(parse_script(text), found, work)
            if name := find_downloaded_program(work.commands):
                why = f"it runs {name}, which it has just downloaded and which nobody has reviewed"
                found.append(CommandVerdict((), (PolicyFinding("critical", why, "ask"),), ()))
        else:
            tier: Tier = "critical" if DANGEROUS_TEXT.search(text) else "high"
            found.append(CommandVerdict((), (PolicyFinding(tier, "it is too long to be checked", "ask"),), ()))
        return found

    def list_commands(self, text: str) -> list[ShellCommand]:
        """List every command in a text, including those that wrappers run; used to try a rule's examples."""
        work = _WorkBudget()
        self._judge_script(parse_script(text), [], work)
        return work.commands

    def _judge_script(self, script: ShellScript, found: list[CommandVerdict], work: _WorkBudget) -> None:
        for problem in script.problems[:4]:
            found.append(CommandVerdict((), (PolicyFinding(problem.tier, problem.why, "ask"),), ()))
        for command in script.commands:
            self._judge_command(command, found, work)

    def _judge_command(self, command: ShellCommand, found: list[CommandVerdict], work: _WorkBudget) -> CommandVerdict:
        """Judge one command and what it runs. All verdicts are added to `found`; its own is also returned."""
        findings: list[PolicyFinding] = []
        allowances: list[Allowance] = []
        nested: list[CommandVerdict] = []
        writes = any(one.can_write and classify_path(one.target.text) != "harmless" for one in command.redirections)
        work.commands.append(command)
        work.depth += 1
        for item in self._inspect_command(command) if work.has_capacity else _report_too_complex(command):
            match item:
                case PolicyFinding():
                    findings.append(item)
                case Allowance():
                    allowances += [item] if self._project_code or not item.runs_project_code else []
                case FileWrite():
                    writes = True
                    findings += self._file_access.check_write(item.path, command)
                case FileRead():
                    findings += self._file_access.check_named_paths(ShellWord(item.text), command)
                case ShellCommand():
                    self._judge_command(item, nested, work)
                case NestedScript():
                    inner = parse_script(
                        item.text.replace(UNKNOWN, "${_}"),
                        ScriptContext(
                            command.folder,
                            command.script,
                            item.parameters,
                            command.stdin if item.inherits_stdin else None,
                        ),
                    )
                    self._judge_script(inner, nested, work)
                case DownloadedCommand():
                    fetched = self._judge_command(item.command, nested, work)
                    if not any(allowance.runs_project_code for allowance in fetched.allowances):
                        findings.append(PolicyFinding("medium", f"`{command.name}` may download what it runs"))
                case PossibleCommand():
                    guessed: list[CommandVerdict] = []
                    self._judge_command(item.command, guessed, work)
                    findings += [
                        one for verdict in guessed for one in verdict.findings if one.tier in ("high", "critical")
                    ]
        work.depth -= 1
        argv = tuple(word.text.replace(UNKNOWN, "…") for word in command.argv)
        verdict = CommandVerdict(argv, tuple(findings), tuple(allowances), writes)
        found.append(verdict)
        found += nested
        return verdict

    def _inspect_command(self, command: ShellCommand) -> Iterator[InspectionItem]:
        for name, value in command.assignments:
            yield from check_assignment(name, value)
        for redirection in command.redirections:
            yield from self._file_access.check_redirection(redirection, command)
        if not command.argv:
            yield Allowance("it only sets variables or opens files")
            return
        first = command.argv[0]
        if not first.is_known or first.has_glob:
            yield from _report_unknown_program(command)
        if not command.name:
            return
        if not _PROGRAM_NAME.fullmatch(first.known_text):
            yield PolicyFinding("high", "the program's name has unusual characters", "ask")
            if (plain := replace_lookalikes(first.known_text)) != first.known_text:
                yield NestedScript(" ".join([plain, *(word.known_text for word in command.argv[1:])]))
        if "/" in first.text:
            yield from self._check_program_path(command)
        if self._is_info_request([word.text for word in command.argv]):
            yield Allowance("it only prints its version or help", is_read_only=True)
            return
        facts = get_program_facts(command.name)
        options = facts.parse_argv(command.argv)
        if command.name not in self._rules and facts == ProgramFacts():
            yield from _guess_wrapped_commands(command)
        yield from self._apply_rules(command, options)
        yield from unwrap_command(command)
        yield from inspect_interpreter(command, self._workspace)
        yield from check_dangers(command, options, self._workspace)
        yield from self._file_access.check_operands(command, options, facts)

    def _is_info_request(self, argv: Sequence[str]) -> bool:
        """Return whether it is `X --version`, `X --help`, or `X subcommand --help` for a program with subcommands."""
        if len(argv) == 3:
            subcommands = any(len(rule.pattern) > 1 for rule in self._rules.get(argv[0], ()))
            return subcommands and argv[1].isalpha() and argv[2] == "--help"
        return len(argv) == 2 and argv[1] in ("--version", "--help")

    def _apply_rules(self, command: ShellCommand, options: CommandOptions) -> Iterator[InspectionItem]:
        argv = tuple(word.text for word in command.argv)
        for rule in (*self._rules.get(command.name, ()), *self._rules.get("*", ())):
            if not rule.matches(command, options):
                continue
            why = rule.why or f"matches the rule for `{rule.label}`"
            if rule.runs_project_code:
                yield Allowance(
                    rule.why or "it runs the project's own code", rule.tier or "none", runs_project_code=True
                )
            elif rule.decision == "allow":
                yield Allowance(why, rule.tier or "high", rule.read_only)
            else:
                yield PolicyFinding(rule.tier or "none", why, rule.decision)
        for prefix in self._remembered:
            if argv[: len(prefix)] == prefix:
                yield Allowance("it was allowed earlier", "high" if argv == prefix else "medium")

    def _check_program_path(self, command: ShellCommand) -> Iterator[InspectionItem]:
        """Check a program named by its path: in a system folder, in the project, or elsewhere."""
        path = resolve_path(command.argv[0], command.folder, self._workspace)
        if classify_path(path) == "inside":
            yield Allowance("it runs a file of the project", runs_project_code=True)
        elif not re.match(r"/(usr/(local/)?)?s?bin/[^/]+$|/usr/bin/env$|/opt/homebrew/bin/[^/]+$", path or ""):
            yield PolicyFinding("high", f"{command.argv[0].known_text} is a program outside the workspace", "ask")


def _report_too_complex(command: ShellCommand) -> Iterator[InspectionItem]:
    dangerous = DANGEROUS_TEXT.search(" ".join(word.known_text for word in command.argv))
    yield PolicyFinding("critical" if dangerous else "high", "it is too complex to be checked", "ask")


def _guess_wrapped_commands(command: ShellCommand) -> Iterator[InspectionItem]:
    """Yield the commands that a program without known facts may run from its arguments."""
    for at, word in enumerate(command.argv[1:8], 1):
        if DANGEROUS_TEXT.fullmatch(word.known_text.rpartition("/")[2]):
            yield PossibleCommand(command.with_argv(command.argv[at:]))


def _report_unknown_program(command: ShellCommand) -> Iterator[InspectionItem]:
    flags = "".join(word.known_text for word in command.argv[1:] if re.fullmatch(r"-[A-Za-z]+", word.known_text))
    if command.script and command.script.has_downloads:
        yield PolicyFinding("critical", "it runs downloaded or decoded code that nobody has reviewed", "ask")
    elif ("r" in flags.lower() and "f" in flags) or (
        command.script and DANGEROUS_TEXT.search(command.script.outermost_text)
    ):
        yield PolicyFinding("critical", "the program that it runs cannot be determined and may be destructive", "ask")
    else:
        yield PolicyFinding("high", "the program that it runs cannot be determined", "ask")


def _find_deceptive_characters(text: str) -> Iterator[tuple[Tier, str]]:
    """Find characters that make a text look like another one."""
    before = ""
    for char in text:
        if char < " " and char not in "\n\t":
            yield "high", f"it contains a control character ({ord(char):#04x})"
            return
        if char > "~":
            kind = unicodedata.category(char)
            joins_emoji = char == "\u200d" and before > "\u2000"
            if (
                kind in ("Cf", "Cc", "Co", "Cn", "Cs", "Zl", "Zp", "Zs") and not joins_emoji
            ) or char in "\u115f\u1160\u3164\uffa0\u2800":
                yield "high", f"it contains an invisible character (U+{ord(char):04X})"
                return
        before = char
