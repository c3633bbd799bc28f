"""Programs that run code: where the code comes from, and what is known of it.

Code on the command line is looked at, code from a pipe must be known to the last word, and a file of the workspace is
the project's own code. No interpreter is ever allowed by its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from callwright.agent.policy.code import Seen, awk_seen, code_seen, sed_seen
from callwright.agent.policy.command import Command
from callwright.agent.policy.options import options_of
from callwright.agent.policy.paths import region, resolve
from callwright.agent.policy.programs import program
from callwright.agent.policy.values import Allowance, Finding, Tier
from callwright.agent.policy.words import UNKNOWN, Stream, Word
from callwright.agent.policy.wrappers import Item, Nested, Reads, Writes

__all__ = ["interpreted"]

_SHELL = re.compile(r"(?:r?ba|da|z|k|mk|pdk|a|fi|c|tc|ya|)sh|elvish|nu")
_LANGUAGE = re.compile(
    r"(python|pypy|perl|ruby|node|nodejs|php|lua|luajit|deno|bun|Rscript|julia|tclsh|pwsh|powershell|osascript|irb|ipython"
    r"|ts-node|tsx|groovy|scala|elixir|erl|ghci|guile|racket|swift)[\d.]*(\.exe)?"
)
_CODE = {
    "perl": ("-e", "-E"),
    "ruby": ("-e",),
    "node": ("-e", "-p", "--eval", "--print"),
    "nodejs": ("-e", "-p", "--eval", "--print"),
    "php": ("-r",),
    "pwsh": ("-c", "-Command", "-command", "-EncodedCommand", "-e", "-enc"),
    "powershell": ("-c", "-Command", "-command", "-EncodedCommand", "-e", "-enc"),
}
_DEFAULT_CODE = ("-c", "-e", "--eval", "-E", "--execute")
_VALUES = (
    "-W",
    "-X",
    "-r",
    "--require",
    "--import",
    "--loader",
    "-I",
    "-M",
    "--rcfile",
    "--init-file",
    "-O",
    "-o",
    "-m",
)
_NO_VALUE = {
    "sh": ("-e", "-x", "-u"),
    "python": ("-O", "-I", "-E"),
    "perl": ("-I", "-W", "-X", "-O", "-r"),
    "ruby": ("-W",),
}
# fmt: off
_MODULES = frozenset((
    "pytest", "unittest", "pip", "venv", "virtualenv", "build", "json.tool", "compileall", "py_compile", "mypy",
    "ruff", "black", "isort", "flake8", "pylint", "tox", "nox", "coverage", "doctest", "twine", "http.server", "pdb",
    "cProfile", "timeit", "pre_commit", "pyright", "bandit", "sphinx", "ensurepip", "uv", "poetry",
))
# fmt: on
_STDIN_FILES = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")


def interpreted(command: Command, workspace: str) -> Iterator[Item]:
    """What an interpreter runs. Nothing, if it is no interpreter."""
    name = command.name
    if name in ("awk", "gawk", "mawk", "nawk", "sed", "gsed", "original-awk"):
        yield from _small(command)
    elif name in ("source", "."):
        yield from _file_or_stream(command, command.argv[1:], workspace, is_shell=True)
    elif name in ("at", "batch"):
        yield Finding("high", "it runs commands later")
        if command.stdin:
            yield from _streamed(command.stdin, name, is_shell=True)
    elif _SHELL.fullmatch(name):
        yield from _shell(command, workspace)
    elif found := _LANGUAGE.fullmatch(name):
        yield from _language(command, found[1], workspace)


def _shell(command: Command, workspace: str) -> Iterator[Item]:
    takes = {"-c", "--command", "--rcfile", "--init-file", "-o", "-O", "-C"}
    at = next((at for at, word in enumerate(command.argv) if at and _runs_text(word.bare)), None)
    options = options_of(command.argv, takes, first_ends=True)
    for file in options.value("--rcfile", "--init-file"):
        yield from _file_or_stream(command, (file,), workspace, is_shell=True)
    if at is not None and (at < options.rest or options.rest == len(command.argv) or _runs_text(command.argv[at].bare)):
        after = list(command.argv[at + 1 :])
        while after and after[0].bare.startswith(("-", "+")) and len(after) > 1:
            after.pop(0)
        if after:
            yield Allowance("it is judged by what it runs")
            yield Nested(after[0].text, tuple(word.text for word in after[1:]))
            if not after[0].bare.strip():
                yield Finding("critical", f"`{command.name} -c` runs what nobody has seen", "ask")
        return
    operands = () if options.has("-s") else options.operands
    yield from _file_or_stream(command, operands, workspace, is_shell=True)


def _runs_text(word: str) -> bool:
    return bool(re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*|--command", word))


def _language(command: Command, family: str, workspace: str) -> Iterator[Item]:
    if family in ("deno", "bun") and len(command.argv) > 1 and command.argv[1].text == "eval":
        yield from _inline(code_seen(" ".join(word.text for word in command.argv[2:])), command.name)
        return
    flags = _CODE.get(family, _DEFAULT_CODE)
    takes = (set(_VALUES) | set(flags)) - set(_NO_VALUE.get(family, ()))
    options = options_of(command.argv, takes, first_ends=True)
    codes = [*options.value(*flags), *_clustered(command, flags)]
    for code in codes:
        yield from _inline(code_seen(code.text), command.name)
        if not code.known:
            tier: Tier = "critical" if command.body and command.body.downloads else "high"
            yield Finding(tier, f"`{command.name}` runs code that nobody has seen", "ask")
        if family in ("pwsh", "powershell"):
            yield Nested(code.text)
    for module in options.value("-r", "--require", "--import", "--loader"):
        if not codes and region(resolve(module, command.place, workspace)) not in ("inside",):
            yield Finding("high", f"`{command.name}` loads {module.bare} first", "ask")
    if codes:
        if options.has("-i") and family in ("perl", "ruby"):
            yield Finding("medium", f"`{command.name} -i` changes files in place")
        return
    for module in options.value("-m"):
        if family in ("python", "pypy"):
            yield from _module(command, module)
            return
    if options.any(("--test",)) and family in ("node", "nodejs"):
        yield Allowance("it runs the tests of the project", project=True)
    elif options.operands or not options.any(("--version", "-V", "-v", "--help")):
        operands = options.operands
        if family in ("deno", "bun") and operands and operands[0].text == "run":
            operands = operands[1:]
        yield from _file_or_stream(command, operands, workspace, is_shell=False)


def _clustered(command: Command, flags: tuple[str, ...]) -> Iterator[Word]:
    """The code after `-pe`, `-lane`, `-Mx -e`: the word after a cluster that ends in the letter."""
    for word, after in zip(command.argv[1:], command.argv[2:], strict=False):
        if re.fullmatch(r"-[a-zA-Z0-9]+", word.text) and len(word.text) > 2 and f"-{word.text[-1]}" in flags:
            yield after


def _module(command: Command, module: Word) -> Iterator[Item]:
    name = module.text
    if name in _MODULES:
        yield Allowance("it is judged by the module that it runs")
        yield command.running([module, *_after(command, module)])
        return
    yield Finding("none", f"the module {name} is not known")


def _after(command: Command, word: Word) -> tuple[Word, ...]:
    at = next((at for at, each in enumerate(command.argv) if each is word), len(command.argv))
    return command.argv[at + 1 :]


def _file_or_stream(command: Command, operands: tuple[Word, ...], workspace: str, *, is_shell: bool) -> Iterator[Item]:
    """A script from a file, or from what is piped in where no file is named."""
    if not operands or operands[0].text in _STDIN_FILES:
        if command.stdin:
            yield from _streamed(command.stdin, command.name, is_shell=is_shell)
        elif not operands:
            yield Finding("medium", f"`{command.name}` waits for code to be typed")
        return
    script = operands[0]
    if script.stream:
        yield from _streamed(script.stream, command.name, is_shell=is_shell)
        return
    path = resolve(script, command.place, workspace)
    if region(path) == "inside" and not script.glob:
        yield Allowance("it runs a file of the project", project=True)
    elif region(path) == "unknown":
        yield Finding("high", f"it cannot be seen what `{command.name}` runs", "ask")
    else:
        yield Finding("high", f"`{command.name}` runs {script.bare}, which is not in the workspace", "ask")


def _streamed(stream: Stream, name: str, *, is_shell: bool) -> Iterator[Item]:
    if stream.text is None or not stream.text.replace(UNKNOWN, "").strip():
        if stream.text is not None and not stream.text.strip():
            return
        tier: Tier = "high" if stream.origin.startswith("the file") else "critical"
        yield Finding(tier, f"`{name}` runs what comes from {stream.origin}, which nobody has seen", "ask")
    elif is_shell:
        yield Allowance("it is judged by what it runs")
        yield Nested(stream.text, keeps_input=False)
    else:
        yield from _inline(code_seen(stream.text), name)


def _inline(seen: Seen, name: str) -> Iterator[Item]:
    """Code that is given in the command itself. It asks, whatever it is."""
    if seen.destroys:
        yield Finding("critical", f"the code for `{name}` deletes whole folders", "ask")
    elif seen.starts or seen.changes:
        does = "starts other programs" if seen.starts else "changes files or uses the network"
        yield Finding("high", f"the code for `{name}` {does}", "ask")
    else:
        yield Finding("medium", f"`{name}` runs code that is given in the command", "ask")
    yield from map(Nested, seen.commands)
    yield from map(Reads, seen.quoted)


def _small(command: Command) -> Iterator[Item]:
    """`awk` and `sed`: harmless unless their program starts something or writes."""
    is_sed = command.name.endswith("sed")
    options = program(command.name).options(command.argv)
    scripts = [*options.value("-e", "--expression", "--source")]
    files = [*options.value("-f", "--file")]
    operands = list(options.operands)
    if not scripts and not files and operands:
        scripts.append(operands.pop(0))
    risky = False
    for script in scripts:
        seen = sed_seen(script.text) if is_sed else awk_seen(script.text)
        if not script.known or seen.starts:
            risky = True
            yield Finding("high", f"the script of `{command.name}` may start programs", "ask")
        yield from map(Nested, seen.commands)
        for target in seen.writes:
            risky = True
            yield Writes(Word(target))
        if seen.changes and not seen.writes:
            risky = True
            yield Finding("medium", f"the script of `{command.name}` writes files")
    if files:
        risky = True
        yield Allowance(f"`{command.name}` runs a file of the project", project=True)
    if (is_sed and any(re.match(r"-[a-zA-Z]*i|--in-p", flag) for flag in options.flags)) or (
        not is_sed and "inplace" in " ".join(w.text for w in command.argv)
    ):
        risky = True
        yield Finding("medium", f"`{command.name}` changes files in place")
        yield from map(Writes, operands)
    if not risky:
        yield Allowance("it only prints", reads=True)
