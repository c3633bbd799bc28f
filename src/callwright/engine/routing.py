"""Finds the model, its backends and its dialect by name. Pure: backends are only names here."""

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

NO_RESPONSE_FORMAT = {"anthropic": "uses Anthropic's API", "conversation": "exchanges text messages"}
"""Wires without `response_format`, and how the error describes them."""


class ModelRoute(msgspec.Struct, frozen=True, kw_only=True):
    """The destination of a model's turns."""

    name: str
    """The name that the client used."""
    settings: ModelSettings
    backends: tuple[str, ...]
    """In the order in which they are tried."""
    upstream: str
    """The backends' name for the model."""
    family: ModelFamily
    rules: ToolRules
    prompt: PromptSettings = PromptSettings()
    client_prompt: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Overrides of the prompt settings by the client's profile."""
    history: HistorySettings = HistorySettings()
    tool_limits: ToolLimitSettings = ToolLimitSettings()

    @property
    def vision(self) -> bool | None:
        """Whether the model accepts images, as its settings or its family say; None when unknown."""
        return self.settings.vision if self.settings.vision is not None else self.family.vision

    @property
    def answer_dialect(self) -> Dialect:
        """The dialect of its answers."""
        named = self.settings.dialect
        return get_dialect(self.family.answer_dialect if named == "auto" else named)

    @property
    def prompt_dialect(self) -> Dialect:
        """The dialect that the prompt teaches, for a server without tool support."""
        if self.settings.dialect != "auto" or self.family is RAW_HARMONY:
            return self.answer_dialect
        return choose_prompt_dialect(self.upstream)

    def with_client_prompt(self, client: Mapping[str, Any]) -> ModelRoute:
        """Return the route with these overrides of the prompt settings, from a client's profile."""
        return msgspec.structs.replace(self, prompt=merge_prompt_settings(self.prompt, client), client_prompt=client)


class RouteTable:
    """The models of a configuration by all their names. Patterns such as `claude-*` are tried last."""

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
        """Backends that serve gpt-oss, whatever they call it."""
        self._models: dict[str, ModelSettings] = {}
        for model in models:
            for name in (model.name, *model.aliases):
                self._models.setdefault(name, model)

    def find_route(self, name: str) -> ModelRoute:
        """Find the route of a name. Raises `RequestError` 404 when there is none."""
        settings = self._models.get(name) or self._match_pattern(name)
        if settings is None:
            raise RequestError(self._describe_unknown(name), param="model", status=404, code="model_not_found")
        named = settings.backend or self._backends[:1]
        backends = (named,) if isinstance(named, str) else tuple(named)
        upstream = settings.model or (name if _is_pattern(settings.name) else settings.name)
        family = find_family(upstream) if self._harmony.isdisjoint(backends) else RAW_HARMONY
        return ModelRoute(
            name=name,
            settings=settings,
            backends=backends,
            upstream=upstream,
            family=family,
            rules=merge_rules(self._rules, settings.rules),
            prompt=merge_prompt_settings(self._prompt, settings.prompt),
            history=msgspec.convert(settings.history, HistorySettings),
            tool_limits=msgspec.convert({"terse": family.terse, **settings.tool_limits}, ToolLimitSettings),
        )

    @property
    def models(self) -> tuple[ModelSettings, ...]:
        """The models with a name that is not a pattern, each once."""
        return tuple({model.name: model for model in self._models.values() if not _is_pattern(model.name)}.values())

    def _match_pattern(self, name: str) -> ModelSettings | None:
        patterns = ((known, model) for known, model in self._models.items() if _is_pattern(known))
        return next((model for known, model in patterns if fnmatchcase(name, known)), None)

    def _describe_unknown(self, name: str) -> str:
        names = [known for known in self._models if not _is_pattern(known)]
        near = get_close_matches(name, names, 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Available models: {', '.join(names[:20]) or 'none'}."
        return f"the model {name!r} does not exist. {hint}"


def _is_pattern(name: str) -> bool:
    return any(sign in name for sign in "*?[")


def merge_rules(rules: ToolRules, changes: Mapping[str, object]) -> ToolRules:
    """Return the rules with some of them changed."""
    return msgspec.convert({**msgspec.structs.asdict(rules), **changes}, ToolRules) if changes else rules


def check_request(request: Request, route: ModelRoute, wires: Iterable[str]) -> None:
    """Raise `RequestError` for what the model's backends do not support, instead of dropping it silently (W-25)."""
    wire_names = set(wires)
    has_image = any(isinstance(part, Image) for message in request.messages for part in message.parts)
    text_only = "its backend accepts text only" if wire_names == {"conversation"} else ""
    if has_image and (text_only or route.vision is False):
        raise RequestError(
            f"the model {route.name!r} does not accept images ({text_only or 'vision = false in its settings'}). "
            "Send text only.",
            param="messages",
            code="images_not_supported",
        )
    limitation = next((description for wire, description in NO_RESPONSE_FORMAT.items() if wire in wire_names), "")
    if "response_format" in request.options and limitation:
        raise RequestError(
            f"the backend of {route.name!r} {limitation} and does not support response_format. "
            "Ask for JSON in the prompt, or use another backend.",
            param="response_format",
            code="response_format_not_supported",
        )
