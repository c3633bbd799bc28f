"""Backends: how models are reached. One line per kind."""

from __future__ import annotations

from collections.abc import Callable

from callwright.backends.base import Backend
from callwright.backends.codex import CodexBackend
from callwright.backends.completions import CompletionsClientCodec
from callwright.backends.conversation import open_conversation_backend
from callwright.backends.embedded import EmbeddedBackend
from callwright.backends.harmony_backend import HarmonyBackend
from callwright.backends.http import HttpBackend
from callwright.backends.ollama import OllamaBackend
from callwright.backends.scripted import ScriptedBackend
from callwright.backends.settings import BackendKind, BackendSettings
from callwright.wire import CLIENT_CODECS

__all__ = ["open_backend"]

_BACKEND_FACTORIES: dict[BackendKind, Callable[[BackendSettings], Backend]] = {
    "openai": lambda settings: HttpBackend(settings, CLIENT_CODECS["openai_chat"]),
    "responses": lambda settings: HttpBackend(settings, CLIENT_CODECS["openai_responses"]),
    "anthropic": lambda settings: HttpBackend(
        settings, CLIENT_CODECS["anthropic"], models_path="/v1/models?limit=1000"
    ),
    "ollama": lambda settings: OllamaBackend(settings, CLIENT_CODECS["ollama"]),
    "completions": lambda settings: HttpBackend(
        settings, CompletionsClientCodec(settings.template, CLIENT_CODECS["openai_chat"])
    ),
    "harmony": lambda settings: HarmonyBackend(settings, CLIENT_CODECS["openai_chat"]),
    "scripted": ScriptedBackend,
    "embedded": EmbeddedBackend,
    "conversation": open_conversation_backend,
    "codex": CodexBackend,
}


def open_backend(settings: BackendSettings) -> Backend:
    """Create the backend that these settings describe. It connects on first use; `close` releases its resources."""
    return _BACKEND_FACTORIES[settings.kind](settings)
