"""Chooses how tools are given to a model at one backend, with a reason. Pure.

Best first: *native*, the backend's own tool support; *constrained*, taught in the prompt with the answer constrained by
a grammar or a schema; *taught*, in the prompt only. The caller remembers what a backend refused, and passes it here.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from callwright.backends.settings import BackendKind
from callwright.model import Request, ToolCall
from callwright.prompt.request_prompt import ToolStrategy
from callwright.wire.constraint import ConstraintFlavour

__all__ = ["ModelCapabilities", "StrategySetting", "ToolStrategy", "choose_strategy"]

StrategySetting = Literal["auto", "native", "constrained", "taught"]


_TEXT_ONLY_KINDS: dict[BackendKind, str] = {
    "completions": "the backend only continues text",
    "conversation": "the backend exchanges text messages only",
}


class ModelCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about one model at one backend."""

    kind: BackendKind = "openai"
    supports_tools: bool | None = None
    """What the backend reports about the model, otherwise what is known about its family."""
    flavour: ConstraintFlavour | None = None
    """The constraint format of the backend; None when it has none."""
    refused_strategies: frozenset[ToolStrategy] = frozenset()
    """Strategies that the backend refused before."""


def choose_strategy(
    setting: StrategySetting, request: Request, capabilities: ModelCapabilities, *, failed: bool = False
) -> tuple[ToolStrategy, str]:
    """Choose a strategy, with the reason. `failed`: a required call did not come earlier in this turn."""
    if not request.tools:
        return _choose_without_tools(setting, request, capabilities)
    if capabilities.kind == "harmony":
        return "native", "Harmony has its own format for tools"
    if setting in ("native", "taught"):
        return setting, "the settings select it"
    not_constrained = _explain_not_constrained(request, capabilities)
    if setting == "constrained":
        return (
            ("taught", f"the settings select constrained, but {not_constrained}")
            if not_constrained
            else (setting, "the settings select it")
        )
    not_native = _explain_not_native(capabilities)
    if not not_native and failed and not not_constrained and request.tool_choice != "auto":
        not_native = "the backend's own tool support gave no usable call"
    if not not_native:
        reason = (
            "the model supports tools" if capabilities.supports_tools else "the model is not known to lack tool support"
        )
        return "native", reason
    return ("taught", f"{not_native}, and {not_constrained}") if not_constrained else ("constrained", not_native)


def _choose_without_tools(
    setting: StrategySetting, request: Request, capabilities: ModelCapabilities
) -> tuple[ToolStrategy, str]:
    """Choose a strategy without tools, for example for a summary. Earlier calls stay in the format they had."""
    is_text = capabilities.kind != "harmony" and (
        setting in ("taught", "constrained") or (setting == "auto" and _explain_not_native(capabilities))
    )
    if is_text and any(isinstance(part, ToolCall) for message in request.messages for part in message.parts):
        return "taught", "the request offers no tools, and earlier calls are written as text"
    return "none", "the request offers no tools"


def _explain_not_native(capabilities: ModelCapabilities) -> str:
    """Explain why the backend's own tool support cannot be used; empty when it can."""
    if capabilities.kind in _TEXT_ONLY_KINDS:
        return _TEXT_ONLY_KINDS[capabilities.kind]
    if "native" in capabilities.refused_strategies:
        return "the backend refused tools for this model"
    return "the model does not support tools" if capabilities.supports_tools is False else ""


def _explain_not_constrained(request: Request, capabilities: ModelCapabilities) -> str:
    """Explain why the answer cannot be constrained; empty when it can."""
    if capabilities.flavour is None:
        return "the backend is not known to support constraints"
    if "constrained" in capabilities.refused_strategies:
        return "the backend refused the constraint"
    if request.tool_choice == "none":
        return "tool_choice is none"
    if "response_format" in request.options:
        return "the request has its own response_format"
    return ""
