"""Whether a task is really done (A-5): one that asked for changes and made none is not."""

from __future__ import annotations

import re

__all__ = ["needs_writes"]

_POLITE = re.compile(
    r"^(?:(?:please|kindly|now|then|hi|hello|hey|ok(?:ay)?|also)\b[\s,!.]*"
    r"|(?:can|could|would|will) you (?:please )?|i(?:'d| would) like you to |i (?:want|need) you to |let'?s )+",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"^(?:what|why|how|where|which|who|whose|when|is|are|was|were|do|does|did|has|have|should|explain|describe|tell|show"
    r"|list|find|search|look|review|check|count|compare|summari[sz]e|analy[sz]e|read|print|run|inspect|investigate)\b",
    re.IGNORECASE,
)
_CHANGES = (
    r"(?:add|adapt|adjust|append|apply|bump|change|clean up|comment|convert|correct|create|debug|delete|document|drop"
    r"|edit|enable|disable|extend|extract|fix|format|generate|implement|improve|inline|insert|introduce|make|merge"
    r"|migrate|modify|move|optimi[sz]e|patch|port|put|refactor|remove|rename|repair|replace|rewrite|scaffold|set|simplify"
    r"|sort|split|translate|turn|update|upgrade|wire|write)"
)
_CHANGE = re.compile(rf"\b{_CHANGES}\b", re.IGNORECASE)
_THEN_CHANGE = re.compile(rf"\b(?:and|then|,)\s+(?:then |also |please )?{_CHANGES}\b", re.IGNORECASE)


def needs_writes(task: str) -> bool:
    """The words of a task ask for something to be changed.

    A guess from English verbs: a question, or an order to look, asks for no change unless a change is ordered after it.
    """
    words = _POLITE.sub("", task.strip())
    if _ASKS.match(words):
        return _THEN_CHANGE.search(words) is not None
    return _CHANGE.search(words) is not None
