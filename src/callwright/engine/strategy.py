"""Strategy: how a model gets its tools at one backend, and why. Pure.

Best first: *native*, the backend's own tools; *constrained*, taught in the prompt and the answer held to a grammar or
a schema; *taught*, in the prompt alone. What a backend refused is remembered by whoever asks it, and told here.
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
    "conversation": "the backend is sent messages and answers in text",
}


class ModelCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one model at one backend."""

    kind: BackendKind = "openai"
    supports_tools: bool | None = None
    """What the backend says of the model, or else what is known of its family."""
    flavour: ConstraintFlavour | None = None
    """How the backend is told to hold an answer to a form."""
    refused_strategies: frozenset[ToolStrategy] = frozenset()
    """What it did not take before."""


def choose_strategy(
    setting: StrategySetting, request: Request, capabilities: ModelCapabilities, *, failed: bool = False
) -> tuple[ToolStrategy, str]:
    """The strategy and the reason for it. `failed`: a call that had to come did not, earlier in this turn."""
    if not request.tools:
        return _choose_without_tools(setting, request, capabilities)
    if capabilities.kind == "harmony":
        return "native", "Harmony has a place for tools, and no other"
    if setting in ("native", "taught"):
        return setting, "the settings say so"
    free = _explain_not_constrained(request, capabilities)
    if setting == "constrained":
        return ("taught", f"the settings say constrained, but {free}") if free else (setting, "the settings say so")
    lacking = _explain_not_native(capabilities)
    if not lacking and failed and not free and request.tool_choice != "auto":
        lacking = "the backend's own tools gave no usable call"
    if not lacking:
        says = (
            "the model is known to take tools" if capabilities.supports_tools else "nothing says that it takes no tools"
        )
        return "native", says
    return ("taught", f"{lacking}, and {free}") if free else ("constrained", lacking)


def _choose_without_tools(
    setting: StrategySetting, request: Request, capabilities: ModelCapabilities
) -> tuple[ToolStrategy, str]:
    """A request for a summary, say: what was called before it is told as it was when there were tools."""
    told = capabilities.kind != "harmony" and (
        setting in ("taught", "constrained") or (setting == "auto" and _explain_not_native(capabilities))
    )
    if told and any(isinstance(part, ToolCall) for message in request.messages for part in message.parts):
        return "taught", "the request offers no tools, and earlier calls are told in words"
    return "none", "the request offers no tools"


def _explain_not_native(capabilities: ModelCapabilities) -> str:
    """Why the backend's own tools are out of the question; empty when they are not."""
    if capabilities.kind in _TEXT_ONLY_KINDS:
        return _TEXT_ONLY_KINDS[capabilities.kind]
    if "native" in capabilities.refused_strategies:
        return "the backend refused tools for this model"
    return "the model is known to take no tools" if capabilities.supports_tools is False else ""


def _explain_not_constrained(request: Request, capabilities: ModelCapabilities) -> str:
    """Why the answer cannot be held to a form; empty when it can."""
    if capabilities.flavour is None:
        return "nothing says that the backend can hold an answer to a form"
    if "constrained" in capabilities.refused_strategies:
        return "the backend refused to hold an answer to a form"
    if request.tool_choice == "none":
        return "no call may be made"
    if "response_format" in request.options:
        return "the client holds the answer to a form of its own"
    return ""
