"""Which files a command touches, and what the rules about files and places say to that."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from callwright.agent.policy.command import Command, Redirection
from callwright.agent.policy.files import Action, FileRule, decide, may_name, named_in
from callwright.agent.policy.options import Options
from callwright.agent.policy.paths import region, resolve
from callwright.agent.policy.programs import Program, under
from callwright.agent.policy.values import Decision, Finding, Tier, stricter
from callwright.agent.policy.words import Word

__all__ = ["Files"]


class Files:
    """The lists of rules about files; of each list the last rule that matches counts, of all the strictest word."""

    def __init__(self, rules: Sequence[Sequence[FileRule]], workspace: str) -> None:
        self._rules = rules
        self._workspace = workspace

    def changed(self, word: Word, command: Command) -> Iterator[Finding]:
        """A file that is written."""
        return self._path(word, command, "edit")

    def named(self, word: Word, command: Command) -> Iterator[Finding]:
        """A word that may name files that are read."""
        for part in named_in(word.text):
            yield from self._path(Word(part, word.glob), command, "read")

    def redirected(self, redirection: Redirection, command: Command) -> Iterator[Finding]:
        """A file that is read or written by the shell for the command."""
        target = redirection.target
        if re.match(r"/dev/(tcp|udp)/", target.text):
            yield Finding("critical", f"opens a connection to {target.bare[9:]}", "ask")
        elif redirection.writes:
            yield from self._path(target, command, "edit")
        elif redirection.operator == "<":
            yield from self._path(target, command, "read")

    def touched(self, command: Command, options: Options, facts: Program) -> Iterator[Finding]:
        """The files that its words name: those that it changes, and all the others that it may read."""
        operands = list(options.operands)
        by_kind = {"all": operands, "last": operands[-1:], "rest": operands[1:]}
        changed = [*by_kind.get(facts.writes or "", ())]
        if facts.writes == "last":
            changed += options.value("-t", "--target-directory")
        for word in changed:
            yield from self._path(word, command, "edit")
        of_subcommand = under(command)
        if facts.plain == "all" or (of_subcommand and of_subcommand[0].plain == "all"):
            return
        read_first = facts.plain != "first" or options.any(("-e", "-f", "--regexp", "--file", "--expression"))
        others = operands if read_first else operands[1:]
        for word in [*others, *(value for _, value in options.values), *map(Word, options.flags)]:
            if not any(word is one for one in changed):
                yield from self.named(word, command)

    def _path(self, word: Word, command: Command, action: Action) -> Iterator[Finding]:
        path = resolve(word, command.place, self._workspace)
        where = region(path)
        rule = self._decision(path, action, glob=word.glob) if path is not None else None
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

    def _decision(self, path: str, action: Action, *, glob: bool) -> tuple[Decision, str] | None:
        """The strictest word of the lists of file rules, if it is not to allow."""
        look = may_name if glob else decide
        found = [one for rules in self._rules if (one := look(rules, path, action)) and one[0] != "allow"]
        if not found:
            return None
        decision = stricter(one[0] for one in found) or "ask"
        rule = next(one[1] for one in found if one[0] == decision)
        does = "changes" if action == "edit" else "reads"
        return decision, rule.why or f"{does} {path}, a protected file ({rule.pattern})"
