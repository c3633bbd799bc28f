"""Inspects interpreters: where the code that they run comes from, and what is known about it.

Code on the command line is inspected, code from a pipe must be known completely, and a file of the workspace is the
project's own code. No interpreter is ever allowed by its name alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from callwright.agent.policy.command_options import parse_options
from callwright.agent.policy.inline_code import CodeInspection, inspect_awk, inspect_code, inspect_sed
from callwright.agent.policy.judgement import Allowance, PolicyFinding, Tier
from callwright.agent.policy.path_regions import classify_path, resolve_path
from callwright.agent.policy.program_facts import get_program_facts
from callwright.agent.policy.shell_command import ShellCommand
from callwright.agent.policy.shell_words import UNKNOWN, CommandStream, ShellWord
from callwright.agent.policy.wrappers import FileRead, FileWrite, InspectionItem, NestedScript

__all__ = ["inspect_interpreter"]

_SHELL_NAME = re.compile(r"(?:r?ba|da|z|k|mk|pdk|a|fi|c|tc|ya|)sh|elvish|nu")
_LANGUAGE_NAME = re.compile(
    r"(python|pypy|perl|ruby|node|nodejs|php|lua|luajit|deno|bun|Rscript|julia|tclsh|pwsh|powershell|osascript|irb|ipython"
    r"|ts-node|tsx|groovy|scala|elixir|erl|ghci|guile|racket|swift)[\d.]*(\.exe)?"
)
_CODE_OPTIONS = {
    "perl": ("-e", "-E"),
    "ruby": ("-e",),
    "node": ("-e", "-p", "--eval", "--print"),
    "nodejs": ("-e", "-p", "--eval", "--print"),
    "php": ("-r",),
    "pwsh": ("-c", "-Command", "-command", "-EncodedCommand", "-e", "-enc"),
    "powershell": ("-c", "-Command", "-command", "-EncodedCommand", "-e", "-enc"),
}
_DEFAULT_CODE_OPTIONS = ("-c", "-e", "--eval", "-E", "--execute")
_VALUE_OPTIONS = (
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
_FLAG_OPTIONS = {
    "sh": ("-e", "-x", "-u"),
    "python": ("-O", "-I", "-E"),
    "perl": ("-I", "-W", "-X", "-O", "-r"),
    "ruby": ("-W",),
}
# fmt: off
_KNOWN_MODULES = frozenset((
    "pytest", "unittest", "pip", "venv", "virtualenv", "build", "json.tool", "compileall", "py_compile", "mypy",
    "ruff", "black", "isort", "flake8", "pylint", "tox", "nox", "coverage", "doctest", "twine", "http.server", "pdb",
    "cProfile", "timeit", "pre_commit", "pyright", "bandit", "sphinx", "ensurepip", "uv", "poetry",
))
# fmt: on
_STDIN_FILES = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")


def inspect_interpreter(command: ShellCommand, workspace: str) -> Iterator[InspectionItem]:
    """Yield what an interpreter runs; nothing for any other program."""
    name = command.name
    if name in ("awk", "gawk", "mawk", "nawk", "sed", "gsed", "original-awk"):
        yield from _inspect_awk_or_sed(command)
    elif name in ("source", "."):
        yield from _inspect_script_source(command, command.argv[1:], workspace, is_shell=True)
    elif name in ("at", "batch"):
        yield PolicyFinding("high", "it runs commands later")
        if command.stdin:
            yield from _inspect_stream(command.stdin, name, is_shell=True)
    elif _SHELL_NAME.fullmatch(name):
        yield from _inspect_shell(command, workspace)
    elif found := _LANGUAGE_NAME.fullmatch(name):
        yield from _inspect_language(command, found[1], workspace)


def _inspect_shell(command: ShellCommand, workspace: str) -> Iterator[InspectionItem]:
    value_options = {"-c", "--command", "--rcfile", "--init-file", "-o", "-O", "-C"}
    at = next((at for at, word in enumerate(command.argv) if at and _is_command_flag(word.known_text)), None)
    options = parse_options(command.argv, value_options, stop_at_operand=True)
    for file in options.iter_values("--rcfile", "--init-file"):
        yield from _inspect_script_source(command, (file,), workspace, is_shell=True)
    if at is not None and (
        at < options.first_operand_index
        or options.first_operand_index == len(command.argv)
        or _is_command_flag(command.argv[at].known_text)
    ):
        after = list(command.argv[at + 1 :])
        while after and after[0].known_text.startswith(("-", "+")) and len(after) > 1:
            after.pop(0)
        if after:
            yield Allowance("it is judged by what it runs")
            yield NestedScript(after[0].text, tuple(word.text for word in after[1:]))
            if not after[0].known_text.strip():
                yield PolicyFinding("critical", f"`{command.name} -c` runs code that cannot be determined", "ask")
        return
    operands = () if options.has_flag("-s") else options.operands
    yield from _inspect_script_source(command, operands, workspace, is_shell=True)


def _is_command_flag(word: str) -> bool:
    return bool(re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*|--command", word))


def _inspect_language(command: ShellCommand, family: str, workspace: str) -> Iterator[InspectionItem]:
    if family in ("deno", "bun") and len(command.argv) > 1 and command.argv[1].text == "eval":
        yield from _report_inline_code(inspect_code(" ".join(word.text for word in command.argv[2:])), command.name)
        return
    flags = _CODE_OPTIONS.get(family, _DEFAULT_CODE_OPTIONS)
    value_options = (set(_VALUE_OPTIONS) | set(flags)) - set(_FLAG_OPTIONS.get(family, ()))
    options = parse_options(command.argv, value_options, stop_at_operand=True)
    codes = [*options.iter_values(*flags), *_iter_clustered_code(command, flags)]
    for code in codes:
        yield from _report_inline_code(inspect_code(code.text), command.name)
        if not code.is_known:
            tier: Tier = "critical" if command.script and command.script.has_downloads else "high"
            yield PolicyFinding(tier, f"`{command.name}` runs code that cannot be determined", "ask")
        if family in ("pwsh", "powershell"):
            yield NestedScript(code.text)
    for module in options.iter_values("-r", "--require", "--import", "--loader"):
        if not codes and classify_path(resolve_path(module, command.folder, workspace)) not in ("inside",):
            yield PolicyFinding("high", f"`{command.name}` loads {module.known_text} first", "ask")
    if codes:
        if options.has_flag("-i") and family in ("perl", "ruby"):
            yield PolicyFinding("medium", f"`{command.name} -i` changes files in place")
        return
    for module in options.iter_values("-m"):
        if family in ("python", "pypy"):
            yield from _inspect_module(command, module)
            return
    if options.has_any_flag(("--test",)) and family in ("node", "nodejs"):
        yield Allowance("it runs the project's tests", runs_project_code=True)
    elif options.operands or not options.has_any_flag(("--version", "-V", "-v", "--help")):
        operands = options.operands
        if family in ("deno", "bun") and operands and operands[0].text == "run":
            operands = operands[1:]
        yield from _inspect_script_source(command, operands, workspace, is_shell=False)


def _iter_clustered_code(command: ShellCommand, flags: tuple[str, ...]) -> Iterator[ShellWord]:
    """Yield the code after `-pe`, `-lane`, `-Mx -e`: the word after a cluster that ends in the option's letter."""
    for word, after in zip(command.argv[1:], command.argv[2:], strict=False):
        if re.fullmatch(r"-[a-zA-Z0-9]+", word.text) and len(word.text) > 2 and f"-{word.text[-1]}" in flags:
            yield after


