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

from callwright.agent.policy.dangers import assigned, dangers
from callwright.agent.policy.files import Action, FileRule, decide, may_name, named_in
from callwright.agent.policy.interpreters import interpreted
from callwright.agent.policy.options import Options
from callwright.agent.policy.paths import region, resolve
from callwright.agent.policy.programs import Program, program, under
from callwright.agent.policy.rules import Rule
from callwright.agent.policy.shell import LONGEST_TEXT, Command, Redirection, Script, read
from callwright.agent.policy.values import TIERS, Allowance, Decision, Finding, Tier, stricter, worst
from callwright.agent.policy.words import UNKNOWN, Word
from callwright.agent.policy.wrappers import Fetched, Guess, Item, Nested, Writes, unwrapped

__all__ = ["Judge", "Verdict"]

_MOST_VERDICTS = 2_000
_VISIBLY_DANGEROUS = re.compile(
    r"(?<![\w-])(rm|mkfs\S*|dd|shred|wipefs|fdisk|parted|shutdown|reboot|halt|poweroff|sudo|curl[^|]*\|\s*\w*sh|wget[^|]*\|\s*\w*sh)(?![\w-])"
    r"|/dev/(sd|nvme|hd|disk|tcp)|push\s+(-f|--force)|reset\s+--hard"
)
_NAME = re.compile(r"[\w@%+:,.\[/~-]+", re.ASCII)


