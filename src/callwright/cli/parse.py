"""`callwright parse`: parse a model's output and print the turn, its events, JSON, or a batch of results."""

from __future__ import annotations

import argparse
import codecs
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from callwright import Parser, collect, get_dialect
from callwright.cli import parse_batch, turn_view
from callwright.dialect_plugins import load_dialect_plugins
from callwright.errors import MisuseError, RequestError
from callwright.events import Event

__all__ = ["add_command", "run_parse"]

_EXAMPLES = """\
examples:
  callwright parse -t tools.json out.txt     detect the dialect
  callwright parse -d qwen3_coder out.txt    use one dialect, accept any tool
  callwright parse -c 1 --events out.txt     print events for each character
  callwright parse --json out.txt            print the turn as JSON
  callwright parse --jsonl cases.jsonl       parse a batch

A tools file has OpenAI tool objects: a list, or an object with the key "tools".
Without one, a named dialect accepts calls of any tool and auto accepts none.
Each line of a batch is an object with id, dialect, tools and text.
"""


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "parse",
        help="parse a model's output",
        description="Parse a model's output and show its text, reasoning and tool calls.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="file with the output; - or nothing reads standard input"
    )
    parser.add_argument(
        "-d", "--dialect", default="auto", metavar="NAME", help="dialect, model or vLLM parser name (default: auto)"
    )
    parser.add_argument("-t", "--tools", metavar="FILE", help="JSON file with the tools of the request")
    parser.add_argument(
        "-c",
        "--chunk-size",
        type=_parse_chunk_size,
        default=0,
        metavar="N",
        help="feed the parser N characters at a time",
    )
    parser.add_argument(
        "--prefill", default="", metavar="TEXT", help="start of the answer that the prompt already has, e.g. <think>"
    )
    parser.add_argument(
        "--truncated",
        choices=("partial", "drop", "repair"),
        default="partial",
        help="what to do with a truncated call (default: %(default)s)",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--events", action="store_true", help="print each event as a line of JSON")
    form.add_argument("--json", action="store_true", help="print the turn as one JSON object")
    form.add_argument("--jsonl", action="store_true", help="parse a batch: one JSON object per line, in and out")
    parser.set_defaults(run=run_parse)


def _parse_chunk_size(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return int(text)


def run_parse(arguments: argparse.Namespace) -> int:
    """Parse the input and print the result."""
    load_dialect_plugins()
    if arguments.jsonl:
        with _open_input(arguments.file) as lines:
            parse_batch.run_batch(
                lines, sys.stdout, default=arguments.dialect, size=arguments.chunk_size, truncated=arguments.truncated
            )
        return 0
    tools = _read_tools(arguments.tools) if arguments.tools else []
    parser = Parser(get_dialect(arguments.dialect), tools, prefill=arguments.prefill, truncated=arguments.truncated)
    events: list[Event] = []
    with _open_input(arguments.file) as file:
        for chunk in _read_chunks(file, arguments.chunk_size):
            events += _print_events(parser.feed(chunk), arguments)
    events += _print_events(parser.close(), arguments)
    turn = collect(events)
    if arguments.json:
        _print_json(parse_batch.turn_to_dict(turn))
    elif not arguments.events:
        turn_view.print_turn(turn)
        if not tools and parser.dialect.name == "auto":
            print("No calls are read without tools: pass --tools FILE, or name a dialect with --dialect.")
    return 0


def _open_input(name: str | None) -> Any:
    if name and name != "-":
        return Path(name).open("rb")
    if sys.stdin.isatty():
        print("Reading standard input; press Ctrl-D to finish.", file=sys.stderr)
    return open(sys.stdin.fileno(), "rb", closefd=False)  # Path cannot open a file descriptor


def _read_chunks(file: Any, size: int) -> Iterator[str]:
    """Yield the text as it arrives, in chunks of `size` characters; 0 leaves the chunks as they are."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    while piece := file.read1(65536):
        text = decoder.decode(piece)
        step = size or max(len(text), 1)
        yield from (text[start : start + step] for start in range(0, len(text), step))
    decoder.decode(b"", final=True)


def _read_tools(name: str) -> list[Any]:
    try:
        tools = msgspec.json.decode(Path(name).read_bytes())
    except msgspec.DecodeError as problem:
        raise RequestError(f"{name} is not JSON: {problem}") from None
    tools = tools.get("tools") if isinstance(tools, dict) else tools
    if not isinstance(tools, list):
        raise MisuseError(f"{name} must contain a list of tools, or an object with the key 'tools'")
    return tools


def _print_events(events: list[Event], arguments: argparse.Namespace) -> list[Event]:
    if arguments.events:
        for event in events:
            _print_json(event)
    return events


def _print_json(value: Any) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode("utf-8") + "\n")
    sys.stdout.flush()
