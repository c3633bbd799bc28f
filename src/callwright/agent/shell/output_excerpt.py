"""The beginning and the end of an output of any length, with a line that reports what was omitted between them.

Invariant: memory is bounded by the number of stored lines; every line is shown or counted. Lines of binary data are
neither: a run of them becomes one line with its size.
"""

from __future__ import annotations

from collections import deque

from callwright.agent.shell.terminal_emulator import OutputLine

__all__ = ["OutputExcerpt"]

# Binary data contains newlines by chance, and so short lines that look like text. A run of it ends after this many
# consecutive lines of text.
_CLEAN_LINE_COUNT = 3


class OutputExcerpt:
    """The first `head` and the last `tail` lines of an output."""

    def __init__(self, *, head: int, tail: int) -> None:
        self._head = head
        self._first: list[str] = []
        self._last: deque[str] = deque(maxlen=tail)
        self._count = 0
        self._binary_bytes = 0
        self._clean: list[OutputLine] = []

    def add(self, line: OutputLine) -> None:
        """Add a line."""
        if line.kind == "binary" or (self._binary_bytes and line.kind == "mixed"):
            self._binary_bytes += line.size_bytes + sum(each.size_bytes for each in self._clean)
            self._clean.clear()
        elif self._binary_bytes:
            self._clean.append(line)
            if len(self._clean) == _CLEAN_LINE_COUNT:
                self._flush_binary()
        else:
            self._add_text(line.text)

    def close(self) -> None:
        """Finish the excerpt; no line follows."""
        self._flush_binary()

    @property
    def omitted_lines(self) -> int:
        """The number of omitted lines."""
        return self._count - len(self._first) - len(self._last)

    @property
    def text(self) -> str:
        """The stored lines, with a marker in the gap."""
        gap = [f"[… {self.omitted_lines:,} lines omitted …]"] if self.omitted_lines else []
        return "\n".join([*self._first, *gap, *self._last])

    def _add_text(self, line: str) -> None:
        self._count += 1
        if len(self._first) < self._head:
            self._first.append(line)
        else:
            self._last.append(line)

    def _flush_binary(self) -> None:
        if self._binary_bytes:
            self._add_text(f"[{_format_size(self._binary_bytes)} of binary output omitted]")
            self._binary_bytes = 0
        for line in self._clean:
            self._add_text(line.text)
        self._clean.clear()


def _format_size(size_bytes: int) -> str:
    if size_bytes < 1024:
        return f"{size_bytes} bytes"
    kib = size_bytes / 1024
    return f"{kib:.0f} KiB" if kib < 1024 else f"{kib / 1024:.1f} MiB"
