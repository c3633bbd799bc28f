"""Overflow: whether a server refused a prompt because it is too long for it; another one may have a larger window."""

from __future__ import annotations

import re

from callwright.errors import BackendError

__all__ = ["is_context_overflow"]

# OpenAI and vLLM ("maximum context length is"), llama.cpp ("exceeds the available context size"), Anthropic.
_OVERFLOW_PATTERN = re.compile(
    r"maximum context|context (?:length|window|size)|prompt is too long|too many tokens", re.IGNORECASE
)


def is_context_overflow(problem: BackendError) -> bool:
    """By the words of the refusal: servers have no code in common for it."""
    return problem.kind == "refused" and bool(_OVERFLOW_PATTERN.search(str(problem)))
