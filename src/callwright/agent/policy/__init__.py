"""What a command or a file write may do."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["Decision", "Judgement", "Tier"]

Tier = Literal["none", "medium", "high", "critical"]
Decision = Literal["allow", "ask", "deny"]


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules say of one thing that the agent wants to do."""

    tier: Tier
    decision: Decision
    why: str
    commands: tuple[tuple[str, ...], ...] = ()
    reads_only: bool = False
    remember: tuple[str, ...] = ()
