"""`callwright journal`: list, show, replay and export recorded turns."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.text import Text

from callwright.cli import journal_view
from callwright.cli.subcommands import add_subcommand
from callwright.errors import CallwrightError, MisuseError, StoreError
from callwright.store.journal_records import JournalEntry, JournalQuery

if TYPE_CHECKING:
    from callwright.config import Config

__all__ = ["add_command"]

_EXAMPLES = """\
examples:
  callwright serve --journal full            record every turn in full
  callwright journal list --failed           list failed turns
  callwright journal show 42                 show one turn
  callwright journal replay 42               run it again and show differences
  callwright journal replay --model coder    replay the latest turns of a model
  callwright journal export 42 > turn.jsonl  export a turn, e.g. for a report
  callwright journal replay --file turn.jsonl

An ID is the number of a turn, or the request id of its response.
"""
_SUBCOMMANDS = {
    "list": "list turns, newest first",
    "show": "show everything that was recorded of a turn",
    "replay": "replay turns with the current code and settings; exit code 1 if the result differs",
    "export": "print turns as JSON lines",
}


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "journal",
        help="list, show, replay and export recorded turns",
        description="List, show, replay and export the turns that the journal has recorded.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=lambda _: parser.print_help() or 0)
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, run in (("list", _run_list), ("show", _run_show), ("replay", _run_replay), ("export", _run_export)):
        verb = add_subcommand(verbs, name, _SUBCOMMANDS[name])
        verb.add_argument("ids", nargs="*", metavar="ID", help="turn number or request id (default: the newest turns)")
        verb.add_argument("--model", default="", metavar="NAME", help="only turns of this model")
        verb.add_argument("--contains", dest="text", default="", metavar="TEXT", help="only turns that contain TEXT")
        verb.add_argument("--failed", action="store_true", help="only turns that failed")
        verb.add_argument(
            "--since", type=_parse_time, metavar="TIME", help="only turns since TIME, e.g. 2026-11-01T08:30"
        )
        verb.add_argument(
            "-n",
            "--limit",
            type=int,
            metavar="N",
            help=f"maximum number of turns (default: {_get_default_limit(name)}, and all of --file)",
        )
        verb.add_argument("--config", type=Path, metavar="FILE", help="configuration file")
        verb.add_argument("--file", type=Path, metavar="FILE", help="read exported turns from FILE")
        if name != "export":
            verb.add_argument("--json", action="store_true", help="output JSON")
        verb.set_defaults(run=run, default_limit=_get_default_limit(name))


def _get_default_limit(name: str) -> int:
    return 1 if name == "show" else 20


def _parse_time(text: str) -> float:
    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a date or time such as 2026-11-01T08:30, not {text!r}") from None


def _run_list(arguments: argparse.Namespace) -> int:
    entries = _find_entries(arguments)
    if arguments.json:
        _print_json([journal_view.summarize_entry(entry) for entry in entries])
    elif entries:
        Console(highlight=False).print(journal_view.build_entry_table(entries))
    else:
        print("No matching turns in the journal.")
    return 0


def _run_show(arguments: argparse.Namespace) -> int:
    entries = _find_entries(arguments)
    if arguments.json:
        _print_json(entries)
        return 0
    console = Console(highlight=False)
    for entry in entries:
        journal_view.print_entry(entry, console)
    return 0


def _run_export(arguments: argparse.Namespace) -> int:
    for entry in reversed(_find_entries(arguments)):
        sys.stdout.write(msgspec.json.encode(entry).decode() + "\n")
    return 0


def _run_replay(arguments: argparse.Namespace) -> int:
    config = _load_config(arguments)
    console = Console(highlight=False)
    results: list[dict[str, Any]] = []
    for entry in reversed(_find_entries(arguments, config)):
        try:
            now = asyncio.run(_replay_entry(entry, config))
        except CallwrightError as problem:
            results.append({"number": entry.number, "same": None, "problem": str(problem)})
            changes = [str(problem)]
        else:
            changes = journal_view.compare_entries(entry, now)
            results.append({"number": entry.number, "same": not changes, "changes": changes})
        if not arguments.json:
            name = Text.assemble((f"{entry.number or '–'}  ", "bold"), f"{entry.request_id}  ")
            console.print(name.append("different", "yellow") if changes else name.append("the same", "green"))
            for line in changes:
                console.print(Text(f"  {line}", style={"+": "green", "-": "red"}.get(line[:1], "")))
    if arguments.json:
        _print_json(results)
    return 0 if all(result["same"] for result in results) else 1


async def _replay_entry(entry: JournalEntry, config: Config) -> JournalEntry:
    from callwright.app import build_engine
    from callwright.gateway.replay import build_replay_backends, replay_turn

    backends = build_replay_backends(entry, (backend.name for backend in config.backends))
    return await replay_turn(entry, build_engine(config, backends))


def _load_config(arguments: argparse.Namespace) -> Config:
    from callwright.app import load_config

    return load_config(arguments.config, environment=os.environ)


def _find_entries(arguments: argparse.Namespace, config: Config | None = None) -> list[JournalEntry]:
    """Return the requested entries, newest first. Raises `StoreError` for an unknown id."""
    if arguments.limit is not None and arguments.limit < 1:
        raise MisuseError("--limit must be at least 1")
    filters = {"model": "--model", "text": "--contains", "failed": "--failed", "since": "--since", "limit": "--limit"}
    if arguments.ids and (used := [flag for name, flag in filters.items() if getattr(arguments, name)]):
        raise MisuseError(f"{used[0]} has no effect with an ID; pass one or the other")
    if arguments.file:
        return [entry for entry in _read_export(arguments.file) if _is_wanted(entry, arguments)][: arguments.limit]
    return asyncio.run(_search_journal(arguments, config or _load_config(arguments)))


async def _search_journal(arguments: argparse.Namespace, config: Config) -> list[JournalEntry]:
    from callwright.config import get_state_folder
    from callwright.store.open import open_journal_search

    async with open_journal_search(config.store, get_state_folder(os.environ)) as find:
        if not arguments.ids:
            names = ("model", "text", "failed", "since")
            limit = arguments.limit or arguments.default_limit
            return await find(JournalQuery(limit=limit, **{name: getattr(arguments, name) for name in names}))
        entries: list[JournalEntry] = []
        for name in arguments.ids:
            query = (
                JournalQuery(number=int(name), limit=1) if name.isdecimal() else JournalQuery(request_id=name, limit=1)
            )
            if not (matching := await find(query)):
                raise StoreError(f"no turn {name} in the journal; callwright journal list shows the newest turns")
            entries += matching
        return entries


def _is_wanted(entry: JournalEntry, arguments: argparse.Namespace) -> bool:
    """Return whether an exported entry matches the flags, by the rules of the store."""
    if arguments.ids:
        return bool({str(entry.number), entry.request_id} & {*arguments.ids})
    return (
        arguments.model in ("", entry.model)
        and (not arguments.failed or entry.status >= 400)
        and (arguments.since is None or entry.at >= arguments.since)
        and (not arguments.text or arguments.text.lower() in _encode_content(entry).lower())
    )


def _encode_content(entry: JournalEntry) -> str:
    """Return the texts of a turn as JSON."""
    texts = (entry.client_sent, entry.asked, entry.client_got, entry.problem)
    return msgspec.json.encode(texts).decode()


def _read_export(path: Path) -> list[JournalEntry]:
    """Read exported entries, newest first."""
    try:
        lines = path.read_bytes().splitlines()
        return [msgspec.json.decode(line, type=JournalEntry) for line in reversed(lines) if line.strip()]
    except msgspec.DecodeError as problem:
        raise StoreError(f"{path} is not a journal export: {problem}") from None


def _print_json(value: Sequence[Any]) -> None:
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
