"""Recognises that a server refused a prompt as too long. Another backend may have a larger context window."""

from __future__ import annotations

import re

from callwright.errors import BackendError

__all__ = ["is_context_overflow"]

# OpenAI and vLLM ("maximum context length is"), llama.cpp ("exceeds the available context size"), Anthropic.
_OVERFLOW_PATTERN = re.compile(
    r"maximum context|context (?:length|window|size)|prompt is too long|too many tokens", re.IGNORECASE
)


def is_context_overflow(problem: BackendError) -> bool:
    """Whether this error is a context overflow. Servers share no code for it, so the message decides."""
    return problem.kind == "refused" and bool(_OVERFLOW_PATTERN.search(str(problem)))
