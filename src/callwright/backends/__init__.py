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
from callwright.errors import ConfigError, MisuseError
from callwright.wire import CLIENT_CODECS

__all__ = ["BackendFactory", "list_backend_plugins", "open_backend", "register_backend"]

BackendFactory = Callable[[BackendSettings], Backend]
"""Makes a backend of its settings. It connects to nothing yet."""

_BACKEND_FACTORIES: dict[BackendKind, BackendFactory] = {
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
    "plugin": lambda settings: _open_plugin(settings),
}
_plugin_factories: dict[str, BackendFactory] = {}


def register_backend(name: str, factory: BackendFactory) -> None:
    """Add a backend of another package: `kind = "plugin"` with `plugin = NAME` opens it.

    Raises `MisuseError` when the name is taken.
    """
    if name in _plugin_factories:
        raise MisuseError(f"the backend plugin {name!r} cannot be registered: the name is taken")
    _plugin_factories[name] = factory


def list_backend_plugins() -> tuple[str, ...]:
    """Return the names that `plugin` may have."""
    return tuple(_plugin_factories)


def _open_plugin(settings: BackendSettings) -> Backend:
    factory = _plugin_factories.get(settings.plugin)
    if factory is None:
        known = ", ".join(_plugin_factories) or "none is installed"
        raise ConfigError(
            [f"backend {settings.name!r}: there is no backend plugin {settings.plugin!r}; known: {known}"]
        )
    return factory(settings)


def open_backend(settings: BackendSettings) -> Backend:
    """Create the backend that these settings describe. It connects on first use; `close` releases its resources."""
    return _BACKEND_FACTORIES[settings.kind](settings)
