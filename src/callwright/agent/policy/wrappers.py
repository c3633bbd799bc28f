"""Finds what wrappers run: `sudo`, `env`, `xargs`, `find -exec`, `timeout`, `docker exec` and others.

Most wrappers are described in `programs.toml`; this module has those with a syntax of their own. A wrapper is never
less dangerous than what it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from callwright.agent.policy.command_options import parse_options
from callwright.agent.policy.judgement import Allowance, PolicyFinding
from callwright.agent.policy.program_facts import find_subcommand, get_program_facts
from callwright.agent.policy.shell_command import ShellCommand
from callwright.agent.policy.shell_words import UNKNOWN, ShellWord

__all__ = [
    "DownloadedCommand",
    "FileRead",
    "FileWrite",
    "InspectionItem",
    "NestedScript",
    "PossibleCommand",
    "unwrap_command",
]

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_XARGS_VALUE_OPTIONS = (
    *("-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s", "--arg-file", "--delimiter", "--max-args", "--max-procs"),
    *("--replace", "--max-lines"),
)
_ENV_VALUE_OPTIONS = ("-u", "-C", "-S", "--unset", "--chdir", "--split-string")
_FIND_EXEC_FLAGS = ("-exec", "-execdir", "-ok", "-okdir")
_FIND_WRITE_FLAGS = ("-fprint", "-fprint0", "-fprintf", "-fls")
_DELETERS = frozenset(("rm", "unlink", "shred", "rmdir", "truncate", "dd"))


class NestedScript(NamedTuple):
    """A text that runs as a script."""

    text: str
    parameters: tuple[str, ...] = ()
    """`$0` and the positional parameters."""
    inherits_stdin: bool = True
    """Whether it reads the standard input of the command that runs it."""


class PossibleCommand(NamedTuple):
    """A command that is possible if an unknown option takes a value: only its dangers count."""

    command: ShellCommand


class DownloadedCommand(NamedTuple):
    """A command that may be downloaded before it runs: only what a project has installed is known."""

    command: ShellCommand


class FileWrite(NamedTuple):
    """A file that is changed."""

    path: ShellWord


class FileRead(NamedTuple):
    """A text that may name a file that is read."""

    text: str


InspectionItem = (
    ShellCommand | NestedScript | PossibleCommand | DownloadedCommand | FileWrite | FileRead | PolicyFinding | Allowance
)


def unwrap_command(command: ShellCommand) -> Iterator[InspectionItem]:
    """Yield what a command runs and how dangerous the wrapper itself is; nothing for any other program."""
    match command.name:
        case "env":
            yield from _unwrap_env(command)
        case "xargs":
            yield from _unwrap_xargs(command)
        case "find" | "gfind":
            yield from _unwrap_find(command)
        case "fd" | "fdfind":
            yield from _unwrap_fd(command)
        case "command" if len(command.argv) > 1 and re.fullmatch(r"-[vV]", command.argv[1].text):
            yield Allowance("it only prints what a name refers to", is_read_only=True)
        case _:
            yield from _unwrap_by_facts(command)


def _unwrap_by_facts(command: ShellCommand) -> Iterator[InspectionItem]:
    facts, argv = find_subcommand(command) or (get_program_facts(command.name), command.argv)
    if facts.tier:
        yield PolicyFinding(facts.tier, facts.why)
    options = parse_options(argv, facts.value_options, stop_at_operand=facts.runs is not None)
    for text in options.iter_values(*facts.script_options):
        yield NestedScript(text.text)
    if facts.runs is None:
        return
    yield Allowance("it is judged by what it runs")
    words = list(options.operands)
    while facts.takes_assignments and words and _ASSIGNMENT.match(words[0].text):
        yield _build_assignment(command, words.pop(0))
    words = words[facts.skip_operands :]
    script_index = next((at for at, word in enumerate(words[:3]) if word.text in facts.script_options), len(words))
    if script_index + 1 < len(words):
        yield NestedScript(words[script_index + 1].text)
        if script_index == 0:
            return
    if facts.runs == "joined":
        yield from _unwrap_joined_text(command, words)
    elif words:
        yield DownloadedCommand(command.with_argv(words)) if facts.may_download else command.with_argv(words)
    if options.ambiguous_count or _ends_with_option(argv, options.first_operand_index):
        if len(words) > 1:
            yield PossibleCommand(command.with_argv(words[1:]))


def _unwrap_joined_text(command: ShellCommand, words: Sequence[ShellWord]) -> Iterator[InspectionItem]:
    if command.name == "trap":
        words = words[:1]
    texts = [word.text for word in words]
    if command.name == "hyperfine":
        yield from map(NestedScript, texts)
    elif command.name == "parallel":
        before, _, _ = " ".join(texts).partition(" :::")
        yield NestedScript(before.replace("{}", UNKNOWN) if "{}" in before else f"{before} {UNKNOWN}")
    elif texts and command.name == "tmux":
        yield from map(NestedScript, texts)
    elif texts:
        yield NestedScript(" ".join(texts))


def _ends_with_option(argv: Sequence[ShellWord], rest: int) -> bool:
    return 1 < rest < len(argv) and argv[rest - 1].text.startswith("-") and "=" not in argv[rest - 1].text


def _build_assignment(command: ShellCommand, word: ShellWord) -> ShellCommand:
    name, _, value = word.text.partition("=")
    return command.with_argv(())._replace(assignments=((name, value),))


def _unwrap_env(command: ShellCommand) -> Iterator[InspectionItem]:
    options = parse_options(command.argv, _ENV_VALUE_OPTIONS, stop_at_operand=True)
    words = list(options.operands)
    for text in options.iter_values("-S", "--split-string"):
        yield NestedScript(" ".join([text.text, *(word.text for word in words)]))
        words = []
    while words and _ASSIGNMENT.match(words[0].text):
        yield _build_assignment(command, words.pop(0))
    yield Allowance("it is judged by what it runs", is_read_only=not words)
    if words:
        yield command.with_argv(words)
        if _ends_with_option(command.argv, options.first_operand_index) and len(words) > 1:
            yield PossibleCommand(command.with_argv(words[1:]))


def _unwrap_xargs(command: ShellCommand) -> Iterator[InspectionItem]:
    options = parse_options(command.argv, _XARGS_VALUE_OPTIONS, stop_at_operand=True)
    yield Allowance("it is judged by what it runs", is_read_only=not options.operands)
    words = list(options.operands)
    if not words:
        return
    text = command.stdin.text if command.stdin else None
    arguments = [UNKNOWN] if text is None else text.split() or [""]
    marks = [word.text for word in options.iter_values("-I", "--replace")] or (
        ["{}"] if options.has_any_flag(("-i",)) else []
    )
    if marks:
        lines = [UNKNOWN] if text is None else (text.splitlines() or [""])[:8]
        for line in lines:
            yield command.with_argv([word._replace(text=word.text.replace(marks[0], line)) for word in words])
    else:
        yield command.with_argv([*words, *map(ShellWord, arguments[:64])])
        yield PossibleCommand(command.with_argv(words))


def _unwrap_find(command: ShellCommand) -> Iterator[InspectionItem]:
    words = list(command.argv[1:])
    runs = changes = False
    for at, word in enumerate(words):
        if word.text in _FIND_EXEC_FLAGS:
            runs = True
            end = next((end for end in range(at + 1, len(words)) if words[end].text in (";", "+")), len(words))
            inner = [part._replace(text=part.text.replace("{}", UNKNOWN)) for part in words[at + 1 : end]]
            if inner:
                yield command.with_argv(inner)
                if _has_deleter(inner):
                    yield PolicyFinding("critical", "`find` deletes every file it finds")
        elif word.text == "-delete":
            changes = True
            yield PolicyFinding("critical", "`find -delete` deletes every file it finds")
        elif word.text in _FIND_WRITE_FLAGS and at + 1 < len(words):
            changes = True
            yield FileWrite(words[at + 1])
    if not changes:
        yield Allowance("it only searches for files", is_read_only=not runs)


def _has_deleter(words: Sequence[ShellWord]) -> bool:
    """Return whether a program that deletes is among the words, also behind other wrappers."""
    return any(name in _DELETERS for word in words for name in re.findall(r"[\w.-]+", word.known_text))


def _unwrap_fd(command: ShellCommand) -> Iterator[InspectionItem]:
    words = list(command.argv[1:])
    at = next((at for at, w in enumerate(words) if w.text in ("-x", "-X", "--exec", "--exec-batch")), len(words))
    inner = [part._replace(text=re.sub(r"\{[./]*\}", UNKNOWN, part.text)) for part in words[at + 1 :]]
    yield Allowance("it only searches for files", is_read_only=not inner)
    if inner:
        yield command.with_argv(inner)
        if _has_deleter(inner):
            yield PolicyFinding("critical", "`fd` deletes every file it finds")
