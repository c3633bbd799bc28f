"""Ollama's own API: chat and generate, as lines of JSON."""

from callwright.wire.ollama.call import THINKING_UNSUPPORTED, TOOLS_UNSUPPORTED, OllamaClientCodec
from callwright.wire.ollama.serve import OLLAMA_CHAT_CODEC, OLLAMA_GENERATE_CODEC

__all__ = [
    "OLLAMA_CHAT_CODEC",
    "OLLAMA_GENERATE_CODEC",
    "THINKING_UNSUPPORTED",
    "TOOLS_UNSUPPORTED",
    "OllamaClientCodec",
]
