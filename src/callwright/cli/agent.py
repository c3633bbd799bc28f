"""`callwright agent`: coding work done with any model, in the terminal, in a browser, in scripts and in editors."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from callwright.agent.settings import AgentSettings
from callwright.errors import BackendError, ConfigError

if TYPE_CHECKING:
    from callwright.agent.answering import Ask
    from callwright.agent.sessions import Archive, SessionDesk
    from callwright.backends.base import Answer
    from callwright.config import Config
    from callwright.model import Request

__all__ = ["add", "open_archive", "open_desk", "run"]

_EXAMPLES = """\
examples:
  callwright agent "fix the failing test"            work on it here, asking before anything risky
  callwright agent                                   talk, task after task
  callwright agent --web                             the same in a browser
  callwright agent --json "add a changelog" < /dev/null    for scripts: events as JSON, what would be asked is denied
  callwright agent --resume                          go on with the session that was interrupted last
  callwright sessions                                what was done, and when

exit codes: 0 done, 1 failed or not finished, 2 wrong usage, 3 something was denied, 4 stopped by a limit, 130 stopped
"""


def add(commands: Any) -> None:
    """Add the command to the command line."""
    from callwright.cli.config import add_flags
    from callwright.cli.start import add_options

    parser = commands.add_parser(
        "agent",
        help="get coding work done with any model, under permissions that hold",
        description="A coding agent: it reads, edits and runs what the task needs, inside one folder, and asks first.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("task", nargs="*", metavar="TASK", help="what to do; without it you are asked")
    faces = parser.add_mutually_exclusive_group()
    faces.add_argument("--web", action="store_true", help="in a browser, at an address of this machine only")
    faces.add_argument("--json", action="store_true", help="events as JSON lines; what would be asked is denied")
    faces.add_argument("--headless", action="store_true", help="the same in words")
    faces.add_argument(
        "--acp", action="store_true", help="speak the Agent Client Protocol on standard input and output"
    )
    parser.add_argument("--resume", nargs="?", const="", metavar="ID", help="open a session again; the last without ID")
    parser.add_argument(
        "--workspace", type=Path, default=Path(), metavar="DIR", help="the folder to work in (this one)"
    )
    parser.add_argument("--policy", type=Path, metavar="FILE", help="rules for commands and files, instead of yours")
    limits = parser.add_argument_group("limits of one task")
    limits.add_argument("--iterations", type=int, metavar="N", help="how often the model may be asked")
    limits.add_argument("--tokens", type=int, metavar="N", help="how many tokens it may use")
    limits.add_argument("--seconds", type=float, metavar="S", help="how long it may work")
    limits.add_argument("--approve", choices=_approvals(), help="what needs no question; critical commands always do")
    limits.add_argument("--branch", action="store_const", const=True, help="make a git branch for each task")
    add_options(parser)
    add_flags(parser)
    parser.set_defaults(run=run)


def _approvals() -> tuple[str, ...]:
    hint = next(field.type for field in msgspec.structs.fields(AgentSettings) if field.name == "approve")
    return tuple(get_args(hint))


def run(arguments: argparse.Namespace) -> int:
    """Work."""
    return asyncio.run(_run(arguments))


async def _run(arguments: argparse.Namespace) -> int:
    task = " ".join(arguments.task).strip()
    if not task and not sys.stdin.isatty() and not (arguments.web or arguments.acp or arguments.resume is not None):
        task = sys.stdin.read().strip()
    if (arguments.json or arguments.headless) and not task and arguments.resume is None:
        raise ConfigError(["there is no task: name one, as in: callwright agent --json 'fix the failing test'"])
    async with open_desk(arguments) as desk:
        return await _face(arguments, desk, task)


async def _face(arguments: argparse.Namespace, desk: SessionDesk, task: str) -> int:
    if arguments.web:
        from callwright.cli.web import serve

        return await serve(desk, arguments.port, secrets.token_urlsafe(16))
    if arguments.acp:
        from callwright.agent.faces.acp import speak

        return await speak(desk)
    session = await _resumed(desk, arguments.resume)
    if arguments.json or arguments.headless:
        from callwright.agent.faces.headless import headless

        return await headless(await desk.open(session), task, json=arguments.json, resume=bool(session))
    from callwright.agent.faces.terminal import talk

    return await talk(desk, task=task, resume=session)


async def _resumed(desk: SessionDesk, asked: str | None) -> str:
    """The session to open again; empty for a new one."""
    if asked is None or asked:
        return asked or ""
    rows = [row for row in await desk.rows(limit=200) if row.workspace == desk.workspace and row.state != "working"]
    if not rows:
        raise ConfigError(["there is no session of this folder to go on with; see: callwright sessions"])
    return next((row for row in rows if row.state == "interrupted"), rows[0]).id


@asynccontextmanager
async def open_archive(arguments: argparse.Namespace) -> AsyncIterator[Archive]:
    """The sessions that there are, without any model."""
    from callwright.agent.sessions import Archive
    from callwright.agent.workshop import Locks
    from callwright.config import load, state_folder
    from callwright.store.opening import sessions_of

    config = load(getattr(arguments, "config", None), os.environ)
    folder = state_folder(os.environ)
    async with sessions_of(config.store, folder) as store:
        yield Archive(store.sessions, store.snapshots, Locks(folder / "sessions"))


@asynccontextmanager
async def open_desk(arguments: argparse.Namespace) -> AsyncIterator[SessionDesk]:
    """The workshop of a folder, with a model and tools, and its sessions."""
    from callwright.agent.policy import load_policy
    from callwright.agent.sandbox import choose_sandbox
    from callwright.agent.sessions import SessionDesk
    from callwright.agent.terminal import TerminalSettings
    from callwright.agent.tools import load_tools
    from callwright.agent.workshop import Locks, Workshop
    from callwright.agent.workspace import Workspace
    from callwright.config import state_folder
    from callwright.store.opening import sessions_of

    config = _config(arguments)
    settings = _settings(config.agent, arguments)
    workspace = Workspace(arguments.workspace)
    policy = load_policy(arguments.policy or _my_policy(os.environ), workspace.root / ".callwright" / "policy.toml")
    folder = state_folder(os.environ)
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(sessions_of(config.store, folder))
        ask, model, window = await stack.enter_async_context(_model(config, settings.model))
        tools = await stack.enter_async_context(load_tools(config.mcp, workspace))
        yield SessionDesk(
            Workshop(
                ask=ask,
                model=model,
                window=window,
                workspace=workspace,
                policy=policy,
                tools=tools,
                settings=settings,
                terminal=TerminalSettings(timeout_s=settings.command_seconds),
                sandbox=await choose_sandbox(settings.sandbox, network=settings.network),
                sessions=store.sessions,
                snapshots=store.snapshots,
                locks=Locks(folder / "sessions"),
                environment=os.environ,
                options={},
            )
        )


def _config(arguments: argparse.Namespace) -> Config:
    """The configuration. `--model` chooses among all models here, unless it is that of a `--backend`."""
    from callwright.cli.start import start

    chosen = "" if arguments.backend else arguments.model
    if chosen:
        arguments.model = None
    config = start(arguments).load()
    return msgspec.structs.replace(
        config, agent=msgspec.structs.replace(config.agent, model=chosen or config.agent.model)
    )


def _settings(settings: AgentSettings, arguments: argparse.Namespace) -> AgentSettings:
    names = ("iterations", "tokens", "seconds", "approve", "branch")
    given = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    try:
        return msgspec.convert({**msgspec.to_builtins(settings), **given}, AgentSettings)
    except msgspec.ValidationError as problem:
        raise ConfigError([f"--{str(problem).rpartition('$.')[2].rstrip('`')} cannot be that: {problem}"]) from None


def _my_policy(environ: Mapping[str, str]) -> Path | None:
    from callwright.config.sources import config_folder

    file = config_folder(environ) / "policy.toml"
    return file if file.exists() else None


@asynccontextmanager
async def _model(config: Config, name: str) -> AsyncIterator[tuple[Ask, str, int]]:
    """A model, asked by the engine in this process; its name, and its window."""
    from callwright.backends import open_backend
    from callwright.config.templates import load_templates
    from callwright.engine import Engine, TurnReport
    from callwright.wire.base import Ask as Asked

    backends = {each.name: open_backend(each) for each in config.backends}
    engine = Engine(config.models, backends, config.tools, config.jobs, config.prompt, load_templates(config))

    def ask(request: Request) -> Answer:
        route = engine.route(request.model)
        return engine.turn(Asked(request=request, stream=True), route, route.rules, TurnReport())

    try:
        silent = await engine.refresh()
        if not engine.models:
            raise BackendError("; ".join(silent.values()) or "the backends have no models")
        found = {name: model for model in engine.models for name in (model.name, *model.aliases)}
        if name and name not in found:
            raise ConfigError([f"there is no model {name!r}; there are: {', '.join(found)}"])
        model = found[name] if name else engine.models[0]
        yield ask, model.name, model.context
    finally:
        await engine.close()
