"""What the agent works with, put together: a model, tools, rules, a sandbox and the store, for any folder."""

from __future__ import annotations

import argparse
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from callwright.agent.mcp.session_servers import TrustedProjects
from callwright.agent.policy import load_policy
from callwright.agent.session.context import AgentContext, SessionLocks
from callwright.agent.session.session_manager import SessionArchive, SessionManager
from callwright.agent.settings import AgentSettings
from callwright.agent.shell.protection import make_protection_scanner
from callwright.agent.shell.sandbox import SandboxSettings, open_sandbox
from callwright.agent.shell.terminal import TerminalSettings
from callwright.agent.tools import BUILTIN_TOOLS, load_plugins
from callwright.agent.workspace.workspace import Workspace
from callwright.backends import open_backend
from callwright.cli.startup import build_config_loader
from callwright.config import Config, get_state_folder, load_config
from callwright.config.sources import get_config_folder
from callwright.config.template_files import load_templates
from callwright.engine import Engine, ModelRoute, TurnReport
from callwright.errors import BackendError, ConfigError
from callwright.store.open import AgentStore, open_agent_store
from callwright.wire.base import ClientRequest as Asked

if TYPE_CHECKING:
    from callwright.agent.mcp.settings import McpSettings
    from callwright.agent.session.model_calls import RunTurn
    from callwright.backends.base import EventStream
    from callwright.model import Request

_SMALL_WINDOW = 32_768

__all__ = ["AgentApp", "load_agent_config", "open_agent", "open_session_archive"]


@asynccontextmanager
async def open_session_archive(arguments: argparse.Namespace) -> AsyncIterator[SessionArchive]:
    """The sessions that there are, without any model."""
    config = load_config(getattr(arguments, "config", None), os.environ)
    folder = get_state_folder(os.environ)
    async with open_agent_store(config.store, folder) as store:
        yield SessionArchive(store.sessions, store.snapshots, SessionLocks(folder / "sessions"))


@asynccontextmanager
async def open_agent(arguments: argparse.Namespace, config: Config) -> AsyncIterator[AgentApp]:
    """Everything but the folder."""
    settings = _apply_flags(config.agent, arguments)
    async with (
        open_agent_store(config.store, get_state_folder(os.environ)) as store,
        _open_model(config, settings) as model,
    ):
        bench = AgentApp(config, settings, store, model, arguments.policy)
        try:
            yield bench
        finally:
            bench.exit_stack.close()


class AgentModel(NamedTuple):
    """The model that works."""

    run_turn: RunTurn
    name: str
    context_window: int
    options: dict[str, Any]
    """Of every request."""


@dataclass
class AgentApp:
    """Opens workshops."""

    config: Config
    settings: AgentSettings
    store: AgentStore
    model: AgentModel
    policy_file: Path | None
    exit_stack: ExitStack = field(default_factory=ExitStack)
    warnings: tuple[str, ...] = ()
    """What a person should know of tools that cannot be used."""

    async def create_session_manager(self, folder: Path, servers: Sequence[McpSettings] = ()) -> SessionManager:
        """The sessions of a folder; `servers` are MCP servers besides those of the settings."""
        workspace = Workspace(folder)
        root = workspace.root
        mine = self.policy_file or get_config_folder(os.environ) / "policy.toml"
        policy = load_policy(mine, root / ".callwright" / "policy.toml", workspace=root)
        sandbox = open_sandbox(
            workspace,
            SandboxSettings(mode=self.settings.sandbox, network=self.settings.network),
            environment=os.environ,
            find_protected=make_protection_scanner(workspace, policy),
        )
        self.exit_stack.callback(sandbox.close)
        own = {tool.spec.name: tool for tool in BUILTIN_TOOLS}
        plugins, self.warnings = load_plugins(own)
        state = get_state_folder(os.environ)
        return SessionManager(
            AgentContext(
                run_turn=self.model.run_turn,
                model=self.model.name,
                window=self.model.context_window,
                request_options=self.model.options,
                workspace=workspace,
                policy=policy,
                tools=own | {plugin.tool.spec.name: plugin.tool for plugin in plugins},
                settings=self.settings,
                terminal_settings=TerminalSettings(timeout_s=self.settings.command_seconds),
                sandbox=sandbox,
                sessions=self.store.sessions,
                snapshots=self.store.snapshots,
                locks=SessionLocks(state / "sessions"),
                mcp_servers=(*self.config.mcp, *servers),
                trusted_projects=TrustedProjects(state / "approved-mcp.json"),
                environment=os.environ,
            )
        )


def load_agent_config(arguments: argparse.Namespace) -> Config:
    """The configuration, or what is found on this machine; looking for it takes a loop of its own. `--model` chooses
    among all models here, unless it is that of a `--backend`."""
    chosen = "" if arguments.backend else arguments.model
    if chosen:
        arguments.model = None
    config = build_config_loader(arguments).load()
    agent = msgspec.structs.replace(config.agent, model=chosen or config.agent.model)
    return msgspec.structs.replace(config, agent=agent)


def _apply_flags(settings: AgentSettings, arguments: argparse.Namespace) -> AgentSettings:
    """What holds for this run; the flags have been checked by the same types as the file."""
    names = ("iterations", "tokens", "seconds", "approve", "branch")
    given = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    try:
        return msgspec.convert({**msgspec.to_builtins(settings), **given}, AgentSettings)
    except msgspec.ValidationError as problem:
        raise ConfigError([f"a limit cannot be that: {problem}"]) from None


@asynccontextmanager
async def _open_model(config: Config, settings: AgentSettings) -> AsyncIterator[AgentModel]:
    """A model, asked by the engine in this process."""
    name = settings.model
    backends = {each.name: open_backend(each) for each in config.backends}
    engine = Engine(config.models, backends, config.tools, config.jobs, config.prompt, load_templates(config))

    def ask(request: Request) -> EventStream:
        route = engine.get_route(request.model)
        return engine.run_turn(Asked(request=request, stream=True), route, route.rules, TurnReport())

    try:
        silent = await engine.refresh_models()
        if not engine.models:
            raise BackendError("; ".join(silent.values()) or "the backends have no models")
        found = {called: model for model in engine.models for called in (model.name, *model.aliases)}
        if name and name not in found:
            raise ConfigError([f"there is no model {name!r}; there are: {', '.join(found)}"])
        model = found[name] if name else engine.models[0]
        yield AgentModel(
            ask,
            model.name,
            model.context,
            _build_request_options(settings, engine.get_route(model.name), model.context),
        )
    finally:
        await engine.close()


def _build_request_options(settings: AgentSettings, route: ModelRoute, window: int) -> dict[str, Any]:
    """A small model that repeats itself would fill its window: nothing but a limit ends that."""
    if settings.answer_tokens:
        return {"max_tokens": settings.answer_tokens}
    if window > _SMALL_WINDOW or "max_tokens" in route.settings.options:
        return {}
    return {"max_tokens": window // 4}