def _inspect_module(command: ShellCommand, module: ShellWord) -> Iterator[InspectionItem]:
    name = module.text
    if name in _KNOWN_MODULES:
        yield Allowance("it is judged by the module that it runs")
        yield command.with_argv([module, *_list_words_after(command, module)])
        return
    yield PolicyFinding("none", f"the module {name} is unknown")


def _list_words_after(command: ShellCommand, word: ShellWord) -> tuple[ShellWord, ...]:
    at = next((at for at, each in enumerate(command.argv) if each is word), len(command.argv))
    return command.argv[at + 1 :]


def _inspect_script_source(
    command: ShellCommand, operands: tuple[ShellWord, ...], workspace: str, *, is_shell: bool
) -> Iterator[InspectionItem]:
    """Inspect a script from a file, or from standard input if no file is named."""
    if not operands or operands[0].text in _STDIN_FILES:
        if command.stdin:
            yield from _inspect_stream(command.stdin, command.name, is_shell=is_shell)
        elif not operands:
            yield PolicyFinding("medium", f"`{command.name}` waits for code from the terminal")
        return
    script = operands[0]
    if script.stream:
        yield from _inspect_stream(script.stream, command.name, is_shell=is_shell)
        return
    path = resolve_path(script, command.folder, workspace)
    if classify_path(path) == "inside" and not script.has_glob:
        yield Allowance("it runs a file of the project", runs_project_code=True)
    elif classify_path(path) == "unknown":
        yield PolicyFinding("high", f"the file that `{command.name}` runs cannot be determined", "ask")
    else:
        yield PolicyFinding("high", f"`{command.name}` runs {script.known_text}, which is not in the workspace", "ask")


