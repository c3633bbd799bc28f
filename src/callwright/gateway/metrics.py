"""Prometheus metrics, in a registry of their own.

Labels come from closed sets (wires, profiles, dialects, repair kinds, statuses) or are bounded: the first 200 models
have their own label, the rest share `other`, so that no caller can fill the memory with label values.
"""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from callwright.gateway.turn_record import TurnRecord

__all__ = ["Metrics"]

disable_created_metrics()  # type: ignore[no-untyped-call]  # drops the `_created` series that doubles each metric

_FIRST_BYTE_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_CHUNK_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 1.0)
_MAX_MODEL_LABELS = 200
"""Maximum number of models with a label of their own."""


class Metrics:
    """All metrics of the service."""

    content_type = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "callwright_requests",
            "Turns by status.",
            ("wire", "model", "client", "status"),
            registry=registry,
        )
        self.first_byte = Histogram(
            "callwright_first_byte_seconds", "Time from request to first byte of the response.", ("wire", "model"),
            buckets=_FIRST_BYTE_BUCKETS, registry=registry,
        )  # fmt: skip
        self.chunk = Histogram(
            "callwright_chunk_seconds", "Time from reading a backend's chunk to writing it to the client.",
            buckets=_CHUNK_BUCKETS, registry=registry,
        )  # fmt: skip
        self.tool_calls = Counter(
            "callwright_tool_calls", "Tool calls sent to clients.", ("dialect",), registry=registry
        )
        self.repairs = Counter("callwright_repairs", "Repairs by kind.", ("kind",), registry=registry)
        self.retries = Counter(
            "callwright_retries", "Unusable answers that were retried.", ("strategy", "reason"), registry=registry
        )
        self.journal_entries = Counter(
            "callwright_journal_entries", "Journal entries by outcome.", ("outcome",), registry=registry
        )
        """Outcomes: `written` and `dropped`."""
        self.errors = Counter("callwright_errors", "Failed requests.", ("fault", "kind"), registry=registry)
        self.active_turns = Gauge("callwright_active_turns", "Turns that are running.", registry=registry)
        self.tokens = Counter(
            "callwright_tokens", "Tokens of prompts and answers.", ("kind", "model"), registry=registry
        )
        self._models: set[str] = set()

    def count_turn(self, record: TurnRecord) -> None:
        """Count one finished turn."""
        model = self._get_model_label(record.model)
        self.requests.labels(record.wire, model, record.client, str(record.status)).inc()
        if record.first_byte_seconds is not None:
            self.first_byte.labels(record.wire, model).observe(record.first_byte_seconds)
        if record.tool_call_names:
            self.tool_calls.labels(record.dialect or "native").inc(len(record.tool_call_names))
        for kind in record.repairs:
            self.repairs.labels(kind).inc()
        for reason in record.retry_reasons:
            self.retries.labels(record.strategy, reason).inc()
        self.tokens.labels("prompt", model).inc(record.usage.prompt_tokens)
        self.tokens.labels("completion", model).inc(record.usage.completion_tokens)
        if record.fault:
            self.errors.labels(record.fault, record.error).inc()

    def _get_model_label(self, name: str) -> str:
        if name and len(self._models) < _MAX_MODEL_LABELS:
            self._models.add(name)
        return name if name in self._models else "other"

    def render_text(self) -> bytes:
        """Render the metrics in Prometheus's text format."""
        return generate_latest(self.registry)
