"""Jobs: small requests that a rule sends to another model, such as chat titles and summaries. Pure.

Kilo 7.7 and opencode ask for a title beside the first turn, and Copilot Chat for titles and summaries; on a slow local
model that is a wait before every answer. Such requests have no tools and say what they are in their prompts.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated

import msgspec

from callwright.model import Request, Text

__all__ = ["JobSettings", "find_job"]


class JobSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[jobs]]` table: which requests without tools go to another model than the one they ask for."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    """What the journal calls it."""
    model: Annotated[str, msgspec.Meta(min_length=1)]
    """The model that does it."""
    keywords: tuple[str, ...] = ()
    """Words of which one must stand in the prompt, whatever their case, such as `title for`."""
    max_tokens: Annotated[int, msgspec.Meta(ge=0)] = 0
    """The request must set a limit to its answer, and none above this. 0: it need not."""
    models: tuple[str, ...] = ()
    """Only requests for these models, by name or pattern. Empty: for any."""


def find_job(request: Request, jobs: Iterable[JobSettings]) -> JobSettings | None:
    """The first rule that takes the request. One with neither marks nor a limit takes nothing."""
    if request.tools:
        return None
    return next((job for job in jobs if _matches_request(job, request)), None)


def _matches_request(job: JobSettings, request: Request) -> bool:
    if not job.keywords and not job.max_tokens:
        return False
    if job.models and not any(fnmatchcase(request.model, pattern) for pattern in job.models):
        return False
    limit = request.options.get("max_tokens")
    if job.max_tokens and not (isinstance(limit, int) and limit <= job.max_tokens):
        return False
    return not job.keywords or _has_keyword(request, job.keywords)


def _has_keyword(request: Request, keywords: Iterable[str]) -> bool:
    """Whether a mark stands where a client says what it wants: in the instructions or the last message."""
    told = [message for message in request.messages if message.role in ("system", "developer")]
    parts = (part for message in (*told, *request.messages[-1:]) for part in message.parts)
    text = "\n".join(part.text for part in parts if isinstance(part, Text)).lower()
    return any(mark.lower() in text for mark in keywords)
