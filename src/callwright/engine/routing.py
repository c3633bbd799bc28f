"""Routing: which model a name means, where it is reached and how it is read. Pure: backends are only named here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from callwright.dialects import Dialect, get_dialect
from callwright.engine.model_families import RAW_HARMONY, ModelFamily, choose_prompt_dialect, find_family
from callwright.engine.settings import ModelSettings, ToolRules
from callwright.errors import RequestError
from callwright.model import Image, Request
from callwright.prompt.settings import HistorySettings, PromptSettings, ToolLimitSettings, merge_prompt_settings

__all__ = ["ModelRoute", "RouteTable", "check_request"]

NO_RESPONSE_FORMAT = {"anthropic": "speaks Anthropic's wire", "conversation": "keeps conversations in text"}
"""Wires that have no `response_format`, and why."""


class ModelRoute(msgspec.Struct, frozen=True, kw_only=True):
    """Where a model's turns go."""

    name: str
    """What the client asked for."""
    settings: ModelSettings
    backends: tuple[str, ...]
    """In the order in which they are tried."""
    upstream: str
    """What the backends call the model."""
    family: ModelFamily
    rules: ToolRules
    prompt: PromptSettings = PromptSettings()
    client_prompt: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """What the client's profile has changed of the prompt settings."""
    history: HistorySettings = HistorySettings()
    tool_limits: ToolLimitSettings = ToolLimitSettings()

    @property
    def vision(self) -> bool | None:
        """Whether the model sees pictures, as far as its settings or its family say."""
        return self.settings.vision if self.settings.vision is not None else self.family.vision

    @property
    def answer_dialect(self) -> Dialect:
        """The dialect that its output is read in."""
        named = self.settings.dialect
        return get_dialect(self.family.answer_dialect if named == "auto" else named)

    @property
    def prompt_dialect(self) -> Dialect:
        """The dialect that it is taught, where its server has no tools."""
        if self.settings.dialect != "auto" or self.family is RAW_HARMONY:
            return self.answer_dialect
        return choose_prompt_dialect(self.upstream)

    def with_client_prompt(self, client: Mapping[str, Any]) -> ModelRoute:
        """The same route for a client whose profile changes these prompt settings."""
        return msgspec.structs.replace(self, prompt=merge_prompt_settings(self.prompt, client), client_prompt=client)


class RouteTable:
    """The models of a configuration by every name they have; patterns such as `claude-*` come last."""

    def __init__(
        self,
        models: Sequence[ModelSettings],
        backends: Sequence[str],
        rules: ToolRules,
        prompt: PromptSettings,
        harmony: Collection[str] = (),
    ) -> None:
        self._rules = rules
        self._prompt = prompt
        self._backends = tuple(backends)
        self._harmony = frozenset(harmony)
        """The backends that have gpt-oss, whatever they call it."""
        self._models: dict[str, ModelSettings] = {}
        for model in models:
            for name in (model.name, *model.aliases):
                self._models.setdefault(name, model)

    def find_route(self, name: str) -> ModelRoute:
        """The route of a name. `RequestError` 404 when there is none."""
        settings = self._models.get(name) or self._match_pattern(name)
        if settings is None:
            raise RequestError(self._describe_unknown(name), param="model", status=404, code="model_not_found")
        named = settings.backend or self._backends[:1]
        backends = (named,) if isinstance(named, str) else tuple(named)
        upstream = settings.model or (name if _is_pattern(settings.name) else settings.name)
        facts = find_family(upstream) if self._harmony.isdisjoint(backends) else RAW_HARMONY
        return ModelRoute(
            name=name,
            settings=settings,
            backends=backends,
            upstream=upstream,
            family=facts,
            rules=merge_rules(self._rules, settings.rules),
            prompt=merge_prompt_settings(self._prompt, settings.prompt),
            history=msgspec.convert(settings.history, HistorySettings),
            tool_limits=msgspec.convert({"terse": facts.terse, **settings.tool_limits}, ToolLimitSettings),
        )

    @property
    def models(self) -> tuple[ModelSettings, ...]:
        """The models that have a name of their own, each once."""
        return tuple({model.name: model for model in self._models.values() if not _is_pattern(model.name)}.values())

    def _match_pattern(self, name: str) -> ModelSettings | None:
        patterns = ((known, model) for known, model in self._models.items() if _is_pattern(known))
        return next((model for known, model in patterns if fnmatchcase(name, known)), None)

    def _describe_unknown(self, name: str) -> str:
        names = [known for known in self._models if not _is_pattern(known)]
        near = get_close_matches(name, names, 1)
        known = f"did you mean {near[0]!r}?" if near else f"models here are: {', '.join(names[:20]) or 'none'}"
        return f"there is no model {name!r}; {known}"


def _is_pattern(name: str) -> bool:
    return any(sign in name for sign in "*?[")


def merge_rules(rules: ToolRules, changes: Mapping[str, object]) -> ToolRules:
    """The rules with some of them changed."""
    return msgspec.convert({**msgspec.structs.asdict(rules), **changes}, ToolRules) if changes else rules


def check_request(request: Request, route: ModelRoute, wires: Iterable[str]) -> None:
    """Refuse what the model's backends cannot do, rather than drop it without a word (W-25)."""
    spoken = set(wires)
    has_image = any(isinstance(part, Image) for message in request.messages for part in message.parts)
    text_only = "its backend takes text only" if spoken == {"conversation"} else ""
    if has_image and (text_only or route.vision is False):
        raise RequestError(
            f"the model {route.name!r} takes no images ({text_only or 'vision = false in its settings'}); "
            "send text only",
            param="messages",
            code="images_not_supported",
        )
    unable = next((why for wire, why in NO_RESPONSE_FORMAT.items() if wire in spoken), "")
    if "response_format" in request.options and unable:
        raise RequestError(
            f"the backend of {route.name!r} {unable}, which has no response_format; "
            "ask for JSON in the prompt, or use another backend",
            param="response_format",
            code="response_format_not_supported",
        )
