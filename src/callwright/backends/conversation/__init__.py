"""Conversation services: they keep what was said, hear no system messages and answer in text.

One contract (`contract`), two ways to reach a service: over HTTP (`http`), and through web pages that connect to the
gateway (`bridge`). Which of the service's conversations a turn belongs to is the engine's business.
"""

from __future__ import annotations

from callwright.backends.base import Backend
from callwright.backends.conversation.bridge_backend import BridgeBackend
from callwright.backends.conversation.http_backend import ConversationBackend
from callwright.backends.settings import BackendSettings

__all__ = ["open_conversation_backend"]


def open_conversation_backend(settings: BackendSettings) -> Backend:
    """The service at an address, or the pages that connect where there is none."""
    return BridgeBackend(settings) if settings.is_bridged else ConversationBackend(settings)
