"""Composition: builds an engine, a gateway or an agent from a configuration.

    config = load_config("callwright.toml")
    async with open_engine(config) as engine: ...           # run turns
    app = create_app(config)                                # an ASGI application
    async with open_agent(config, folder) as session: ...   # work on a task

The command line uses the same functions. Nothing is read from the process but its environment, and that only where
the caller passes none. Each function loads only the libraries that it needs: a gateway that records nothing loads no
database, and one that is mounted in another program loads no agent.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callwright import config as configuration
from callwright.backends import open_backend
from callwright.backends.base import Backend
from callwright.config import Config, get_state_folder
from callwright.config.sources import get_config_folder
from callwright.config.template_files import load_templates
from callwright.engine import Engine
from callwright.errors import BackendError
from callwright.gateway.profiles import PROFILES
from callwright.plugins import load_plugins
from callwright.redaction import Redactor

if TYPE_CHECKING:
    from callwright.agent.session.agent_app import AgentApp
    from callwright.agent.session.agent_session import AgentSession
    from callwright.agent.session.session_manager import SessionArchive
    from callwright.agent.session_api import ApprovalReply
    from callwright.agent.session_events import ApprovalRequested, StampedEvent
    from callwright.gateway.journal_writer import StoreOpener
    from callwright.gateway.mountable_app import GatewayApp
    from callwright.gateway.server import GatewayServer
    from callwright.gateway.service import GatewayState

__all__ = [
    "Config",
    "build_engine",
    "build_gateway_state",
    "create_app",
    "create_server",
    "load_config",
    "open_agent",
    "open_agent_app",
    "open_engine",
    "open_session_archive",
]

log = logging.getLogger("callwright.app")

Environment = Mapping[str, str]


def load_config(
    path: str | Path | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    environment: Environment | None = None,
) -> Config:
    """The configuration of a file, with the environment and then `settings` laid over it. Raises `ConfigError`.

    Without a path, `$CALLWRIGHT_CONFIG` names the file, or it is looked for in this folder and in the user's.
    `settings` has the form of the file, such as `{"store": {"journal": "full"}}`. Plugins are loaded first, because
    the configuration may name what they bring; one that cannot be used is a warning in the log.
    """
    for warning in load_plugins().warnings:
        log.warning(warning)
    file = Path(path) if path is not None else None
    return configuration.load_config(file, _get_environment(environment), settings, profiles=PROFILES)


def build_engine(config: Config, backends: Mapping[str, Backend] | None = None) -> Engine:
    """The engine of a configuration, with its own backends or with these. Nothing is connected yet."""
    if backends is None:
        backends = {settings.name: open_backend(settings) for settings in config.backends}
    return Engine(config.models, backends, config.tools, config.jobs, config.prompt, load_templates(config))


@asynccontextmanager
async def open_engine(
    config: Config, *, client: str = "library", environment: Environment | None = None
) -> AsyncIterator[Engine]:
    """An engine that knows its models. Turns of its `stream_turn` are recorded as the configuration's journal says.

    `client` is the name of this program in the journal. `BackendError` when no backend has a model.
    """
    engine = build_engine(config)
    try:
        async with _open_journal(engine, config, client, _get_environment(environment)):
            problems = await engine.refresh_models()
            if not engine.models:
                raise BackendError("; ".join(problems.values()) or "the backends have no models")
            yield engine
    finally:
        await engine.close()


@asynccontextmanager
async def _open_journal(engine: Engine, config: Config, client: str, environment: Environment) -> AsyncIterator[None]:
    """Have the engine's turns recorded, if the configuration says so."""
    if config.store.journal == "off":
        yield
        return
    from callwright.gateway.journal_writer import JournalWriter
    from callwright.gateway.local_journal import LocalTurnJournal
    from callwright.gateway.metrics import Metrics

    redactor = Redactor()
    redactor.add_secrets({*_collect_secrets(config), *(key.key for key in config.keys)})
    writer = JournalWriter(redactor, Metrics())
    writer.use_store(_create_store_opener(config, environment))
    engine.turn_journal = LocalTurnJournal(writer, client)
    try:
        yield
    finally:
        await writer.close()


# ── the gateway ──────────────────────────────────────────────────────────────────────────────────


def create_app(config: Config, *, environment: Environment | None = None) -> GatewayApp:
    """The gateway as an ASGI application. It starts and stops with its lifespan.

    An application in which it is mounted takes that as its own: `Starlette(routes=…, lifespan=gateway.lifespan)`.
    """
    from callwright.gateway.mountable_app import GatewayApp

    return GatewayApp(partial(build_gateway_state, config, environment=environment), Redactor())


