"""Wires: the four HTTP APIs that clients and servers speak, each as pure functions from bytes to values and back.

Each wire serves (reads a client's request, writes events as that client's stream) and calls (writes a request for
a server, reads its stream as events). Nothing here opens a socket, looks at a clock or draws a random number.
"""

from __future__ import annotations

from callwright.wire.anthropic import CalledAnthropic, ServedAnthropic
from callwright.wire.base import Called, Served
from callwright.wire.ollama import OLLAMA, OLLAMA_GENERATE, CalledOllama
from callwright.wire.openai_chat import CalledChat, ServedChat
from callwright.wire.openai_responses import CalledResponses, ServedResponses

__all__ = ["CALLED", "SERVED"]

SERVED: dict[str, Served] = {
    "openai_chat": ServedChat(),
    "openai_responses": ServedResponses(),
    "anthropic": ServedAnthropic(),
    "ollama": OLLAMA,
    "ollama_generate": OLLAMA_GENERATE,
}
CALLED: dict[str, Called] = {
    "openai_chat": CalledChat(),
    "openai_responses": CalledResponses(),
    "anthropic": CalledAnthropic(),
    "ollama": CalledOllama(),
}
