"""The engine: runs one turn, from a `Request` to valid events. The gateway and the agent both use it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

import msgspec

from callwright.backends.base import Backend, EventStream, ModelInfo
from callwright.backends.conversation.contract import StatefulBackend
from callwright.engine.conversation_routing import ConversationRegistry, ConversationRouting
from callwright.engine.jobs import JobSettings, find_job
from callwright.engine.pipeline import TurnPipeline
from callwright.engine.routing import ModelRoute, RouteTable, merge_rules
from callwright.engine.settings import ModelSettings, ToolRules
from callwright.engine.turn_report import TurnReport
from callwright.errors import BackendError, RequestError
from callwright.model import Repair, Request
from callwright.prompt.prompt_templates import PromptTemplates
from callwright.prompt.settings import PromptSettings
from callwright.wire.base import ClientRequest

__all__ = ["Engine", "ModelListing", "ModelRoute", "TurnJournal", "TurnReport", "merge_rules"]

_DEFAULT_CONTEXT = 131_072
"""Listed context window when it is unknown. Copilot refuses prompts over the listed size, so it must not be small."""


_REFRESH_SECONDS = 300.0
"""Age after which the models of the backends are listed again …"""
_RETRY_SECONDS = 15.0
"""… and the same when a backend did not respond: its models are unknown, and it may have started since."""

_PROBE_SECONDS = 0.8
"""Kubernetes gives a probe one second."""


class ModelListing(msgspec.Struct, frozen=True, kw_only=True):
    """A model as clients see it in lists."""

    name: str
    aliases: tuple[str, ...] = ()
    backend: str
    kind: str
    dialect: str
    context: int
    vision: bool = False
    reasoning: bool = False


class TurnJournal(Protocol):
    """Records the turns of `Engine.stream_turn`."""

    def record_turn(self, request: Request, route: ModelRoute, report: TurnReport, turn: EventStream) -> EventStream:
        """Return the same turn, recorded while it runs."""
        ...


class Engine:
    """The models, their backends, and the turns that run on them.

    Without configured models it serves all models of its backends; `refresh_models` lists them. `templates` are those
    of the folders that the prompt settings name.
    """

    def __init__(
        self,
        models: Sequence[ModelSettings],
        backends: Mapping[str, Backend],
        rules: ToolRules,
        jobs: Sequence[JobSettings] = (),
        prompt: PromptSettings | None = None,
        templates: Mapping[str, PromptTemplates] = MappingProxyType({}),
    ) -> None:
        self.rules = rules
        self._prompt = prompt or PromptSettings()
        self.backends = backends
        self.conversations: ConversationRegistry | None = None
        """Finds conversations of backends. None = none are stored, and each turn sends its whole history."""
        self.turn_journal: TurnJournal | None = None
        """Records the turns of `stream_turn`. None = no record. The gateway records its turns itself."""
        self._settings = tuple(models)
        self._jobs = tuple(jobs)
        self._model_infos: dict[tuple[str, str], ModelInfo] = {}
        self._refreshed_at = 0.0
        self._max_age_seconds = _REFRESH_SECONDS
        self._refresh_task: asyncio.Task[dict[str, str]] | None = None
        self._routes = self._build_routes(models)
        self._pipeline = TurnPipeline(backends, self._get_model_info, self.get_context_window, templates=templates)

    def _build_routes(self, models: Sequence[ModelSettings]) -> RouteTable:
        harmony = [name for name, backend in self.backends.items() if backend.settings.kind == "harmony"]
        return RouteTable(models, tuple(self.backends), self.rules, self._prompt, harmony)

    def stream_turn(self, request: Request, report: TurnReport | None = None) -> EventStream:
        """Stream one turn for a program in this process, with the rules of its model. Fills in `report`.

        Raises `RequestError` 404 when the model does not exist.
        """
        route = self.get_route(request.model)
        report = report or TurnReport()
        turn = self.run_turn(ClientRequest(request=request, stream=True), route, route.rules, report)
        return self.turn_journal.record_turn(request, route, report, turn) if self.turn_journal else turn

    def run_turn(
        self, client_request: ClientRequest, route: ModelRoute, rules: ToolRules, report: TurnReport
    ) -> EventStream:
        """Stream one turn. A job, such as a chat title, goes to the model that its rule names."""
        self._refresh_if_stale()
        if job := find_job(client_request.request, self._jobs):
            report.record_repairs([Repair("routed_job", f"{job.name}: sent to {job.model} instead of {route.name}")])
            route = self.get_route(job.model).with_client_prompt(route.client_prompt)
        stateful_backends = {
            name: backend for name in route.backends if isinstance(backend := self.backends[name], StatefulBackend)
        }
        if not stateful_backends:
            return self._pipeline.run_turn(client_request, route, rules, report)
        conversations = ConversationRouting(
            stateful_backends, self.conversations, client_request.request, route, report.caller
        )
        return conversations.track_turn(self._pipeline.run_turn(client_request, route, rules, report, conversations))

    def get_route(self, name: str) -> ModelRoute:
        """Return the route of a model. Raises `RequestError` 404 when no model has that name."""
        return self._routes.find_route(name)

    async def find_route(self, name: str) -> ModelRoute:
        """Return the route of a model. Lists the models again when the name is unknown and no models are configured."""
        try:
            return self.get_route(name)
        except RequestError:
            if self._settings:
                raise
            await self.refresh_models()
            return self.get_route(name)

    async def refresh_models(self) -> dict[str, str]:
        """List the models of every backend. Returns the error of each backend that failed, by name."""
        results = await asyncio.gather(*(self._list_models(each) for each in self.backends.values()))
        self._refreshed_at = asyncio.get_running_loop().time()
        failed = {name for name, _, problem in results if problem}
        self._max_age_seconds = _RETRY_SECONDS if failed else _REFRESH_SECONDS
        # The last list of a backend stays in use while the backend does not respond.
        previous = {key: info for key, info in self._model_infos.items() if key[0] in failed}
        self._model_infos = previous | {(name, info.name): info for name, infos, _ in results for info in infos}
        found = [ModelSettings(name=model, backend=name) for name, model in self._model_infos]
        self._routes = self._build_routes([self._resolve_llamacpp_name(model) for model in self._settings] or found)
        return {name: problem for name, _, problem in results if problem}

    def _resolve_llamacpp_name(self, settings: ModelSettings) -> ModelSettings:
        """Fill in llama.cpp's own name for a model without one. Such a server has one model and accepts any name, but
        facts about models are stored by their own name."""
        backend = settings.backend or next(iter(self.backends), "")
        infos = [info for (name, _), info in self._model_infos.items() if name == backend]
        if settings.model or len(infos) != 1 or infos[0].server != "llamacpp":
            return settings
        return msgspec.structs.replace(settings, model=infos[0].name)

    async def _list_models(self, backend: Backend) -> tuple[str, tuple[ModelInfo, ...], str]:
        name = backend.settings.name
        try:
            return name, await backend.list_models(), ""
        except BackendError as problem:
            return name, (), str(problem)

    def _refresh_if_stale(self) -> None:
        """Start listing the models again in the background when the lists are old: Ollama allocates a window when it
        loads a model, and another one after a restart."""
        now = asyncio.get_running_loop().time()
        is_idle = self._refresh_task is None or self._refresh_task.done()
        if is_idle and self._refreshed_at and now - self._refreshed_at > self._max_age_seconds:
            self._refresh_task = asyncio.ensure_future(self.refresh_models())

    def get_context_window(self, backend: str, route: ModelRoute) -> int:
        """Return the context window of a model at one of its backends, in tokens; 0 when unknown."""
        requested = route.settings.options.get("num_ctx")  # Ollama allocates the requested window
        return (
            route.settings.context
            or (requested if isinstance(requested, int) else 0)
            or self._get_model_info(backend, route).context
        )

    def _get_model_info(self, backend: str, route: ModelRoute) -> ModelInfo:
        names = (route.upstream, f"{route.upstream}:latest")  # Ollama lists the tag, which requests may omit
        found = (self._model_infos.get((backend, name)) for name in names)
        return next(filter(None, found), ModelInfo(name=route.upstream))

    @property
    def models(self) -> tuple[ModelListing, ...]:
        """Every model that has a name of its own, for lists."""
        return tuple(self._build_listing(self.get_route(model.name)) for model in self._routes.models)

    def _build_listing(self, route: ModelRoute) -> ModelListing:
        name = route.backends[0]
        info = self._get_model_info(name, route)
        vision = next(
            (one for one in (route.settings.vision, info.vision, route.family.vision) if one is not None), False
        )
        return ModelListing(
            name=route.settings.name,
            aliases=route.settings.aliases,
            backend=name,
            kind=self.backends[name].settings.kind,
            dialect=route.answer_dialect.name,
            context=self.get_context_window(name, route) or _DEFAULT_CONTEXT,
            vision=vision,
            reasoning=bool(info.reasoning),
        )

    async def check_readiness(self) -> dict[str, str]:
        """Check every backend, fast enough for probes. Returns what is wrong with each, by name; empty when ready."""
        problems = await asyncio.gather(*(self._probe_backend(each) for each in self.backends.values()))
        return dict(zip(self.backends, problems, strict=True))

    async def _probe_backend(self, backend: Backend) -> str:
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                return (await self._list_models(backend))[2]
        except TimeoutError:
            return f"it did not list its models within {_PROBE_SECONDS} seconds"

    async def close(self) -> None:
        """Close all connections."""
        if self._refresh_task is not None:
            self._refresh_task.cancel()
        await asyncio.gather(*(backend.close() for backend in self.backends.values()))
