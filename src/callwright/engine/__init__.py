"""The engine: one turn, from a `Request` to events that hold on every law. The gateway and the agent both call it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from callwright.backends.base import Backend, ModelInfo
from callwright.engine.pipeline import Pipeline
from callwright.engine.report import TurnReport
from callwright.engine.routing import Route, Routes, merged_rules
from callwright.engine.settings import ModelSettings, ToolRules
from callwright.errors import BackendError, RequestError
from callwright.prompt.settings import PromptSettings
from callwright.prompt.templates import Templates

__all__ = ["Engine", "ModelListing", "Route", "TurnReport", "merged_rules"]

_OWN_CONTEXT = 131_072
"""What is said of a window that nobody knows: Copilot refuses prompts over the listed size, so not too small."""


_READY_SECONDS = 0.8
"""Kubernetes gives a probe one second."""


class ModelListing(msgspec.Struct, frozen=True, kw_only=True):
    """A model as clients see it listed."""

    name: str
    aliases: tuple[str, ...] = ()
    backend: str
    kind: str
    dialect: str
    context: int
    vision: bool = False
    reasoning: bool = False


class Engine:
    """Models, the backends that have them, and the turns that run on them.

    Without models in the settings it serves whatever its backends have; `refresh` asks them. `templates` are those of
    the folders that the prompt settings name.
    """

    def __init__(
        self,
        models: Sequence[ModelSettings],
        backends: Mapping[str, Backend],
        rules: ToolRules,
        prompt: PromptSettings | None = None,
        templates: Mapping[str, Templates] = MappingProxyType({}),
    ) -> None:
        self.rules = rules
        self._prompt = prompt or PromptSettings()
        self.backends = backends
        self._settings = tuple(models)
        self._found: dict[tuple[str, str], ModelInfo] = {}
        self._routes = Routes(models, tuple(backends), rules, self._prompt)
        pipeline = Pipeline(backends, self._info, templates=templates)
        self.turn = pipeline.turn

    def route(self, name: str) -> Route:
        """Where turns of a model go. `RequestError` 404 when no model has that name."""
        return self._routes.find(name)

    async def find(self, name: str) -> Route:
        """The same, asking the backends once more when the name is not known and no models are set."""
        try:
            return self.route(name)
        except RequestError:
            if self._settings:
                raise
            await self.refresh()
            return self.route(name)

    async def refresh(self) -> dict[str, str]:
        """Ask every backend what it has. Returns why those that did not answer did not."""
        answers = await asyncio.gather(*(self._models_of(each) for each in self.backends.values()))
        self._found = {(name, info.name): info for name, infos, _ in answers for info in infos}
        if not self._settings:
            found = [ModelSettings(name=model, backend=name) for name, model in self._found]
            self._routes = Routes(found, tuple(self.backends), self.rules, self._prompt)
        return {name: problem for name, _, problem in answers if problem}

    async def _models_of(self, backend: Backend) -> tuple[str, tuple[ModelInfo, ...], str]:
        name = backend.settings.name
        try:
            return name, await backend.models(), ""
        except BackendError as problem:
            return name, (), str(problem)

    @property
    def models(self) -> tuple[ModelListing, ...]:
        """Every model that has a name, for lists."""
        return tuple(self._listing(self.route(model.name)) for model in self._routes.models)

    def _listing(self, route: Route) -> ModelListing:
        name = route.backends[0]
        info = self._info(name, route.upstream)
        vision = next(
            (one for one in (route.settings.vision, info.vision, route.facts.vision) if one is not None), False
        )
        return ModelListing(
            name=route.settings.name,
            aliases=route.settings.aliases,
            backend=name,
            kind=self.backends[name].settings.kind,
            dialect=route.reads.name,
            context=route.settings.context or info.context or _OWN_CONTEXT,
            vision=vision,
            reasoning=bool(info.reasoning),
        )

    def _info(self, backend: str, model: str) -> ModelInfo:
        return self._found.get((backend, model)) or ModelInfo(name=model)

    async def ready(self) -> dict[str, str]:
        """Every backend's name with what is wrong with it, if anything. Takes no longer than a probe waits."""
        problems = await asyncio.gather(*(self._problem_of(each) for each in self.backends.values()))
        return dict(zip(self.backends, problems, strict=True))

    async def _problem_of(self, backend: Backend) -> str:
        try:
            async with asyncio.timeout(_READY_SECONDS):
                return (await self._models_of(backend))[2]
        except TimeoutError:
            return f"it does not list its models within {_READY_SECONDS} seconds"

    async def close(self) -> None:
        """Give back every connection."""
        await asyncio.gather(*(backend.close() for backend in self.backends.values()))
