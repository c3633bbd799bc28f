"""Error answers before the first byte, in the shape of the wire that the path belongs to.

Everything in the gateway that says no says it through here, so that a client can always read why.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Scope

from callwright.gateway.metrics import Metrics
from callwright.wire.base import ErrorResponse, ServerCodec

__all__ = ["ErrorResponder"]

log = logging.getLogger("callwright.errors")

# The first that fits; other paths are OpenAI's.
_PATH_WIRES = (
    ("/v1/messages", "anthropic"),
    ("/v1/responses", "openai_responses"),
    ("/api/", "ollama"),
    ("/", "openai_chat"),
)


class ErrorResponder:
    """Writes problems as answers."""

    def __init__(self, served: Mapping[str, ServerCodec], metrics: Metrics) -> None:
        self._codecs = served
        self._metrics = metrics

    def build_response(
        self, scope: Scope, problem: ErrorResponse, headers: Mapping[str, str] | None = None
    ) -> Response:
        """The answer to the request of this scope; for a turn, whose record counts and logs the failure."""
        path: str = scope["path"]
        wire = next(self._codecs[name] for start, name in _PATH_WIRES if path.startswith(start))
        sent = dict(headers or {})
        if problem.retry_after is not None:
            sent["retry-after"] = str(max(1, math.ceil(problem.retry_after)))
        return Response(wire.encode_error(problem), problem.status, sent, "application/json")

    def refuse_request(
        self, scope: Scope, problem: ErrorResponse, headers: Mapping[str, str] | None = None
    ) -> Response:
        """The same for a request that never became a turn: counted and logged here."""
        self._metrics.errors.labels(problem.fault, problem.kind).inc()
        log.info(
            "refused",
            extra={
                "fields": {
                    "method": scope["method"],
                    "path": scope["path"],
                    "status": problem.status,
                    "fault": problem.fault,
                    "code": problem.code,
                    "message": problem.message,
                }
            },
        )
        return self.build_response(scope, problem, headers)
