"""The wires as the strictest of their clients read them, for `callwright smoke`. Pure: bytes in, what they say out."""

from __future__ import annotations

from callwright.cli.shapes.base import Seen, Shape, Trial
from callwright.cli.shapes.chat import CHAT
from callwright.cli.shapes.messages import MESSAGES
from callwright.cli.shapes.ollama import OLLAMA
from callwright.cli.shapes.responses import RESPONSES

__all__ = ["SHAPES", "Seen", "Shape", "Trial"]

SHAPES = (CHAT, RESPONSES, MESSAGES, OLLAMA)