def _inspect_stream(stream: CommandStream, name: str, *, is_shell: bool) -> Iterator[InspectionItem]:
    if stream.text is None or not stream.text.replace(UNKNOWN, "").strip():
        if stream.text is not None and not stream.text.strip():
            return
        tier: Tier = "high" if stream.origin.startswith("the file") else "critical"
        yield PolicyFinding(tier, f"`{name}` runs input from {stream.origin}, which nobody has reviewed", "ask")
    elif is_shell:
        yield Allowance("it is judged by what it runs")
        yield NestedScript(stream.text, inherits_stdin=False)
    else:
        yield from _report_inline_code(inspect_code(stream.text), name)


def _report_inline_code(inspection: CodeInspection, name: str) -> Iterator[InspectionItem]:
    """Report code that is part of the command itself. It always needs approval."""
    if inspection.deletes_folders:
        yield PolicyFinding("critical", f"the code for `{name}` deletes whole folders", "ask")
    elif inspection.starts_programs or inspection.changes_files:
        does = "starts other programs" if inspection.starts_programs else "changes files or uses the network"
        yield PolicyFinding("high", f"the code for `{name}` {does}", "ask")
    else:
        yield PolicyFinding("medium", f"`{name}` runs code from the command line", "ask")
    yield from map(NestedScript, inspection.commands)
    yield from map(FileRead, inspection.quoted_texts)


def _inspect_awk_or_sed(command: ShellCommand) -> Iterator[InspectionItem]:
    """Inspect `awk` and `sed`: harmless unless their script starts programs or writes files."""
    is_sed = command.name.endswith("sed")
    options = get_program_facts(command.name).parse_argv(command.argv)
    scripts = [*options.iter_values("-e", "--expression", "--source")]
    files = [*options.iter_values("-f", "--file")]
    operands = list(options.operands)
    if not scripts and not files and operands:
        scripts.append(operands.pop(0))
    risky = False
    for script in scripts:
        inspection = inspect_sed(script.text) if is_sed else inspect_awk(script.text)
        if not script.is_known or inspection.starts_programs:
            risky = True
            yield PolicyFinding("high", f"the script of `{command.name}` may start programs", "ask")
        yield from map(NestedScript, inspection.commands)
        for target in inspection.output_files:
            risky = True
            yield FileWrite(ShellWord(target))
        if inspection.changes_files and not inspection.output_files:
            risky = True
            yield PolicyFinding("medium", f"the script of `{command.name}` writes files")
    if files:
        risky = True
        yield Allowance(f"`{command.name}` runs a file of the project", runs_project_code=True)
    if (is_sed and any(re.match(r"-[a-zA-Z]*i|--in-p", flag) for flag in options.flags)) or (
        not is_sed and "inplace" in " ".join(w.text for w in command.argv)
    ):
        risky = True
        yield PolicyFinding("medium", f"`{command.name}` changes files in place")
        yield from map(FileWrite, operands)
    if not risky:
        yield Allowance("it only prints", is_read_only=True)
