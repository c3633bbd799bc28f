"""Wires: the four HTTP APIs that clients and servers speak, each as pure functions from bytes to values and back.

Each wire serves (reads a client's request, writes events as that client's stream) and calls (writes a request for
a server, reads its stream as events). Nothing here opens a socket, looks at a clock or draws a random number.
"""

from __future__ import annotations

from callwright.wire.anthropic import AnthropicClientCodec, AnthropicServerCodec
from callwright.wire.base import ClientCodec, ServerCodec
from callwright.wire.ollama import OLLAMA_CHAT_CODEC, OLLAMA_GENERATE_CODEC, OllamaClientCodec
from callwright.wire.openai_chat import OpenAIChatClientCodec, OpenAIChatServerCodec
from callwright.wire.openai_responses import OpenAIResponsesClientCodec, OpenAIResponsesServerCodec

__all__ = ["CLIENT_CODECS", "SERVER_CODECS"]

SERVER_CODECS: dict[str, ServerCodec] = {
    "openai_chat": OpenAIChatServerCodec(),
    "openai_responses": OpenAIResponsesServerCodec(),
    "anthropic": AnthropicServerCodec(),
    "ollama": OLLAMA_CHAT_CODEC,
    "ollama_generate": OLLAMA_GENERATE_CODEC,
}
CLIENT_CODECS: dict[str, ClientCodec] = {
    "openai_chat": OpenAIChatClientCodec(),
    "openai_responses": OpenAIResponsesClientCodec(),
    "anthropic": AnthropicClientCodec(),
    "ollama": OllamaClientCodec(),
}
