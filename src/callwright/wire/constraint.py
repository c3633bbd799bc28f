"""Constraint: how each kind of server is told what its answer is held to. One entry per flavour of server."""

from __future__ import annotations

from typing import Any, Literal

from callwright.model import Constraint

__all__ = ["Flavour", "constrained_fields"]

Flavour = Literal["none", "llamacpp"]


def constrained_fields(flavour: Flavour, constraint: Constraint | None) -> dict[str, Any]:
    """The fields of a body that hold its answer to the constraint; none where there is none, or it cannot be said."""
    if constraint is None:
        return {}
    match flavour:
        case "none":
            return {}
        case "llamacpp":
            return _llamacpp(constraint)


def _llamacpp(constraint: Constraint) -> dict[str, Any]:
    """llama.cpp's server takes one of the two, not both (its tools/server/README.md); the grammar says more."""
    if constraint.grammar:
        return {"grammar": constraint.grammar}
    return {} if constraint.schema is None else {"json_schema": constraint.schema}
