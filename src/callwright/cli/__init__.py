"""The command line: one module per command, each with `add_command(commands)`.

Only the requested command is imported, so that `parse` does not load the libraries of `serve`. An error that the user
can fix is printed on standard error, and the exit code is 2.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from callwright import __version__
from callwright.errors import CallwrightError

__all__ = ["COMMANDS", "main"]

COMMANDS = (
    "serve",
    "chat",
    "agent",
    "models",
    "smoke",
    "usage",
    "journal",
    "sessions",
    "codex",
    "policy",
    "config",
    "templates",
    "parse",
    "dialects",
    "plugins",
    "demo",
)
"""In help order; each name is the name of a module of this package."""

_EXAMPLES = """\
examples:
  callwright serve                          serve the models on this machine
  callwright chat                           chat with a model
  callwright agent "fix the failing test"   let the coding agent work here
  callwright smoke                          test a running gateway
  callwright demo                           watch a stream being parsed
  callwright parse -t tools.json out.txt    parse a model's output
  callwright parse -d hermes out.txt        parse it as one dialect
  callwright parse --jsonl < cases.jsonl    parse a batch of outputs
  callwright dialects                       list the dialects
  callwright journal replay                 replay recorded turns
  callwright codex install                  install Codex for kind = "codex"
  callwright policy check 'git push -f'     may the agent run this, and why?
  callwright config check                   check the configuration
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    words = sys.argv[1:] if argv is None else argv
    parser = _build_parser(words[0] if words else "")
    arguments = parser.parse_args(words)
    if not hasattr(arguments, "run"):
        parser.print_help()
        return 0
    try:
        return int(arguments.run(arguments))
    except (CallwrightError, OSError, UnicodeDecodeError) as problem:
        print(f"callwright: {_format_error(problem)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _format_error(problem: Exception) -> str:
    """Say what went wrong and what to do about it."""
    match problem:
        case OSError(filename=str() as name, strerror=str() as reason):
            return f"cannot read {name}: {reason.lower()}; pass the path of a file, or - for standard input"
        case UnicodeDecodeError():
            return f"the input is not UTF-8 (byte {problem.object[problem.start]:#04x}); convert it, e.g. with iconv"
        case _:
            return str(problem)


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the help of the longest command on its line: argparse does not count the indent of commands."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._action_max_length = max(map(len, COMMANDS)) + 4


def _build_parser(command: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="callwright",
        description="Make tool calls work between any chat client and any model.",
        epilog=_EXAMPLES,
        formatter_class=_HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"callwright {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name in (command,) if command in COMMANDS else () if command == "--version" else COMMANDS:
        import_module(f"callwright.cli.{name}").add_command(commands)
    return parser
