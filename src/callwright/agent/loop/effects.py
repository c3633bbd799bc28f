"""Effects: what the loop wants done. The driver does it and answers with the event that says what came of it.

    CallModel  → Answered        Decide  → Decided        Checkpoint → Checkpointed
    RunTool    → ToolEnded       Tell    → the event itself

A loop that is given the same answers asks for the same effects: that is how a session goes on after a crash.
"""

from __future__ import annotations

import msgspec

from callwright.agent.session_events import (
    CallDecided,
    CheckpointSaved,
    ModelAnswered,
    ModelCallPurpose,
    SessionEvent,
    ToolFinished,
)
from callwright.model import Message, ToolCall

__all__ = ["CallModel", "DecideCall", "Effect", "EffectAnswer", "EmitEvent", "RunTool", "SaveCheckpoint"]


class CallModel(msgspec.Struct, frozen=True, kw_only=True):
    """Ask the model. Tools are offered on turns only."""

    messages: tuple[Message, ...]
    number: int
    purpose: ModelCallPurpose = "turn"
    title: str = ""
    """What is being written, for people."""
    must_edit: bool = False
    """Only tools that change files are offered, and one of them must be called."""
    seconds: float = 0
    """How long the answer may take, which is what is left of the task's time; 0 for as long as it takes."""


class DecideCall(msgspec.Struct, frozen=True, kw_only=True):
    """May this call run? `again`: it came for the third time running, so a person must say."""

    call: ToolCall
    is_repeat: bool = False


class SaveCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Keep what this call is going to overwrite."""

    call: ToolCall
    digest: str


class RunTool(msgspec.Struct, frozen=True, kw_only=True):
    """Run it."""

    call: ToolCall


class EmitEvent(msgspec.Struct, frozen=True):
    """Store this and show it."""

    event: SessionEvent


Effect = CallModel | DecideCall | SaveCheckpoint | RunTool | EmitEvent
EffectAnswer = ModelAnswered | CallDecided | CheckpointSaved | ToolFinished | SessionEvent
