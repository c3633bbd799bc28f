"""Conversation services, which store the history themselves, have no system messages and answer in text.

One interface (`contract`) and two transports: HTTP (`http_backend`), and web pages that connect to the gateway
(`bridge_backend`). The engine decides which of the service's conversations a turn continues.
"""

from __future__ import annotations

from callwright.backends.base import Backend
from callwright.backends.conversation.bridge_backend import BridgeBackend
from callwright.backends.conversation.http_backend import ConversationBackend
from callwright.backends.settings import BackendSettings

__all__ = ["open_conversation_backend"]


def open_conversation_backend(settings: BackendSettings) -> Backend:
    """Create the backend for the service at a URL, or without one for the pages that connect."""
    return BridgeBackend(settings) if settings.is_bridged else ConversationBackend(settings)
