"""`callwright sessions`: list, show, search and delete the agent's sessions, and review their changes."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from callwright.cli.subcommands import add_subcommand
from callwright.errors import MisuseError

if TYPE_CHECKING:
    from callwright.agent.changes.diff import Hunk
    from callwright.agent.session.change_review import ChangeReview
    from callwright.agent.session.session_manager import SessionArchive

__all__ = ["add_command"]

_EXAMPLES = """\
examples:
  callwright sessions                        list the newest sessions
  callwright sessions search failing test    search the sessions
  callwright sessions show 1101-7f           show a whole session
  callwright sessions show 1101-7f --json    print its events as JSON lines
  callwright sessions diff 1101-7f           show its pending changes
  callwright sessions undo 1101-7f           undo all its changes
  callwright sessions undo 1101-7f --file a.py --hunk 2
  callwright sessions keep 1101-7f --task 1  keep the changes of one task
  callwright sessions delete 1101-7f         delete the session, not its files
  callwright agent --resume 1101-7f          resume the session
"""
_UNSET: Any = argparse.SUPPRESS
"""The default of an option of a subcommand: it leaves a value that was set before the subcommand."""
_SubcommandHandler = Callable[["SessionArchive", argparse.Namespace], Awaitable[None]]


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "sessions",
        help="list and review the agent's sessions",
        description="List, show, search and delete the agent's sessions, and review their changes.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_options(parser, _list_sessions)
    parser.set_defaults(words=[], limit=20, json=False, config=None)
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, (about, operand, handler) in _SUBCOMMANDS.items():
        verb = add_subcommand(verbs, name, about)
        if operand == "ID":
            verb.add_argument("session", metavar="ID", help="session id, or the start of it")
        elif operand:
            verb.add_argument("words", nargs="+", metavar=operand, help="words to search for")
        if handler in (_show_diff, _undo_changes, _keep_changes):
            verb.add_argument("--task", type=int, default=0, metavar="N", help="only changes of the Nth task")
            verb.add_argument("--file", default="", metavar="PATH", help="only changes of this file")
        if handler in (_undo_changes, _keep_changes):
            verb.add_argument("--hunk", type=int, default=0, metavar="N", help="only the Nth hunk of --file")
        if handler is _undo_changes:
            verb.add_argument("--force", action="store_true", help="also undo lines that you changed later")
        if handler is _list_sessions:
            verb.add_argument(
                "-n", "--limit", type=int, metavar="N", default=_UNSET, help="maximum number of sessions (default: 20)"
            )
        _add_options(verb, handler)


def _add_options(parser: argparse.ArgumentParser, handler: _SubcommandHandler) -> None:
    parser.add_argument("--json", action="store_true", default=_UNSET, help="output JSON lines")
    parser.add_argument("--config", type=Path, metavar="FILE", default=_UNSET, help="configuration file")
    parser.set_defaults(run=_run_subcommand, handler=handler)


def _run_subcommand(arguments: argparse.Namespace) -> int:
    from callwright.app import load_config, open_session_archive

    if arguments.limit < 1:
        raise MisuseError("--limit must be at least 1")

    async def run() -> None:
        config = load_config(getattr(arguments, "config", None), environment=os.environ)
        async with open_session_archive(config, environment=os.environ) as sessions:
            await arguments.handler(sessions, arguments)

    asyncio.run(run())
    return 0


async def _list_sessions(sessions: SessionArchive, arguments: argparse.Namespace) -> None:
    rows = await sessions.list_sessions(" ".join(arguments.words), limit=arguments.limit)
    if arguments.json:
        _print_json_lines(rows)
    elif rows:
        from rich.console import Console

        from callwright.agent.ui.console.slash_commands import build_sessions_table

        Console(highlight=False).print(build_sessions_table(rows, home=str(Path.home()), now=time.time()))
    else:
        print("No matching sessions." if arguments.words else "No sessions yet.")


async def _show_session(sessions: SessionArchive, arguments: argparse.Namespace) -> None:
    events = await sessions.load_events(arguments.session)
    if arguments.json:
        _print_json_lines(events)
        return
    from rich.console import Console

    from callwright.agent.ui.console.session_transcript import render_stored_session

    console = Console(highlight=False)
    for piece in render_stored_session(events, home=str(Path.home())):
        console.print(piece)


async def _show_diff(sessions: SessionArchive, arguments: argparse.Namespace) -> None:
    async with sessions.open_review(arguments.session) as review:
        files = [file for file in await review.list_file_reviews(arguments.task) if arguments.file in ("", file.path)]
    if arguments.json:
        _print_json_lines(files)
        return
    from rich.console import Console

    from callwright.agent.ui.console.slash_commands import build_review_view

    console = Console(highlight=False)
    for file in files:
        console.print(build_review_view(file))
    if not files:
        print("No pending changes.")


async def _undo_changes(sessions: SessionArchive, arguments: argparse.Namespace) -> None:
    async with sessions.open_review(arguments.session) as review:
        hunk = await _find_hunk_id(review, arguments)
        undone = await review.undo_changes(arguments.file, hunk, task=arguments.task, force=arguments.force)
    if arguments.json:
        _print_json_lines([undone])
        return
    for path in undone.paths:
        print(f"{path}: undone")
    for conflict in undone.conflicts:
        print(conflict)
    if not undone.paths and not undone.conflicts:
        print("Nothing to undo.")


async def _keep_changes(sessions: SessionArchive, arguments: argparse.Namespace) -> None:
    async with sessions.open_review(arguments.session) as review:
        kept = await review.keep_changes(arguments.file, await _find_hunk_id(review, arguments), task=arguments.task)
    if arguments.json:
        _print_json_lines([kept])
    else:
        print("\n".join(f"{path}: kept" for path in kept.paths) or "Nothing to keep.")


async def _find_hunk_id(review: ChangeReview, arguments: argparse.Namespace) -> str:
    """Return the id of the hunk that `--hunk` numbers."""
    if not arguments.hunk:
        return ""
    files = {file.path: file.hunks for file in await review.list_file_reviews(arguments.task)}
    hunks = files.get(arguments.file, ())
    if not 1 <= arguments.hunk <= len(hunks):
        raise MisuseError(
            f"--hunk must be the number of a hunk of --file, which has {len(hunks)}; see callwright sessions diff"
        )
    chosen: Hunk = hunks[arguments.hunk - 1]
    return chosen.id


async def _delete_session(sessions: SessionArchive, arguments: argparse.Namespace) -> None:
    await sessions.delete(arguments.session)
    if not arguments.json:
        print(f"Deleted session {arguments.session}. Files were not changed.")


def _print_json_lines(values: list[Any]) -> None:
    encoder = msgspec.json.Encoder()
    for value in values:
        sys.stdout.write(encoder.encode(value).decode() + "\n")


_SUBCOMMANDS: dict[str, tuple[str, str, _SubcommandHandler]] = {
    "list": ("list sessions, newest first", "", _list_sessions),
    "show": ("show a whole session", "ID", _show_session),
    "search": ("list the sessions that contain some words", "QUERY", _list_sessions),
    "diff": ("show changes that are neither kept nor undone", "ID", _show_diff),
    "undo": ("undo changes; lines that you changed later stay", "ID", _undo_changes),
    "keep": ("keep changes; they can no longer be undone", "ID", _keep_changes),
    "delete": ("delete a session; its files are not changed", "ID", _delete_session),
}
