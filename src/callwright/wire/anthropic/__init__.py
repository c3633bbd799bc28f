"""Anthropic's Messages: what Claude Code speaks, and the servers that it can be pointed at."""

from callwright.wire.anthropic.call import AnthropicClientCodec
from callwright.wire.anthropic.serve import AnthropicServerCodec

__all__ = ["AnthropicClientCodec", "AnthropicServerCodec"]
