"""Anthropic's Messages: what Claude Code speaks, and the servers that it can be pointed at."""

from callwright.wire.anthropic.call import CalledAnthropic
from callwright.wire.anthropic.serve import ServedAnthropic

__all__ = ["CalledAnthropic", "ServedAnthropic"]
