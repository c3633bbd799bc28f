"""Wires: the four HTTP APIs of clients and servers, each as pure functions from bytes to values and back.

Each wire has a server codec (reads a client's request, writes events as that client's stream) and a client codec
(writes a request for a server, reads its stream as events). Nothing here opens a socket, reads a clock or uses
randomness.
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
