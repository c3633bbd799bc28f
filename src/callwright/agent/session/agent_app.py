"""The agent of one process: its model, settings and store, ready to open sessions in any folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from callwright.agent.mcp.session_servers import TrustedProjects
from callwright.agent.mcp.settings import McpSettings
from callwright.agent.policy import load_policy
from callwright.agent.session.context import AgentContext, SessionLocks
from callwright.agent.session.model_calls import RunTurn
from callwright.agent.session.session_manager import SessionManager
from callwright.agent.settings import AgentSettings
from callwright.agent.shell.protection import make_protection_scanner
from callwright.agent.shell.sandbox import SandboxSettings, open_sandbox
from callwright.agent.shell.terminal import TerminalSettings
from callwright.agent.tools import BUILTIN_TOOLS, load_plugins
from callwright.agent.workspace.workspace import Workspace
from callwright.engine import Engine, ModelRoute
from callwright.errors import ConfigError
from callwright.store.open import AgentStore

__all__ = ["AgentApp", "AgentModel", "choose_model"]

_SMALL_WINDOW = 32_768


class AgentModel(NamedTuple):
    """The model that the agent uses."""

    run_turn: RunTurn
    name: str
    context_window: int
    options: dict[str, Any]
    """Sent with every request."""


def choose_model(engine: Engine, settings: AgentSettings) -> AgentModel:
    """Return the model that the settings name, or the engine's first. Raises `ConfigError` if there is no such
    model.
    """
    found = {name: model for model in engine.models for name in (model.name, *model.aliases)}
    if settings.model and settings.model not in found:
        raise ConfigError([f"no model named {settings.model!r}; available: {', '.join(found)}"])
    model = found[settings.model] if settings.model else engine.models[0]
    options = _build_request_options(settings, engine.get_route(model.name), model.context)
    return AgentModel(engine.stream_turn, model.name, model.context, options)


def _build_request_options(settings: AgentSettings, route: ModelRoute, window: int) -> dict[str, Any]:
    """Return request options that limit the answer: a small model that repeats itself would fill its window."""
    if settings.answer_tokens:
        return {"max_tokens": settings.answer_tokens}
    if window > _SMALL_WINDOW or "max_tokens" in route.settings.options:
        return {}
    return {"max_tokens": window // 4}


@dataclass
class AgentApp:
    """Opens the sessions of any folder. `close` deletes the sandboxes' private folders."""

    settings: AgentSettings
    model: AgentModel
    store: AgentStore
    mcp_servers: Sequence[McpSettings]
    policy_file: Path
    """The user's own rules; a project may add its own."""
    state_folder: Path
    environment: Mapping[str, str] = field(repr=False)
    warnings: tuple[str, ...] = ()
    """Warnings about tools that cannot be used."""
    _exit_stack: ExitStack = field(default_factory=ExitStack)

    async def create_session_manager(self, folder: Path, servers: Sequence[McpSettings] = ()) -> SessionManager:
        """Return the session manager of a folder; `servers` are MCP servers in addition to those of the settings."""
        workspace = Workspace(folder)
        root = workspace.root
        policy = load_policy(self.policy_file, root / ".callwright" / "policy.toml", workspace=root)
        sandbox = open_sandbox(
            workspace,
            SandboxSettings(mode=self.settings.sandbox, network=self.settings.network),
            environment=self.environment,
            find_protected=make_protection_scanner(workspace, policy),
        )
        self._exit_stack.callback(sandbox.close)
        own = {tool.spec.name: tool for tool in BUILTIN_TOOLS}
        plugins, self.warnings = load_plugins(own)
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
                locks=SessionLocks(self.state_folder / "sessions"),
                mcp_servers=(*self.mcp_servers, *servers),
                trusted_projects=TrustedProjects(self.state_folder / "approved-mcp.json"),
                environment=self.environment,
            )
        )

    def close(self) -> None:
        """Close the sandboxes of all folders."""
        self._exit_stack.close()
