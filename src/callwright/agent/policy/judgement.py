"""The parts of a judgement. Tiers and decisions are ordered; of two, the stricter one applies."""

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
    """Whether a command, a file access or a tool call is allowed, and why."""

    tier: Tier
    decision: Decision
    why: str
    """A sentence for the user: which command, and which rule."""
    commands: tuple[tuple[str, ...], ...] = ()
    """Every command that was found, including those that wrappers run."""
    is_read_only: bool = False
    """Whether it is known to change nothing."""
    allow_patterns: tuple[str, ...] = ()
    """What "always allow" would store, for `Policy.with_allowances`; empty where nothing can be stored."""


class PolicyFinding(NamedTuple):
    """One thing that a check found. Without a `decision` it only rates the danger."""

    tier: Tier
    why: str
    decision: Decision | None = None


class Allowance(NamedTuple):
    """Something that may run if it is no more dangerous than `max_tier`."""

    why: str
    max_tier: Tier = "none"
    is_read_only: bool = False
    """Whether it changes nothing."""
    runs_project_code: bool = False
    """Whether it runs the project's own code."""


def find_highest_tier(tiers: Iterable[Tier]) -> Tier:
    """Return the highest of several tiers."""
    return max(tiers, key=TIERS.index, default="none")


def find_strictest_decision(decisions: Iterable[Decision]) -> Decision | None:
    """Return the strictest of several decisions, if there is one."""
    return max(decisions, key=DECISIONS.index, default=None)
