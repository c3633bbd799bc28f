"""How a command is judged: every command in it on its own, and the strictest answer for all.

For each command the findings of all rules and looks are gathered, in no order. Their worst tier is its tier. A
decision that a rule made is kept, the strictest if there are several; without one it is allowed if an allowance
covers its tier, and asks otherwise.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from callwright.agent.policy.command import Around, Command
from callwright.agent.policy.dangers import assigned, dangers
from callwright.agent.policy.downloads import runs_a_download
from callwright.agent.policy.files import FileRule
from callwright.agent.policy.interpreters import interpreted
from callwright.agent.policy.lookalikes import unmasked
from callwright.agent.policy.options import Options
from callwright.agent.policy.paths import region, resolve
from callwright.agent.policy.programs import Program, program
from callwright.agent.policy.rules import Rule
from callwright.agent.policy.shell import LONGEST_TEXT, VISIBLY_DANGEROUS, Script, read
from callwright.agent.policy.touching import Files
from callwright.agent.policy.values import TIERS, Allowance, Decision, Finding, Tier, stricter, worst
from callwright.agent.policy.words import UNKNOWN, Word
from callwright.agent.policy.wrappers import Fetched, Guess, Item, Nested, Reads, Writes, unwrapped

__all__ = ["Judge", "Verdict"]

_MOST_COMMANDS = 2_000
_DEEPEST = 24
_NAME = re.compile(r"[\w@%+:,.\[/~-]+", re.ASCII)


class Verdict(NamedTuple):
    """What was found out about one command."""

    argv: tuple[str, ...]
    findings: tuple[Finding, ...]
    allowances: tuple[Allowance, ...]
    writes: bool = False
    """It changes files."""

    @property
    def reads_only(self) -> bool:
        """It is known to change nothing."""
        return any(one.reads for one in self.allowances) and not self.findings and not self.writes

    @property
    def tier(self) -> Tier:
        """How dangerous it is."""
        return worst(finding.tier for finding in self.findings)

    @property
    def decision(self) -> Decision:
        """What becomes of it."""
        made = stricter(finding.decision for finding in self.findings if finding.decision)
        if made and made != "allow":
            return made
        covered = any(TIERS.index(self.tier) <= TIERS.index(allowance.most) for allowance in self.allowances)
        return "allow" if covered and self.tier != "critical" else "ask"

    @property
    def can_be_allowed(self) -> bool:
        """It asks only because nothing allows it."""
        made = any(finding.decision for finding in self.findings)
        return self.decision == "ask" and not made and self.tier != "critical"

    @property
    def why(self) -> str:
        """The reason for its decision and tier: the gravest finding, or what allows it."""
        if self.findings:
            deciding = [found for found in self.findings if found.decision == self.decision == "deny"] or self.findings
            return max(deciding, key=lambda found: TIERS.index(found.tier)).why
        return self.allowances[0].why if self.allowances else "no rule is about it"


class _Work:
    """What was done for one text, and whether more may be done: wrappers within wrappers must come to an end."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.depth = 0

    @property
    def has_room(self) -> bool:
        return self.depth <= _DEEPEST and len(self.commands) <= _MOST_COMMANDS


