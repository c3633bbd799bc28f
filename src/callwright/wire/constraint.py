"""The request fields for constrained decoding, for each kind of server.

A server that supports grammars gets the grammar, because a grammar allows text as well; the others get the schema.
"""

from __future__ import annotations

from typing import Any, Literal

from callwright.model import Constraint

__all__ = ["GRAMMAR_FLAVOURS", "ConstraintFlavour", "build_constraint_fields"]

ConstraintFlavour = Literal["llamacpp", "vllm", "openai", "ollama"]
"""The kind of server."""

GRAMMAR_FLAVOURS: frozenset[ConstraintFlavour] = frozenset({"llamacpp", "vllm"})
"""The servers that accept a grammar."""

_SCHEMA_NAME = "answer"
"""OpenAI requires a name for a schema."""


def build_constraint_fields(flavour: ConstraintFlavour, constraint: Constraint | None) -> dict[str, Any]:
    """Return the fields for a request's body; empty if there is no constraint, or the server has no field for it."""
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
