"""The record of one finished turn, shared by the log, the metrics, the usage and the client's telemetry.

All four use one value, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from callwright.engine.reask import RetryReason
from callwright.engine.settings import OutputMode
from callwright.engine.turn_report import TurnReport, sum_usage
from callwright.model import Usage
from callwright.wire.base import ErrorSource

__all__ = ["TurnRecord", "summarize_reports"]


class TurnRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one turn."""

    request_id: str
    trace_id: str = ""
    wire: str
    model: str
    """The model's name in the configuration."""
    key: str = ""
    """The name of the key, never the secret."""
    client: str = "openai"
    """The client's profile …"""
    profile_reason: str = ""
    """… and the reason for choosing it."""
    stream: bool = False
    status: int = 200
    finish_reason: str = ""
    seconds: float = 0.0
    first_byte_seconds: float | None = None
    usage: Usage = Usage()
    tool_call_names: tuple[str, ...] = ()
    tool_call_truncated: bool = False
    """A call was cut off, or `tool_block_max` dropped calls."""
    stop_after_tools_mode: Literal["first", "burst"] = "burst"
    output_mode: OutputMode = "openai-json"
    dialect: str = ""
    """The dialect that the calls were read in. Empty for the backend's native calls."""
    strategy: str = ""
    """How the tools were given to the model …"""
    strategy_reason: str = ""
    """… and the reason for it."""
    retries: tuple[str, ...] = ()
    """Why each retry was sent, as a sentence …"""
    retry_reasons: tuple[RetryReason, ...] = ()
    """… and as a code."""
    repairs: tuple[str, ...] = ()
    """The kind of each repair, in order and with repetitions."""
    fault: ErrorSource | Literal[""] = ""
    """Who is at fault, when the turn failed."""
    error: str = ""
    """The `kind` of the `ErrorResponse`."""

    def to_log_fields(self) -> dict[str, Any]:
        """Build the fields of the log line."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        fields["has_tool_calls"] = bool(self.tool_call_names)
        fields["tool_call_count"] = len(self.tool_call_names)
        return {name: value for name, value in fields.items() if value not in ("", None, [], ())}

    def build_comment(self) -> str:
        """Build the telemetry comment for the end of a stream."""
        return msgspec.json.encode(
            {
                "tool_call_count": len(self.tool_call_names),
                "tool_call_truncated": self.tool_call_truncated,
                "stop_after_tools_mode": self.stop_after_tools_mode,
            }
        ).decode()

    def build_headers(self) -> dict[str, str]:
        """Build the telemetry headers of a response that is not streamed."""
        return {
            "x-codex-tool-call-count": str(len(self.tool_call_names)),
            "x-codex-tool-call-truncated": str(self.tool_call_truncated).lower(),
            "x-codex-stop-after-tools-mode": self.stop_after_tools_mode,
        }


def summarize_reports(reports: Sequence[TurnReport]) -> dict[str, Any]:
    """Summarize the reports of all choices as fields of a `TurnRecord`. Fields without a sum come from the first."""
    if not reports:
        return {}
    return {
        "finish_reason": reports[0].finish_reason,
        "dialect": reports[0].dialect,
        "strategy": reports[0].strategy,
        "strategy_reason": reports[0].strategy_reason,
        "usage": sum_usage(report.usage for report in reports),
        "tool_call_names": tuple(name for report in reports for name in report.call_names),
        "tool_call_truncated": any(report.has_dropped_calls for report in reports),
        "retries": tuple(why for report in reports for why in report.retries),
        "retry_reasons": tuple(reason for report in reports for reason in report.retry_reasons),
        "repairs": tuple(repair.kind for report in reports for repair in report.repairs),
    }
