"""Ollama's own API: chat and generate, as lines of JSON."""

from callwright.wire.ollama.call import NO_THINKING, NO_TOOLS, CalledOllama
from callwright.wire.ollama.serve import OLLAMA, OLLAMA_GENERATE

__all__ = ["NO_THINKING", "NO_TOOLS", "OLLAMA", "OLLAMA_GENERATE", "CalledOllama"]