def create_server(
    load: Callable[[], GatewayState], *, watch: Sequence[Path] = (), redactor: Redactor | None = None
) -> GatewayServer:
    """The gateway with a server of its own. It calls `load` at the start, and again when a file of `watch` changes."""
    from callwright.gateway.mountable_app import build_service_app
    from callwright.gateway.server import GatewayServer

    return GatewayServer(load, build_service_app, watch=watch, redactor=redactor)


def build_gateway_state(config: Config, *, environment: Environment | None = None) -> GatewayState:
    """All that the gateway takes from a configuration, with an engine whose backends are open."""
    from callwright.gateway.service import GatewayState

    return GatewayState(
        config.server,
        config.keys,
        build_engine(config),
        _collect_secrets(config),
        _create_store_opener(config, _get_environment(environment)),
    )


def _collect_secrets(config: Config) -> frozenset[str]:
    secrets = {secret for backend in config.backends for secret in (backend.key, *backend.secrets) if secret}
    return frozenset(secrets.union(config.store.secrets))


def _create_store_opener(config: Config, environment: Environment) -> StoreOpener | None:
    """Opens the store of the journal, conversations and usage; None when none is configured."""
    settings = config.store
    has_conversations = any(backend.kind == "conversation" for backend in config.backends)
    if settings.journal == "off" and not settings.address and not has_conversations:
        return None
    from callwright.gateway.journal_writer import StoreOpener
    from callwright.store.open import open_store

    return StoreOpener(settings, partial(open_store, settings, get_state_folder(environment)))


# ── the agent ────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def open_agent(
    config: Config,
    workspace: str | Path,
    *,
    session: str = "",
    answer: Callable[[ApprovalRequested], ApprovalReply] | None = None,
    policy_file: Path | None = None,
    environment: Environment | None = None,
) -> AsyncIterator[AgentSession]:
    """A session of the agent in a folder: a new one, or the one with that id again. It is closed at the end.

    `answer` decides what the agent asks for. What would be asked without it is denied, and so is what it answers in a
    form that does not fit.
    """
    from callwright.agent.session_api import UNATTENDED_REPLY
    from callwright.agent.session_events import ApprovalRequested

    async with open_agent_app(config, policy_file=policy_file, environment=environment) as agent:
        manager = await agent.create_session_manager(Path(workspace))
        for warning in agent.warnings:
            log.warning(warning)
        opened = await manager.open(session)

        def reply(stamped: StampedEvent) -> None:
            if isinstance(stamped.event, ApprovalRequested):
                given = answer(stamped.event) if answer else UNATTENDED_REPLY
                if problem := opened.answer_approval(stamped.event.approval, given):
                    log.warning("the answer to an approval does not fit, so it is denied: %s", problem)
                    opened.answer_approval(stamped.event.approval, UNATTENDED_REPLY)

        opened.subscribe(reply)
        try:
            yield opened
        finally:
            await opened.close()


@asynccontextmanager
async def open_agent_app(
    config: Config, *, policy_file: Path | None = None, environment: Environment | None = None
) -> AsyncIterator[AgentApp]:
    """The agent without a folder: it opens the sessions of any. `policy_file` replaces the user's own rules."""
    from callwright.agent.session.agent_app import AgentApp, choose_model
    from callwright.store.open import open_agent_store

    variables = _get_environment(environment)
    state = get_state_folder(variables)
    async with (
        open_agent_store(config.store, state) as store,
        open_engine(config, client="agent", environment=variables) as engine,
    ):
        agent = AgentApp(
            settings=config.agent,
            model=choose_model(engine, config.agent),
            store=store,
            mcp_servers=config.mcp,
            policy_file=policy_file or get_config_folder(variables) / "policy.toml",
            state_folder=state,
            environment=variables,
        )
        try:
            yield agent
        finally:
            agent.close()


@asynccontextmanager
async def open_session_archive(
    config: Config, *, environment: Environment | None = None
) -> AsyncIterator[SessionArchive]:
    """The agent's sessions of all folders, without any model."""
    from callwright.agent.session.context import SessionLocks
    from callwright.agent.session.session_manager import SessionArchive
    from callwright.store.open import open_agent_store

    folder = get_state_folder(_get_environment(environment))
    async with open_agent_store(config.store, folder) as store:
        yield SessionArchive(store.sessions, store.snapshots, SessionLocks(folder / "sessions"))


def _get_environment(environment: Environment | None) -> Environment:
    return os.environ if environment is None else environment  # noqa: TID251 - the default of a parameter
