"""What a judgement is made of. Tiers and decisions are ordered, and of two the stricter one counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, get_args

import msgspec

__all__ = [
    "DECISIONS",
    "TIERS",
    "Allowance",
    "Decision",
    "Judgement",
    "PolicyFinding",
    "Tier",
    "find_highest_tier",
    "find_strictest_decision",
]

Tier = Literal["none", "medium", "high", "critical"]
Decision = Literal["allow", "ask", "deny"]
TIERS: tuple[Tier, ...] = get_args(Tier)
DECISIONS: tuple[Decision, ...] = get_args(Decision)


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What may be done with a command, a file or a tool call."""

    tier: Tier
    decision: Decision
    why: str
    """A sentence for a person: which command, and which rule."""
    commands: tuple[tuple[str, ...], ...] = ()
    """Every command that was found, wrappers looked through."""
    is_read_only: bool = False
    """Known to change nothing."""
    allow_patterns: tuple[str, ...] = ()
    """What "always allow" would remember, for `Policy.allowing`; empty where nothing can be remembered."""


class PolicyFinding(NamedTuple):
    """One thing that was noticed. Without a `decision` it only says how dangerous something is."""

    tier: Tier
    why: str
    decision: Decision | None = None


class Allowance(NamedTuple):
    """Something that may run, if it is no more dangerous than `most`."""

    why: str
    max_tier: Tier = "none"
    is_read_only: bool = False
    """It changes nothing."""
    runs_project_code: bool = False
    """It runs the project's own code."""


def find_highest_tier(tiers: Iterable[Tier]) -> Tier:
    """The highest of some tiers."""
    return max(tiers, key=TIERS.index, default="none")


def find_strictest_decision(decisions: Iterable[Decision]) -> Decision | None:
    """The strictest of some decisions, if there is one."""
    return max(decisions, key=DECISIONS.index, default=None)
