"""`callwright parse`: what the parser makes of a text, for a person, as events, as JSON, or in a batch."""

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
from callwright.errors import MisuseError, RequestError
from callwright.events import Event

__all__ = ["add_command", "run_parse"]

_EXAMPLES = """\
examples:
  callwright parse -t tools.json answer.txt         read in any dialect
  callwright parse -d qwen3_coder answer.txt        in one, calls of any tool
  callwright parse --chunk 1 --events answer.txt    character by character, each event on a line
  callwright parse --json answer.txt                one JSON object for a program
  callwright parse --jsonl cases.jsonl              a batch; each line: {"id", "dialect", "tools", "text"}

A tools file holds OpenAI tool objects: a list, or an object with the key "tools".
Without one, a named dialect takes every call it reads, and auto takes none.
"""


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "parse",
        help="show what the parser makes of a text",
        description="Read a model's output and show the text, the reasoning and the tool calls in it.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="the text; standard input when left out or -")
    parser.add_argument("-d", "--dialect", default="auto", metavar="NAME", help="dialect, model or parser name (auto)")
    parser.add_argument("-t", "--tools", metavar="FILE", help="JSON file with the tools that are offered")
    parser.add_argument(
        "-c", "--chunk", type=_parse_chunk_size, default=0, metavar="N", help="feed N characters at a time"
    )
    parser.add_argument(
        "--prefill", default="", metavar="TEXT", help="what the prompt wrote of the answer, e.g. <think>"
    )
    parser.add_argument(
        "--truncated", choices=("partial", "drop", "repair"), default="partial", help="what becomes of a cut-off call"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--events", action="store_true", help="each event as a line of JSON, as it happens")
    form.add_argument("--json", action="store_true", help="the whole turn as one JSON object")
    form.add_argument("--jsonl", action="store_true", help="a batch: one JSON object per line in, one per line out")
    parser.set_defaults(run=run_parse)


def _parse_chunk_size(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"a chunk has one character or more, not {text!r}")
    return int(text)


def run_parse(arguments: argparse.Namespace) -> int:
    """Read and show."""
    if arguments.jsonl:
        with _open_input(arguments.file) as lines:
            parse_batch.run_batch(
                lines, sys.stdout, default=arguments.dialect, size=arguments.chunk, truncated=arguments.truncated
            )
        return 0
    tools = _read_tools(arguments.tools) if arguments.tools else []
    parser = Parser(get_dialect(arguments.dialect), tools, prefill=arguments.prefill, truncated=arguments.truncated)
    events: list[Event] = []
    with _open_input(arguments.file) as file:
        for chunk in _read_chunks(file, arguments.chunk):
            events += _print_events(parser.feed(chunk), arguments)
    events += _print_events(parser.close(), arguments)
    turn = collect(events)
    if arguments.json:
        _print_json(parse_batch.turn_to_dict(turn))
    elif not arguments.events:
        turn_view.print_turn(turn)
        if not tools and parser.dialect.name == "auto":
            print("Only calls of offered tools count: offer some with --tools FILE, or name the --dialect.")
    return 0


def _open_input(name: str | None) -> Any:
    if name and name != "-":
        return Path(name).open("rb")
    if sys.stdin.isatty():
        print("Reading from the keyboard; end with Ctrl-D.", file=sys.stderr)
    return open(sys.stdin.fileno(), "rb", closefd=False)  # a file number has no path


def _read_chunks(file: Any, size: int) -> Iterator[str]:
    """The text as it arrives, cut to a size if one is given."""
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
        raise MisuseError(f"{name} must hold a list of tools, or an object with the key 'tools'")
    return tools


def _print_events(events: list[Event], arguments: argparse.Namespace) -> list[Event]:
    if arguments.events:
        for event in events:
            _print_json(event)
    return events


def _print_json(value: Any) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode("utf-8") + "\n")
    sys.stdout.flush()
