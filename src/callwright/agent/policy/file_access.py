"""Finds the files that a command reads or writes, and applies the file rules to them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from callwright.agent.policy.command_options import CommandOptions
from callwright.agent.policy.file_rules import (
    FileAction,
    FileRule,
    extract_paths,
    find_file_decision,
    find_glob_decision,
)
from callwright.agent.policy.judgement import Decision, PolicyFinding, Tier, find_strictest_decision
from callwright.agent.policy.path_regions import classify_path, resolve_path
from callwright.agent.policy.program_facts import ProgramFacts, find_subcommand
from callwright.agent.policy.shell_command import Redirection, ShellCommand
from callwright.agent.policy.shell_words import ShellWord

__all__ = ["FileAccessChecker"]


class FileAccessChecker:
    """Applies lists of file rules. In each list the last match counts; across lists, the strictest decision."""

    def __init__(self, rules: Sequence[Sequence[FileRule]], workspace: str) -> None:
        self._rules = rules
        self._workspace = workspace

    def check_write(self, word: ShellWord, command: ShellCommand) -> Iterator[PolicyFinding]:
        """Check a file that is written."""
        return self._check_path(word, command, "edit")

    def check_named_paths(self, word: ShellWord, command: ShellCommand) -> Iterator[PolicyFinding]:
        """Check a word that may name files that are read."""
        for part in extract_paths(word.text):
            yield from self._check_path(ShellWord(part, word.has_glob), command, "read")

    def check_redirection(self, redirection: Redirection, command: ShellCommand) -> Iterator[PolicyFinding]:
        """Check a file that the shell reads or writes for the command."""
        target = redirection.target
        if re.match(r"/dev/(tcp|udp)/", target.text):
            yield PolicyFinding("critical", f"opens a connection to {target.known_text[9:]}", "ask")
        elif redirection.can_write:
            yield from self._check_path(target, command, "edit")
        elif redirection.operator == "<":
            yield from self._check_path(target, command, "read")

    def check_operands(
        self, command: ShellCommand, options: CommandOptions, facts: ProgramFacts
    ) -> Iterator[PolicyFinding]:
        """Check the files that the command's words name: those that it changes, and all others that it may read."""
        operands = list(options.operands)
        by_kind = {"all": operands, "last": operands[-1:], "rest": operands[1:]}
        changed = [*by_kind.get(facts.output_operands or "", ())]
        if facts.output_operands == "last":
            changed += options.iter_values("-t", "--target-directory")
        for word in changed:
            yield from self._check_path(word, command, "edit")
        of_subcommand = find_subcommand(command)
        if facts.non_file_operands == "all" or (of_subcommand and of_subcommand[0].non_file_operands == "all"):
            return
        read_first = facts.non_file_operands != "first" or options.has_any_flag(
            ("-e", "-f", "--regexp", "--file", "--expression")
        )
        others = operands if read_first else operands[1:]
        # A word that is repeated thousands of times is looked at once.
        excepted, checked = {id(word) for word in changed}, set[tuple[str, bool]]()
        for word in [*others, *(value for _, value in options.values), *map(ShellWord, options.flags)]:
            if id(word) not in excepted and (word.text, word.has_glob) not in checked:
                checked.add((word.text, word.has_glob))
                yield from self.check_named_paths(word, command)

    def _check_path(self, word: ShellWord, command: ShellCommand, action: FileAction) -> Iterator[PolicyFinding]:
        path = resolve_path(word, command.folder, self._workspace)
        region = classify_path(path)
        rule = self._find_decision(path, action, glob=word.has_glob) if path is not None else None
        if rule:
            decision, why = rule
            outside = region not in ("inside", "all") and action == "edit"
            yield PolicyFinding("critical" if outside else "high", why, decision)
        if action == "read" or region in ("inside", "all", "harmless"):
            return
        if region in ("device", "system"):
            yield PolicyFinding("critical", f"writes to {word.known_text}, a system path", "ask")
        elif region == "unknown":
            yield PolicyFinding("medium", "the file that it writes cannot be determined", "ask")
        else:
            tier: Tier = "medium" if region == "temporary" else "high"
            yield PolicyFinding(tier, f"writes to {word.known_text}, which is not in the workspace", "ask")

    def _find_decision(self, path: str, action: FileAction, *, glob: bool) -> tuple[Decision, str] | None:
        """Return the strictest decision of all lists with its reason, unless it is to allow."""
        find_decision = find_glob_decision if glob else find_file_decision
        found = [one for rules in self._rules if (one := find_decision(rules, path, action)) and one[0] != "allow"]
        if not found:
            return None
        decision = find_strictest_decision(one[0] for one in found) or "ask"
        rule = next(one[1] for one in found if one[0] == decision)
        does = "changes" if action == "edit" else "reads"
        return decision, rule.why or f"{does} {path}, a protected file ({rule.pattern})"
