"""Usage as values: requests and tokens by day, key, model and client. Pure, and loads no database. Days are UTC."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

__all__ = ["USAGE_COLUMNS", "USAGE_SUMS", "UsageRow", "UsageTotals", "sum_usage_rows"]

USAGE_COLUMNS = ("day", "key", "model", "client")
USAGE_SUMS = ("requests", "prompt_tokens", "completion_tokens")


class UsageRow(NamedTuple):
    """The usage of one combination of the columns."""

    day: str
    key: str
    model: str
    client: str
    requests: int
    prompt_tokens: int
    completion_tokens: int


class UsageTotals:
    """Adds up rows of the same day, key, model and client. As large as the number of combinations."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str, str, str], tuple[int, int, int]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing was added."""
        return not self._sums

    def add_row(self, row: UsageRow) -> None:
        """Add a row."""
        group = row[:4]
        requests, prompt, completion = self._sums.get(group, (0, 0, 0))
        self._sums[group] = (
            requests + row.requests,
            prompt + row.prompt_tokens,
            completion + row.completion_tokens,
        )

    def list_rows(self, since: date | None = None) -> list[UsageRow]:
        """Return the rows from that day on, sorted by their columns."""
        first = since.isoformat() if since else ""
        return [UsageRow(*group, *sums) for group, sums in sorted(self._sums.items()) if group[0] >= first]

    def take_rows(self) -> list[UsageRow]:
        """Remove and return all rows, sorted by their columns."""
        rows = self.list_rows()
        self._sums.clear()
        return rows


def sum_usage_rows(rows: Iterable[Mapping[str, Any]], by: Sequence[str]) -> list[dict[str, Any]]:
    """Sum the rows for each combination of these columns, sorted by them."""
    sums: dict[tuple[str, ...], dict[str, int]] = {}
    for row in rows:
        total = sums.setdefault(tuple(row[column] for column in by), dict.fromkeys(USAGE_SUMS, 0))
        for name in USAGE_SUMS:
            total[name] += row[name]
    return [{**dict(zip(by, group, strict=True)), **total} for group, total in sorted(sums.items())]
