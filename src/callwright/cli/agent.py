"""`callwright agent`: run the coding agent in the terminal, in a browser, from scripts or from an editor."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from callwright.agent.settings import AgentSettings
from callwright.config.decode import describe_type
from callwright.errors import BackendError, ConfigError

if TYPE_CHECKING:
    from callwright.agent.session.agent_app import AgentApp
    from callwright.agent.session.session_manager import SessionManager
    from callwright.config import Config

__all__ = ["add_command", "load_agent_config", "run_agent"]

_EXAMPLES = """\
examples:
  callwright agent "fix the failing test"   run one task, then wait for more
  callwright agent                          start without a task
  callwright agent --web                    work in a browser
  callwright agent --json "add tests"       print events as JSON, for scripts
  callwright agent --resume                 resume the latest session
  callwright sessions                       list earlier sessions

exit codes:
  0 done, 1 failed or unfinished, 2 usage error, 3 an action was denied,
  4 a limit was reached, 130 interrupted
"""


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    from callwright.cli.config import add_journal_flag
    from callwright.cli.startup import add_model_options

    parser = commands.add_parser(
        "agent",
        help="run the coding agent",
        description="Run a coding agent. It reads and edits files in one folder, runs commands,\n"
        "and asks before it does anything risky.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("task", nargs="*", metavar="TASK", help="the task; omit it to type one")
    ui = parser.add_mutually_exclusive_group()
    ui.add_argument("--web", action="store_true", help="open a page in the browser, on this machine only")
    ui.add_argument("--json", action="store_true", help="print events as JSON lines and deny what needs approval")
    ui.add_argument("--headless", action="store_true", help="like --json, but as plain text")
    ui.add_argument("--acp", action="store_true", help="speak the Agent Client Protocol on standard input and output")
    parser.add_argument("--port", type=int, metavar="N", help="port of --web (default: a free one)")
    parser.add_argument("--once", action="store_true", help="exit after the task, even in a terminal")
    parser.add_argument("--resume", nargs="?", const="", metavar="ID", help="resume session ID (default: the latest)")
    parser.add_argument(
        "--workspace", type=Path, default=Path(), metavar="DIR", help="folder to work in (default: this one)"
    )
    parser.add_argument("--policy", type=Path, metavar="FILE", help="policy file to use instead of yours")
    limits = parser.add_argument_group("limits for each task")
    limits.add_argument("--max-iterations", type=int, metavar="N", help="maximum number of model calls")
    limits.add_argument("--max-tokens", type=int, metavar="N", help="maximum number of tokens")
    limits.add_argument("--timeout", dest="timeout_seconds", type=float, metavar="SECONDS", help="maximum working time")
    limits.add_argument(
        "--approve",
        choices=_list_approval_modes(),
        help="what to run without asking; critical commands always ask",
    )
    limits.add_argument("--branch", action="store_const", const=True, help="create a git branch for each task")
    add_model_options(parser)
    add_journal_flag(parser)
    parser.set_defaults(run=run_agent)


def _list_approval_modes() -> tuple[str, ...]:
    hint = next(field.type for field in msgspec.structs.fields(AgentSettings) if field.name == "approve")
    return tuple(get_args(hint))


def run_agent(arguments: argparse.Namespace) -> int:
    """Run the agent. A backend error gives exit code 1, not 2, because it is no usage error."""
    task = " ".join(arguments.task).strip()
    if not task and not sys.stdin.isatty() and not (arguments.web or arguments.acp or arguments.resume is not None):
        task = sys.stdin.read().strip()
    if (arguments.json or arguments.headless) and not task and arguments.resume is None:
        raise ConfigError(["no task given; pass one, e.g. callwright agent --json 'fix the failing test'"])
    _check_flags(arguments, task)
    try:
        return asyncio.run(_start_agent(arguments, load_agent_config(arguments), task))
    except BackendError as problem:
        print(f"callwright: {problem}", file=sys.stderr)
        return 1


def _check_flags(arguments: argparse.Namespace, task: str) -> None:
    """Reject flags that would have no effect."""
    if arguments.port is not None and not arguments.web:
        raise ConfigError(["--port needs --web"])
    ui = "--web" if arguments.web else "--acp" if arguments.acp else ""
    if ui and (task or arguments.resume is not None):
        unused = "a task" if task else "--resume"
        where = "in the browser" if arguments.web else "in the editor"
        raise ConfigError([f"{unused} has no effect with {ui}; start tasks and resume sessions {where}"])


def load_agent_config(arguments: argparse.Namespace) -> Config:
    """Load the configuration, or discover the servers of this machine, and apply the flags of the agent.

    With `--backend`, `--model` is a model of that server; otherwise it chooses among all models. Discovery runs an
    event loop, so call this outside of one.
    """
    from callwright.cli.startup import build_config_loader

    chosen = "" if arguments.backend else arguments.model
    if chosen:
        arguments.model = None
    config = build_config_loader(arguments).load()
    return msgspec.structs.replace(config, agent=_apply_flags(config.agent, arguments, chosen or config.agent.model))


def _apply_flags(settings: AgentSettings, arguments: argparse.Namespace, model: str) -> AgentSettings:
    """Return the settings with the flags applied. The same types check flags and file."""
    names = ("max_iterations", "max_tokens", "timeout_seconds", "approve", "branch")
    flags = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    types = {field.name: field.type for field in msgspec.structs.fields(AgentSettings)}
    for name, value in flags.items():
        try:
            msgspec.convert(value, types[name])
        except msgspec.ValidationError:
            flag = f"--{name.removesuffix('_seconds').replace('_', '-')}"
            message = f"invalid limit: {flag} must be {describe_type(types[name])}, not {value}"
            raise ConfigError([message]) from None
    return msgspec.structs.replace(settings, **flags, model=model)


async def _start_agent(arguments: argparse.Namespace, config: Config, task: str) -> int:
    from callwright.app import open_agent_app

    async with open_agent_app(config, policy_file=arguments.policy, environment=os.environ) as agent:
        if arguments.acp:
            return await _serve_acp(agent)
        manager = await agent.create_session_manager(arguments.workspace)
        for warning in agent.warnings:
            print(f"callwright: {warning}", file=sys.stderr)
        return await (_serve_web(manager, arguments) if arguments.web else _run_in_terminal(manager, arguments, task))


async def _run_in_terminal(manager: SessionManager, arguments: argparse.Namespace, task: str) -> int:
    """Run the terminal UI, or a headless task."""
    session = await _find_session_id(manager, arguments.resume)
    if arguments.json or arguments.headless:
        from callwright.agent.ui.headless import run_headless

        return await run_headless(await manager.open(session), task, json=arguments.json, resume=bool(session))
    from callwright.agent.ui.console import run_terminal_ui
    from callwright.config import get_state_folder

    return await run_terminal_ui(
        manager, task=task, resume=session, once=arguments.once, history=get_state_folder(os.environ) / "typed"
    )


async def _find_session_id(manager: SessionManager, requested: str | None) -> str:
    """Return the id of the session to resume; empty for a new session."""
    if requested is None or requested:
        return requested or ""
    rows = [
        row
        for row in await manager.list_sessions(limit=200)
        if row.workspace == manager.workspace and row.state != "working"
    ]
    if not rows:
        raise ConfigError(["no session to resume in this folder; callwright sessions lists all sessions"])
    return next((row for row in rows if row.state == "interrupted"), rows[0]).id


async def _serve_acp(agent: AgentApp) -> int:
    from callwright import __version__
    from callwright.agent.ui.acp import serve_acp
    from callwright.agent.ui.stdio import open_stdio

    async with open_stdio() as lines:
        return await serve_acp(lines, agent.create_session_manager, __version__)


async def _serve_web(manager: SessionManager, arguments: argparse.Namespace) -> int:
    import uvicorn

    from callwright.agent.ui.web import build_page_url, create_web_app
    from callwright.gateway.server import open_listener

    token = secrets.token_urlsafe(16)
    listener = open_listener("127.0.0.1", int(arguments.port or 0))
    url = build_page_url(f"http://127.0.0.1:{listener.getsockname()[1]}", token)
    print(f"The agent works in {manager.workspace}. Open this private link in your browser:\n\n  {url}\n", flush=True)
    server = uvicorn.Server(
        uvicorn.Config(create_web_app(manager, token), log_level="warning", lifespan="on", ws="websockets-sansio")
    )
    await server.serve(sockets=[listener])
    return 0