class Verdict(NamedTuple):
    """What was found out about one command."""

    argv: tuple[str, ...]
    findings: tuple[Finding, ...]
    allowances: tuple[Allowance, ...]

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
            return max(self.findings, key=lambda found: (TIERS.index(found.tier), found.decision is not None)).why
        return self.allowances[0].why if self.allowances else "no rule is about it"


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
        self._file_rules = file_rules
        self._remembered = remembered
        self._project_code = project_code
        self._workspace = workspace

    def verdicts(self, text: str) -> list[Verdict]:
        """Judge every command in a text."""
        found = [Verdict((), (Finding(tier, why, "ask"),), ()) for tier, why in _looks_wrong(text)]
        if len(text) <= LONGEST_TEXT:
            self._script(read(text), found)
        else:
            tier: Tier = "critical" if _VISIBLY_DANGEROUS.search(text) else "high"
            found.append(Verdict((), (Finding(tier, "it is too long to be looked through", "ask"),), ()))
        if any(trouble for trouble in found if "cannot be read" in trouble.why) and _VISIBLY_DANGEROUS.search(text):
            found.append(Verdict((), (Finding("critical", "it cannot be read, and it holds dangerous words", "ask"),), ()))
        return found

    def commands(self, text: str) -> list[Command]:
        """Every command in a text, wrappers looked through: what a rule's examples are tried on."""
        found: list[Command] = []
        self._script(read(text), [], found)
        return found

    def _script(self, script: Script, found: list[Verdict], commands: list[Command] | None = None) -> None:
        for trouble in script.troubles[:4]:
            found.append(Verdict((), (Finding(trouble.tier, trouble.why, "ask"),), ()))
        for command in script.commands:
            self._command(command, found, commands)

    def _command(self, command: Command, found: list[Verdict], commands: list[Command] | None = None) -> Verdict:
        """Judge one, and what it runs; all verdicts go to `found`, its own is returned too."""
        findings: list[Finding] = []
        allowances: list[Allowance] = []
        nested: list[Verdict] = []
        if commands is not None:
            commands.append(command)
        for item in self._items(command) if len(found) < _MOST_VERDICTS else [Finding("high", "there is too much in it", "ask")]:
            match item:
                case Finding():
                    findings.append(item)
                case Allowance():
                    allowances.append(item)
                case Writes():
                    findings += self._path(item.path, command, "edit")
                case Command():
                    self._command(item, nested, commands)
                case Nested():
                    inner = read(_script_text(item.text), place=command.place, parent=command.body, given=item.given)
                    self._script(inner, nested, commands)
                case Fetched():
                    fetched = self._command(item.command, nested, commands)
                    if not any(allowance.project for allowance in fetched.allowances):
                        findings.append(Finding("medium", f"`{command.name}` may download what it runs"))
                case Guess():
                    guessed: list[Verdict] = []
                    self._command(item.command, guessed)
                    findings += [one for verdict in guessed for one in verdict.findings if one.tier in ("high", "critical")]
        argv = tuple(word.text.replace(UNKNOWN, "…") for word in command.argv)
        verdict = Verdict(argv, tuple(findings), tuple(allowances))
        found.append(verdict)
        found += nested
        return verdict

    def _items(self, command: Command) -> Iterator[Item]:
        for name, value in command.assignments:
            yield from assigned(name, value)
        for redirection in command.redirections:
            yield from self._redirected(redirection, command)
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
        if "/" in first.text:
            yield from self._by_path(command)
        if len(command.argv) == 2 and command.argv[1].text in ("--version", "--help"):
            yield Allowance("it only tells about itself", reads=True)
            return
        facts = program(command.name)
        options = facts.options(command.argv)
        yield from self._ruled(command, options)
        yield from unwrapped(command)
        yield from interpreted(command, self._workspace)
        yield from dangers(command, options, self._workspace)
        yield from self._touched(command, options, facts)

    def _ruled(self, command: Command, options: Options) -> Iterator[Item]:
        argv = tuple(word.text for word in command.argv)
        for rule in (*self._rules.get(command.name, ()), *self._rules.get("*", ())):
            if not rule.matches(command, options):
                continue
            why = rule.why or f"the rule about `{rule.label}`"
            if rule.project:
                if self._project_code:
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
            if self._project_code:
                yield Allowance("it runs a file of the project", project=True)
        elif not re.match(r"/(usr/(local/)?)?s?bin/[^/]+$|/usr/bin/env$|/opt/homebrew/bin/[^/]+$", path or ""):
            yield Finding("high", f"{command.argv[0].bare} is a program outside the workspace", "ask")

    def _redirected(self, redirection: Redirection, command: Command) -> Iterator[Item]:
        target = redirection.target
        if re.match(r"/dev/(tcp|udp)/", target.text):
            yield Finding("critical", f"opens a connection to {target.bare[9:]}", "ask")
        elif redirection.writes:
            yield Writes(target)
        elif redirection.operator == "<":
            yield from self._path(target, command, "read")

    def _touched(self, command: Command, options: Options, facts: Program) -> Iterator[Item]:
        """The files that its words name: those that it changes, and all the others that it may read."""
        operands = list(options.operands)
        match facts.writes:
            case "all":
                changed = operands
            case "last":
                changed = operands[-1:] if len(operands) > 1 else operands
                changed = [*options.value("-t", "--target-directory"), *changed]
            case "rest":
                changed = operands[1:]
            case None:
                changed = []
        for word in changed:
            yield from self._path(word, command, "edit")
        of_subcommand = under(command)
        if facts.plain == "all" or (of_subcommand and of_subcommand[0].plain == "all"):
            return
        read_first = facts.plain != "first" or options.any(("-e", "-f", "--regexp", "--file", "--expression"))
        others = operands if read_first else operands[1:]
        for word in [*others, *(value for _, value in options.values), *map(Word, options.flags)]:
            if not any(word is one for one in changed):
                for part in named_in(word.text):
                    yield from self._path(Word(part, word.glob), command, "read")

    def _path(self, word: Word, command: Command, action: Action) -> Iterator[Finding]:
        path = resolve(word, command.place, self._workspace)
        where = region(path)
        rule = self._file_decision(path, action, glob=word.glob) if path is not None else None
        if rule:
            decision, why = rule
            outside = where not in ("inside", "all") and action == "edit"
            yield Finding("critical" if outside else "high", why, decision)
        if action == "read" or where in ("inside", "all", "harmless"):
            return
        if where in ("device", "system"):
            yield Finding("critical", f"writes to {word.bare}, which belongs to the system", "ask")
        elif where == "unknown":
            yield Finding("medium", "it cannot be seen where it writes", "ask")
        else:
            tier: Tier = "medium" if where == "temporary" else "high"
            yield Finding(tier, f"writes to {word.bare}, which is not in the workspace", "ask")

    def _file_decision(self, path: str, action: Action, *, glob: bool) -> tuple[Decision, str] | None:
        """The strictest word of the lists of file rules, if it is not to allow."""
        look = may_name if glob else decide
        found = [one for rules in self._file_rules if (one := look(rules, path, action)) and one[0] != "allow"]
        if not found:
            return None
        decision = stricter(one[0] for one in found) or "ask"
        rule = next(one[1] for one in found if one[0] == decision)
        does = "changes" if action == "edit" else "reads"
        return decision, rule.why or f"{does} {path}, a protected file ({rule.pattern})"


def _script_text(text: str) -> str:
    """A text that another program runs; what is unknown in it becomes a variable that is unknown."""
    return text.replace(UNKNOWN, "${_}")


def _unknown(command: Command) -> Iterator[Item]:
    flags = "".join(word.bare for word in command.argv[1:] if re.fullmatch(r"-[A-Za-z]+", word.bare))
    if command.body and command.body.downloads:
        yield Finding("critical", "it runs what was downloaded or decoded, which nobody has seen", "ask")
    elif "r" in flags.lower() and "f" in flags:
        yield Finding("critical", "it cannot be seen which program gets flags to delete folders", "ask")
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
            if (kind in ("Cf", "Cc", "Co", "Cn", "Cs", "Zl", "Zp", "Zs") and not joins_emoji) or char in "\u115f\u1160\u3164\uffa0\u2800":
                yield "high", f"it holds an invisible character (U+{ord(char):04X})"
                return
        before = char
