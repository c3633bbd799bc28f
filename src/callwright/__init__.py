"""Callwright: tool calls that work between any chat client and any model. This module is the public library API."""

from callwright import events, model
from callwright.dialects import Dialect, get_dialect
from callwright.events import check_events
from callwright.parser import Parser
from callwright.tool_call_aggregator import ToolCallAggregator, text_pattern
from callwright.turn import Collected, collect
from callwright.use_tool_blocks import UseToolBlock, extract_use_tool_blocks, to_obsidian_xml

__all__ = [
    "Collected",
    "Dialect",
    "Parser",
    "ToolCallAggregator",
    "UseToolBlock",
    "check_events",
    "collect",
    "events",
    "extract_use_tool_blocks",
    "get_dialect",
    "model",
    "text_pattern",
    "to_obsidian_xml",
]
__version__ = "0.1.0"
