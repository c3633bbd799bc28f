"""What is run by a command that runs others: `sudo`, `env`, `xargs`, `find -exec`, `timeout`, `docker exec` ...

Most are facts in `programs.toml`; those whose words follow rules of their own are here. A wrapper is as dangerous as
what it runs, and never less.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from callwright.agent.policy.command import Command
from callwright.agent.policy.options import options_of
from callwright.agent.policy.programs import program, under
from callwright.agent.policy.values import Allowance, Finding
from callwright.agent.policy.words import UNKNOWN, Word

__all__ = ["Fetched", "Guess", "Item", "Nested", "Reads", "Writes", "unwrapped"]

_ASSIGNS = re.compile(r"[A-Za-z_]\w*=")
_XARGS_VALUES = (
    *("-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s", "--arg-file", "--delimiter", "--max-args", "--max-procs"),
    *("--replace", "--max-lines"),
)
_ENV_VALUES = ("-u", "-C", "-S", "--unset", "--chdir", "--split-string")
_FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir")
_FIND_WRITES = ("-fprint", "-fprint0", "-fprintf", "-fls")
_DELETERS = frozenset(("rm", "unlink", "shred", "rmdir", "truncate", "dd"))


class Nested(NamedTuple):
    """A text that is run as a script by what it is given to."""

    text: str
    given: tuple[str, ...] = ()
    """`$0` and the positional parameters."""
    keeps_input: bool = True
    """It reads what the command that runs it would read."""


class Guess(NamedTuple):
    """A command that may be meant, if an option that is not known takes a value: only its dangers count."""

    command: Command


class Fetched(NamedTuple):
    """A command that may be downloaded before it is run: only what a project has installed is known."""

    command: Command


class Writes(NamedTuple):
    """A file that is changed."""

    path: Word


class Reads(NamedTuple):
    """A text that may name a file that is read."""

    text: str


Item = Command | Nested | Guess | Fetched | Writes | Reads | Finding | Allowance


def unwrapped(command: Command) -> Iterator[Item]:
    """What a command runs, and how dangerous it is in itself. Nothing, if it is no wrapper."""
    match command.name:
        case "env":
            yield from _env(command)
        case "xargs":
            yield from _xargs(command)
        case "find" | "gfind":
            yield from _find(command)
        case "fd" | "fdfind":
            yield from _fd(command)
        case "command" if len(command.argv) > 1 and re.fullmatch(r"-[vV]", command.argv[1].text):
            yield Allowance("it only says what a name stands for", reads=True)
        case _:
            yield from _by_facts(command)


def _by_facts(command: Command) -> Iterator[Item]:
    facts, argv = under(command) or (program(command.name), command.argv)
    if facts.tier:
        yield Finding(facts.tier, facts.why)
    options = options_of(argv, facts.values, first_ends=facts.runs is not None)
    for text in options.value(*facts.text):
        yield Nested(text.text)
    if facts.runs is None:
        return
    yield Allowance("it is judged by what it runs")
    words = list(options.operands)
    while facts.assigns and words and _ASSIGNS.match(words[0].text):
        yield _assigning(command, words.pop(0))
    words = words[facts.skip :]
    late = next((at for at, word in enumerate(words[:3]) if word.text in facts.text), len(words))
    if late + 1 < len(words):
        yield Nested(words[late + 1].text)
        if late == 0:
            return
    if facts.runs == "joined":
        yield from _joined(command, words)
    elif words:
        yield Fetched(command.running(words)) if facts.fetches else command.running(words)
    if options.loose or _ends_in_option(argv, options.rest):
        if len(words) > 1:
            yield Guess(command.running(words[1:]))


def _joined(command: Command, words: Sequence[Word]) -> Iterator[Item]:
    if command.name == "trap":
        words = words[:1]
    texts = [word.text for word in words]
    if command.name == "hyperfine":
        yield from map(Nested, texts)
    elif command.name == "parallel":
        before, _, _ = " ".join(texts).partition(" :::")
        yield Nested(before.replace("{}", UNKNOWN) if "{}" in before else f"{before} {UNKNOWN}")
    elif texts and command.name == "tmux":
        yield from map(Nested, texts)
    elif texts:
        yield Nested(" ".join(texts))


def _ends_in_option(argv: Sequence[Word], rest: int) -> bool:
    return 1 < rest < len(argv) and argv[rest - 1].text.startswith("-") and "=" not in argv[rest - 1].text


def _assigning(command: Command, word: Word) -> Command:
    name, _, value = word.text.partition("=")
    return command.running(())._replace(assignments=((name, value),))


def _env(command: Command) -> Iterator[Item]:
    options = options_of(command.argv, _ENV_VALUES, first_ends=True)
    words = list(options.operands)
    for text in options.value("-S", "--split-string"):
        yield Nested(" ".join([text.text, *(word.text for word in words)]))
        words = []
    while words and _ASSIGNS.match(words[0].text):
        yield _assigning(command, words.pop(0))
    yield Allowance("it is judged by what it runs", reads=not words)
    if words:
        yield command.running(words)
        if _ends_in_option(command.argv, options.rest) and len(words) > 1:
            yield Guess(command.running(words[1:]))


def _xargs(command: Command) -> Iterator[Item]:
    options = options_of(command.argv, _XARGS_VALUES, first_ends=True)
    yield Allowance("it is judged by what it runs", reads=not options.operands)
    words = list(options.operands)
    if not words:
        return
    text = command.stdin.text if command.stdin else None
    given = [UNKNOWN] if text is None else text.split() or [""]
    marks = [word.text for word in options.value("-I", "--replace")] or (["{}"] if options.any(("-i",)) else [])
    if marks:
        lines = [UNKNOWN] if text is None else (text.splitlines() or [""])[:8]
        for line in lines:
            yield command.running([word._replace(text=word.text.replace(marks[0], line)) for word in words])
    else:
        yield command.running([*words, *map(Word, given[:64])])
        yield Guess(command.running(words))


def _find(command: Command) -> Iterator[Item]:
    words = list(command.argv[1:])
    runs = changes = False
    for at, word in enumerate(words):
        if word.text in _FIND_RUNS:
            runs = True
            end = next((end for end in range(at + 1, len(words)) if words[end].text in (";", "+")), len(words))
            inner = [part._replace(text=part.text.replace("{}", UNKNOWN)) for part in words[at + 1 : end]]
            if inner:
                yield command.running(inner)
                if _deletes(inner):
                    yield Finding("critical", "`find` deletes every file that it finds")
        elif word.text == "-delete":
            changes = True
            yield Finding("critical", "`find -delete` deletes every file that it finds")
        elif word.text in _FIND_WRITES and at + 1 < len(words):
            changes = True
            yield Writes(words[at + 1])
    if not changes:
        yield Allowance("it only looks for files", reads=not runs)


def _deletes(words: Sequence[Word]) -> bool:
    """A program that deletes is among the words, also behind others that run it."""
    return any(name in _DELETERS for word in words for name in re.findall(r"[\w.-]+", word.bare))


def _fd(command: Command) -> Iterator[Item]:
    words = list(command.argv[1:])
    at = next((at for at, w in enumerate(words) if w.text in ("-x", "-X", "--exec", "--exec-batch")), len(words))
    inner = [part._replace(text=re.sub(r"\{[./]*\}", UNKNOWN, part.text)) for part in words[at + 1 :]]
    yield Allowance("it only looks for files", reads=not inner)
    if inner:
        yield command.running(inner)
        if _deletes(inner):
            yield Finding("critical", "`fd` deletes every file that it finds")
