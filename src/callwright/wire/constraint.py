"""How servers are told what an answer is held to: the fields that each of them has for it.

A server that knows a grammar gets that, because a grammar leaves room for words; the others get the schema.
"""

from __future__ import annotations

from typing import Any, Literal

from callwright.model import Constraint

__all__ = ["GRAMMAR_FLAVOURS", "ConstraintFlavour", "build_constraint_fields"]

ConstraintFlavour = Literal["llamacpp", "vllm", "openai", "ollama"]
"""Whose way of saying it."""

GRAMMAR_FLAVOURS: frozenset[ConstraintFlavour] = frozenset({"llamacpp", "vllm"})
"""Those that take a grammar."""

_SCHEMA_NAME = "answer"
"""OpenAI wants a name for a schema."""


def build_constraint_fields(flavour: ConstraintFlavour, constraint: Constraint | None) -> dict[str, Any]:
    """The fields of a request's body; none where there is nothing to say, or no way to say it."""
    if constraint is None:
        return {}
    grammar, schema = constraint.grammar, constraint.schema
    match flavour:
        case "llamacpp" if grammar:  # tools/server/README.md: one of the two, never both
            return {"grammar": grammar}
        case "llamacpp" if schema:
            return {"json_schema": schema}
        case "vllm" if grammar:  # docs/features/structured_outputs.md from 0.12.0 on; `guided_*` before
            return {"structured_outputs": {"grammar": grammar}}
        case "vllm" if schema:
            return {"structured_outputs": {"json": schema}}
        case "openai" if schema:
            form = {"name": _SCHEMA_NAME, "strict": True, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": form}}
        case "ollama" if schema:  # docs/api.md from 0.5 on
            return {"format": schema}
        case _:
            return {}
