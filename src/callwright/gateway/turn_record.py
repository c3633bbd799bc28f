"""The record of one finished turn: what the log, the metrics, the ledger and the client's telemetry all say of it.

One value for all four, so that they cannot disagree.
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
    """What became of a turn."""

    request_id: str
    trace_id: str = ""
    wire: str
    model: str
    """As the configuration names it."""
    key: str = ""
    """The name of the key, never the key."""
    client: str = "openai"
    """The profile …"""
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
    """A call was cut off, or calls were dropped by `tool_block_max`."""
    stop_after_tools_mode: Literal["first", "burst"] = "burst"
    output_mode: OutputMode = "openai-json"
    dialect: str = ""
    """What the calls were read as; empty for the backend's own."""
    strategy: str = ""
    """How the model got its tools …"""
    strategy_reason: str = ""
    """… and the reason for it."""
    retries: tuple[str, ...] = ()
    """Why the model was asked again, each time …"""
    retry_reasons: tuple[RetryReason, ...] = ()
    """… and the same in one word each."""
    repairs: tuple[str, ...] = ()
    """Their kinds, as often as they happened."""
    fault: ErrorSource | Literal[""] = ""
    """Who failed, when somebody did."""
    error: str = ""
    """The `kind` of the problem."""

    def to_log_fields(self) -> dict[str, Any]:
        """The log's line."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        fields["has_tool_calls"] = bool(self.tool_call_names)
        fields["tool_call_count"] = len(self.tool_call_names)
        return {name: value for name, value in fields.items() if value not in ("", None, [], ())}

    def build_comment(self) -> str:
        """The telemetry at the end of a stream."""
        return msgspec.json.encode(
            {
                "tool_call_count": len(self.tool_call_names),
                "tool_call_truncated": self.tool_call_truncated,
                "stop_after_tools_mode": self.stop_after_tools_mode,
            }
        ).decode()

    def build_headers(self) -> dict[str, str]:
        """The telemetry of an answer in one piece."""
        return {
            "x-codex-tool-call-count": str(len(self.tool_call_names)),
            "x-codex-tool-call-truncated": str(self.tool_call_truncated).lower(),
            "x-codex-stop-after-tools-mode": self.stop_after_tools_mode,
        }


def summarize_reports(reports: Sequence[TurnReport]) -> dict[str, Any]:
    """What the record says of the answers, one for each choice; of what they have in common, the first."""
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