class Judge:
    """Rules, ready to be asked. It keeps nothing between two commands."""

    def __init__(
        self,
        rules: Sequence[Rule],
        file_rules: Sequence[Sequence[FileRule]],
        *,
        remembered: Sequence[tuple[str, ...]] = (),
        project_code: bool = True,
        workspace: str = "",
    ) -> None:
        self._rules: dict[str, list[Rule]] = {}
        for rule in rules:
            for name in rule.programs:
                self._rules.setdefault(name, []).append(rule)
        self._files = Files(file_rules, workspace)
        self._remembered = remembered
        self._project_code = project_code
        self._workspace = workspace

    def verdicts(self, text: str) -> list[Verdict]:
        """Judge every command in a text."""
        found = [Verdict((), (Finding(tier, why, "ask"),), ()) for tier, why in _looks_wrong(text)]
        if len(text) <= LONGEST_TEXT:
            work = _Work()
            self._script(read(text), found, work)
            if name := runs_a_download(work.commands):
                why = f"it runs {name}, which it has just downloaded and nobody has seen"
                found.append(Verdict((), (Finding("critical", why, "ask"),), ()))
        else:
            tier: Tier = "critical" if VISIBLY_DANGEROUS.search(text) else "high"
            found.append(Verdict((), (Finding(tier, "it is too long to be looked through", "ask"),), ()))
        return found

    def commands(self, text: str) -> list[Command]:
        """Every command in a text, wrappers looked through: what a rule's examples are tried on."""
        work = _Work()
        self._script(read(text), [], work)
        return work.commands

    def _script(self, script: Script, found: list[Verdict], work: _Work) -> None:
        for trouble in script.troubles[:4]:
            found.append(Verdict((), (Finding(trouble.tier, trouble.why, "ask"),), ()))
        for command in script.commands:
            self._command(command, found, work)

    def _command(self, command: Command, found: list[Verdict], work: _Work) -> Verdict:
        """Judge one, and what it runs; all verdicts go to `found`, its own is returned too."""
        findings: list[Finding] = []
        allowances: list[Allowance] = []
        nested: list[Verdict] = []
        writes = any(one.writes and region(one.target.text) != "harmless" for one in command.redirections)
        work.commands.append(command)
        work.depth += 1
        for item in self._items(command) if work.has_room else _too_much(command):
            match item:
                case Finding():
                    findings.append(item)
                case Allowance():
                    allowances += [item] if self._project_code or not item.project else []
                case Writes():
                    writes = True
                    findings += self._files.changed(item.path, command)
                case Reads():
                    findings += self._files.named(Word(item.text), command)
                case Command():
                    self._command(item, nested, work)
                case Nested():
                    inner = read(
                        item.text.replace(UNKNOWN, "${_}"),
                        Around(command.place, command.body, item.given, command.stdin if item.keeps_input else None),
                    )
                    self._script(inner, nested, work)
                case Fetched():
                    fetched = self._command(item.command, nested, work)
                    if not any(allowance.project for allowance in fetched.allowances):
                        findings.append(Finding("medium", f"`{command.name}` may download what it runs"))
                case Guess():
                    guessed: list[Verdict] = []
                    self._command(item.command, guessed, work)
                    findings += [
                        one for verdict in guessed for one in verdict.findings if one.tier in ("high", "critical")
                    ]
        work.depth -= 1
        argv = tuple(word.text.replace(UNKNOWN, "…") for word in command.argv)
        verdict = Verdict(argv, tuple(findings), tuple(allowances), writes)
        found.append(verdict)
        found += nested
        return verdict

    def _items(self, command: Command) -> Iterator[Item]:
        for name, value in command.assignments:
            yield from assigned(name, value)
        for redirection in command.redirections:
            yield from self._files.redirected(redirection, command)
        if not command.argv:
            yield Allowance("it only sets variables or opens files")
            return
        first = command.argv[0]
        if not first.known or first.glob:
            yield from _unknown(command)
        if not command.name:
            return
        if not _NAME.fullmatch(first.bare):
            yield Finding("high", "the name of the program is written with unusual characters", "ask")
            if (plain := unmasked(first.bare)) != first.bare:
                yield Nested(" ".join([plain, *(word.bare for word in command.argv[1:])]))
        if "/" in first.text:
            yield from self._by_path(command)
        if self._only_tells([word.text for word in command.argv]):
            yield Allowance("it only tells about itself", reads=True)
            return
        facts = program(command.name)
        options = facts.options(command.argv)
        if command.name not in self._rules and facts == Program():
            yield from _looks_like_a_wrapper(command)
        yield from self._ruled(command, options)
        yield from unwrapped(command)
        yield from interpreted(command, self._workspace)
        yield from dangers(command, options, self._workspace)
        yield from self._files.touched(command, options, facts)

    def _only_tells(self, argv: Sequence[str]) -> bool:
        """`X --version`, `X --help`, and `X subcommand --help` where there are subcommands."""
        if len(argv) == 3:
            subcommands = any(len(rule.pattern) > 1 for rule in self._rules.get(argv[0], ()))
            return subcommands and argv[1].isalpha() and argv[2] == "--help"
        return len(argv) == 2 and argv[1] in ("--version", "--help")

    def _ruled(self, command: Command, options: Options) -> Iterator[Item]:
        argv = tuple(word.text for word in command.argv)
        for rule in (*self._rules.get(command.name, ()), *self._rules.get("*", ())):
            if not rule.matches(command, options):
                continue
            why = rule.why or f"the rule about `{rule.label}`"
            if rule.project:
                yield Allowance(rule.why or "it runs the project's own code", rule.tier or "none", project=True)
            elif rule.decision == "allow":
                yield Allowance(why, rule.tier or "high", rule.reads)
            else:
                yield Finding(rule.tier or "none", why, rule.decision)
        for prefix in self._remembered:
            if argv[: len(prefix)] == prefix:
                yield Allowance("you allowed it before", "high" if argv == prefix else "medium")

    def _by_path(self, command: Command) -> Iterator[Item]:
        """A program that is named by its path: one of the system's folders, the project's own, or any other."""
        path = resolve(command.argv[0], command.place, self._workspace)
        if region(path) == "inside":
            yield Allowance("it runs a file of the project", project=True)
        elif not re.match(r"/(usr/(local/)?)?s?bin/[^/]+$|/usr/bin/env$|/opt/homebrew/bin/[^/]+$", path or ""):
            yield Finding("high", f"{command.argv[0].bare} is a program outside the workspace", "ask")


