"""Strict readers of the wires for `callwright smoke`, as strict as the strictest client of each. Pure."""

from __future__ import annotations

from callwright.cli.wire_checks.anthropic_messages import MESSAGES
from callwright.cli.wire_checks.base import CheckedAnswer, SmokeRequest, WireCheck
from callwright.cli.wire_checks.chat_completions import CHAT
from callwright.cli.wire_checks.ollama_chat import OLLAMA
from callwright.cli.wire_checks.responses_api import RESPONSES

__all__ = ["WIRE_CHECKS", "CheckedAnswer", "SmokeRequest", "WireCheck"]

WIRE_CHECKS = (CHAT, RESPONSES, MESSAGES, OLLAMA)
