"""Callwright: tool calls that work between any chat client and any model. This is the library's front door."""

from callwright import events, model
from callwright.dialects import Dialect, dialect
from callwright.events import check
from callwright.parser import Parser
from callwright.turn import Collected, collect

__all__ = [
    "Collected",
    "Dialect",
    "Parser",
    "check",
    "collect",
    "dialect",
    "events",
    "model",
]
__version__ = "0.1.0"