def _too_much(command: Command) -> Iterator[Item]:
    dangerous = VISIBLY_DANGEROUS.search(" ".join(word.bare for word in command.argv))
    yield Finding("critical" if dangerous else "high", "there is too much in it to be looked through", "ask")


def _looks_like_a_wrapper(command: Command) -> Iterator[Item]:
    """A program that nothing is known about may run what it is given."""
    for at, word in enumerate(command.argv[1:8], 1):
        if VISIBLY_DANGEROUS.fullmatch(word.bare.rpartition("/")[2]):
            yield Guess(command.running(command.argv[at:]))


def _unknown(command: Command) -> Iterator[Item]:
    flags = "".join(word.bare for word in command.argv[1:] if re.fullmatch(r"-[A-Za-z]+", word.bare))
    if command.body and command.body.downloads:
        yield Finding("critical", "it runs what was downloaded or decoded, which nobody has seen", "ask")
    elif ("r" in flags.lower() and "f" in flags) or (
        command.body and VISIBLY_DANGEROUS.search(command.body.whole_text)
    ):
        yield Finding("critical", "it cannot be seen which program it runs, and it may be one that destroys", "ask")
    else:
        yield Finding("high", "it cannot be seen which program it runs", "ask")


def _looks_wrong(text: str) -> Iterator[tuple[Tier, str]]:
    """Characters that make a text look like another one."""
    before = ""
    for char in text:
        if char < " " and char not in "\n\t":
            yield "high", f"it holds a control character ({ord(char):#04x})"
            return
        if char > "~":
            kind = unicodedata.category(char)
            joins_emoji = char == "\u200d" and before > "\u2000"
            if (
                kind in ("Cf", "Cc", "Co", "Cn", "Cs", "Zl", "Zp", "Zs") and not joins_emoji
            ) or char in "\u115f\u1160\u3164\uffa0\u2800":
                yield "high", f"it holds an invisible character (U+{ord(char):04X})"
                return
        before = char
