"""Jobs: small requests that a rule sends to another model, such as chat titles and summaries. Pure.

Kilo 7.7 and opencode request a title beside the first turn, and Copilot Chat requests titles and summaries. On a slow
local model that delays every answer. Such requests have no tools, and their prompts say what they are for.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated

import msgspec

from callwright.model import Request, Text

__all__ = ["JobSettings", "find_job"]


class JobSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[jobs]]` table: requests without tools that go to another model than the requested one."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    """The name of the job in the journal."""
    model: Annotated[str, msgspec.Meta(min_length=1)]
    """The model that handles it."""
    keywords: tuple[str, ...] = ()
    """Phrases of which the prompt must contain one, ignoring case, such as `title for`."""
    max_tokens: Annotated[int, msgspec.Meta(ge=0)] = 0
    """The request must limit its answer to at most this many tokens. 0 = no such condition."""
    models: tuple[str, ...] = ()
    """Only requests for these models, by name or pattern. Empty = any model."""


def find_job(request: Request, jobs: Iterable[JobSettings]) -> JobSettings | None:
    """Find the first rule that matches the request. A rule with neither keywords nor a limit matches nothing."""
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
    """Whether a keyword occurs where a client states its purpose: in the instructions or the last message."""
    instructions = [message for message in request.messages if message.role in ("system", "developer")]
    parts = (part for message in (*instructions, *request.messages[-1:]) for part in message.parts)
    text = "\n".join(part.text for part in parts if isinstance(part, Text)).lower()
    return any(keyword.lower() in text for keyword in keywords)
