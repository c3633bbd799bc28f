"""Error responses before the first byte, in the format of the wire that the path belongs to.

The gateway sends every refusal through this module, so that clients can always read the reason.
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

# The first prefix that matches counts; all other paths are OpenAI's.
_PATH_WIRES = (
    ("/v1/messages", "anthropic"),
    ("/v1/responses", "openai_responses"),
    ("/api/", "ollama"),
    ("/", "openai_chat"),
)


class ErrorResponder:
    """Builds HTTP responses from errors."""

    def __init__(self, codecs: Mapping[str, ServerCodec], metrics: Metrics) -> None:
        self._codecs = codecs
        self._metrics = metrics

    def build_response(
        self, scope: Scope, problem: ErrorResponse, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Build the error response for a turn. The turn's record counts and logs the failure."""
        path: str = scope["path"]
        wire = next(self._codecs[name] for start, name in _PATH_WIRES if path.startswith(start))
        response_headers = dict(headers or {})
        if problem.retry_after is not None:
            response_headers["retry-after"] = str(max(1, math.ceil(problem.retry_after)))
        return Response(wire.encode_error(problem), problem.status, response_headers, "application/json")

    def refuse_request(
        self, scope: Scope, problem: ErrorResponse, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Build the error response for a request that did not become a turn. Counts and logs the failure."""
        self._metrics.errors.labels(problem.fault, problem.kind).inc()
        log.info(
            "request refused",
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
