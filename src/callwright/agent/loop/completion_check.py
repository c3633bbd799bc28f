"""Checks whether a task is really done (A-5): one that requests changes and made none is not."""

from __future__ import annotations

import re

__all__ = ["needs_writes"]

_POLITE_OPENING = re.compile(
    r"^(?:(?:please|kindly|now|then|hi|hello|hey|ok(?:ay)?|also)\b[\s,!.]*"
    r"|(?:can|could|would|will) you (?:please )?|i(?:'d| would) like you to |i (?:want|need) you to |let'?s )+",
    re.IGNORECASE,
)
_QUESTION_OPENING = re.compile(
    r"^(?:what|why|how|where|which|who|whose|when|is|are|was|were|do|does|did|has|have|should|explain|describe|tell|show"
    r"|list|find|search|look|review|check|count|compare|summari[sz]e|analy[sz]e|read|print|run|inspect|investigate)\b",
    re.IGNORECASE,
)
_CHANGE_VERBS = (
    r"(?:add|adapt|adjust|append|apply|bump|change|clean up|comment|convert|correct|create|debug|delete|document|drop"
    r"|edit|enable|disable|extend|extract|fix|format|generate|implement|improve|inline|insert|introduce|make|merge"
    r"|migrate|modify|move|optimi[sz]e|patch|port|put|refactor|remove|rename|repair|replace|rewrite|scaffold|set|simplify"
    r"|sort|split|translate|turn|update|upgrade|wire|write)"
)
_CHANGE_ORDER = re.compile(rf"\b{_CHANGE_VERBS}\b", re.IGNORECASE)
_LATER_CHANGE_ORDER = re.compile(rf"\b(?:and|then|,)\s+(?:then |also |please )?{_CHANGE_VERBS}\b", re.IGNORECASE)


def needs_writes(task: str) -> bool:
    """Return whether a task's text requests a change.

    A heuristic with English verbs: a question, or an instruction to look, requests no change unless one follows it.
    """
    words = _POLITE_OPENING.sub("", task.strip())
    if _QUESTION_OPENING.match(words):
        return _LATER_CHANGE_ORDER.search(words) is not None
    return _CHANGE_ORDER.search(words) is not None
