"""Effects: what the loop requests. `EffectDriver` performs them and answers with the event that records the result.


    CallModel       → ModelAnswered
    DecideCall      → CallDecided
    SaveCheckpoint  → CheckpointSaved
    RunTool         → ToolFinished
    EmitEvent       → the event itself

A loop that receives the same answers requests the same effects: this is how a session continues after a crash.
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
    """Call the model. Tools are only offered in turns."""

    messages: tuple[Message, ...]
    number: int
    purpose: ModelCallPurpose = "turn"
    title: str = ""
    """What is being written, for the user."""
    must_edit: bool = False
    """Only tools that change files are offered, and one of them must be called."""
    seconds: float = 0
    """The timeout of the answer, which is what remains of the task's time; 0 for none."""


class DecideCall(msgspec.Struct, frozen=True, kw_only=True):
    """Decide whether this call may run. `is_repeat`: it is the third in a row, so the user must decide."""

    call: ToolCall
    is_repeat: bool = False


class SaveCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Store what this call will overwrite."""

    call: ToolCall
    digest: str


class RunTool(msgspec.Struct, frozen=True, kw_only=True):
    """Run a call."""

    call: ToolCall


class EmitEvent(msgspec.Struct, frozen=True):
    """Store an event and show it."""

    event: SessionEvent


Effect = CallModel | DecideCall | SaveCheckpoint | RunTool | EmitEvent
EffectAnswer = ModelAnswered | CallDecided | CheckpointSaved | ToolFinished | SessionEvent
