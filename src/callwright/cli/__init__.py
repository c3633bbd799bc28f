"""The command line: one file per command, each with `add(commands)` and a `run`.

Only the command that is asked for is imported: those that serve need libraries that `parse` should not wait for.
Errors that a person can mend are sentences on standard error and exit code 2.
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
    "demo",
)
"""In the order of the help; each is the module of that name."""

_EXAMPLES = """\
examples:
  callwright serve                                     serve the models of this machine to any client
  callwright chat                                      try one in the terminal
  callwright agent "fix the failing test"              have it done, in this folder, asking first
  callwright smoke                                     does the gateway answer as clients need it?
  callwright demo                                      watch a stream being read
  callwright parse --tools tools.json answer.txt       what calls are in this answer? (any dialect)
  callwright parse --dialect hermes answer.txt         the same, of any tool, in one dialect
  some-model | callwright parse --chunk 4 --events     each event as it happens
  callwright parse --jsonl < cases.jsonl               a whole batch, one JSON object per line
  callwright dialects                                  every dialect, with an example
  callwright journal replay                            would the last turns come out the same today?
  callwright codex install                             fetch the program that kind = "codex" runs
  callwright policy check 'git push -f'                may the agent run this, and why?
  callwright config check                              are the settings right? every mistake, with its line
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    words = sys.argv[1:] if argv is None else argv
    parser = _build_parser(words[0] if words else "")
    arguments = parser.parse_args(words)
    if not hasattr(arguments, "run"):
        parser.print_help()
        return 0
    try:
        return int(arguments.run(arguments))
    except (CallwrightError, OSError, UnicodeDecodeError) as problem:
        print(f"callwright: {_format_error(problem)}", file=sys.stderr)  # this is the command line's own voice
        return 2
    except KeyboardInterrupt:
        return 130


def _format_error(problem: Exception) -> str:
    """What is wrong, and what can be done about it."""
    match problem:
        case OSError(filename=str() as name, strerror=str() as reason):
            return f"cannot read {name}: {reason.lower()}; give the path of a file, or - for standard input"
        case UnicodeDecodeError():
            return f"the text is not UTF-8 (byte {problem.object[problem.start]:#04x}); convert it, e.g. with iconv"
        case _:
            return str(problem)


def _build_parser(command: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="callwright",
        description="Tool calls that work between any chat client and any model.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"callwright {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name in (command,) if command in COMMANDS else () if command == "--version" else COMMANDS:
        import_module(f"callwright.cli.{name}").add_command(commands)
    return parser
