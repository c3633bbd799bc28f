"""OpenAI's chat completions: what most clients speak, and most servers."""

from callwright.wire.openai_chat.call import OpenAIChatClientCodec
from callwright.wire.openai_chat.serve import OpenAIChatServerCodec

__all__ = ["OpenAIChatClientCodec", "OpenAIChatServerCodec"]
