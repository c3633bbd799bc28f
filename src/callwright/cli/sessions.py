"""`callwright sessions`: what the agent did: list it, look at it, search it, forget it."""

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

from callwright.errors import MisuseError

if TYPE_CHECKING:
    from callwright.agent.changes.diff import Hunk
    from callwright.agent.session.change_review import ChangeReview
    from callwright.agent.session.session_manager import SessionArchive

__all__ = ["add_command"]

_EXAMPLES = """\
examples:
  callwright sessions                        the newest sessions
  callwright sessions search failing test    those in which this was said
  callwright sessions show 7f3a              all of one, as it was on the screen
  callwright sessions show 7f3a --json       its events, one JSON object on each line
  callwright sessions diff 7f3a              what it changed, and is neither kept nor undone
  callwright sessions undo 7f3a              take all of it back; what you changed since is left alone
  callwright sessions undo 7f3a --file a.py --hunk 2      or one change of one file
  callwright sessions keep 7f3a --task 1     keep what one task changed
  callwright sessions delete 7f3a            forget it; files are left as they are

callwright agent --resume 7f3a goes on with one.
"""
_UNSET: Any = argparse.SUPPRESS
"""What is said before the verb is not overwritten by what is not said after it."""
_SubcommandHandler = Callable[["SessionArchive", argparse.Namespace], Awaitable[None]]


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "sessions",
        help="what the agent did: list, show, search, diff, undo, keep, delete",
        description="The sessions of the agent.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_options(parser, _list_sessions)
    parser.set_defaults(words=[], limit=20, json=False, config=None)
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, (about, operand, verb) in _SUBCOMMANDS.items():
        each = verbs.add_parser(name, help=about, description=about)
        if operand == "ID":
            each.add_argument("session", metavar="ID", help="the session, as the list has it")
        elif operand:
            each.add_argument("words", nargs="+", metavar=operand, help="what was said in it")
        if verb in (_show_diff, _undo_changes, _keep_changes):
            each.add_argument("--task", type=int, default=0, metavar="N", help="only what that task changed: 1, 2 …")
            each.add_argument("--file", default="", metavar="PATH", help="only this file")
        if verb in (_undo_changes, _keep_changes):
            each.add_argument("--hunk", type=int, default=0, metavar="N", help="only the Nth change of the file")
        if verb is _undo_changes:
            each.add_argument("--force", action="store_true", help="also where you changed the same lines since")
        if verb is _list_sessions:
            each.add_argument("-n", dest="limit", type=int, metavar="N", default=_UNSET, help="at most so many (20)")
        _add_options(each, verb)


def _add_options(parser: argparse.ArgumentParser, verb: _SubcommandHandler) -> None:
    parser.add_argument("--json", action="store_true", default=_UNSET, help="as JSON, one object on each line")
    parser.add_argument("--config", type=Path, metavar="FILE", default=_UNSET, help="the configuration")
    parser.set_defaults(run=_run_subcommand, verb=verb)


def _run_subcommand(arguments: argparse.Namespace) -> int:
    from callwright.app import load_config, open_session_archive

    if arguments.limit < 1:
        raise MisuseError("-n must be 1 or more")

    async def run() -> None:
        config = load_config(getattr(arguments, "config", None), environment=os.environ)
        async with open_session_archive(config, environment=os.environ) as sessions:
            await arguments.verb(sessions, arguments)

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
        print("No session is like that." if arguments.words else "There are no sessions yet.")


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
        print("No changes that could be taken back.")


async def _undo_changes(sessions: SessionArchive, arguments: argparse.Namespace) -> None:
    async with sessions.open_review(arguments.session) as review:
        hunk = await _find_hunk_id(review, arguments)
        undone = await review.undo_changes(arguments.file, hunk, task=arguments.task, force=arguments.force)
    if arguments.json:
        _print_json_lines([undone])
        return
    for path in undone.paths:
        print(f"{path}: taken back")
    for conflict in undone.conflicts:
        print(conflict)
    if not undone.paths and not undone.conflicts:
        print("There was nothing to take back.")


async def _keep_changes(sessions: SessionArchive, arguments: argparse.Namespace) -> None:
    async with sessions.open_review(arguments.session) as review:
        kept = await review.keep_changes(arguments.file, await _find_hunk_id(review, arguments), task=arguments.task)
    if arguments.json:
        _print_json_lines([kept])
    else:
        print("\n".join(f"{path}: kept" for path in kept.paths) or "There was nothing to keep.")


async def _find_hunk_id(review: ChangeReview, arguments: argparse.Namespace) -> str:
    """The id of the change that `--hunk` counts to."""
    if not arguments.hunk:
        return ""
    files = {file.path: file.hunks for file in await review.list_file_reviews(arguments.task)}
    hunks = files.get(arguments.file, ())
    if not 1 <= arguments.hunk <= len(hunks):
        raise MisuseError(f"--hunk counts the changes of --file, of which there are {len(hunks)}; see sessions diff")
    chosen: Hunk = hunks[arguments.hunk - 1]
    return chosen.id


async def _delete_session(sessions: SessionArchive, arguments: argparse.Namespace) -> None:
    await sessions.delete(arguments.session)
    if not arguments.json:
        print(f"{arguments.session} is forgotten; files are as they were.")


def _print_json_lines(values: list[Any]) -> None:
    encoder = msgspec.json.Encoder()
    for value in values:
        sys.stdout.write(encoder.encode(value).decode() + "\n")


_SUBCOMMANDS: dict[str, tuple[str, str, _SubcommandHandler]] = {
    "list": ("one line for each session, the newest first", "", _list_sessions),
    "show": ("all of a session, as it was on the screen", "ID", _show_session),
    "search": ("the sessions in which something was said", "WORDS", _list_sessions),
    "diff": ("what a session changed that is neither kept nor undone", "ID", _show_diff),
    "undo": ("take changes back; what you changed since is left alone", "ID", _undo_changes),
    "keep": ("keep changes: they can no longer be taken back", "ID", _keep_changes),
    "delete": ("forget a session; files are left as they are", "ID", _delete_session),
}
