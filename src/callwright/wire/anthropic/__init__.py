"""Anthropic's Messages API: the API of Claude Code, and of the servers that it can be pointed at."""

from callwright.wire.anthropic.call import AnthropicClientCodec
from callwright.wire.anthropic.serve import AnthropicServerCodec

__all__ = ["AnthropicClientCodec", "AnthropicServerCodec"]
