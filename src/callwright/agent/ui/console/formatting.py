"""Formats numbers, paths and untrusted text for a terminal.

All text from a model, a command or a file passes through `sanitize_text` before it is printed: a terminal interprets
some characters instead of showing them, and others make a line look like another one.
"""

from __future__ import annotations

import re
import shlex

import msgspec

from callwright.agent.session_events import FileStat

__all__ = [
    "describe_allowance",
    "format_age",
    "format_count",
    "format_duration",
    "format_folder",
    "format_line_counts",
    "format_tokens",
    "sanitize_text",
    "sum_line_counts",
    "to_one_line",
]

_TOOL_RULE = re.compile(r'\{ tool = "([^"]*)" \}')
_VISIBLE_FORMS = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"},
    0x7F: "\u2421",
    # C1: 0x9b alone starts an escape sequence.
    **{code: f"<{code:02X}>" for code in range(0x80, 0xA0)},
    # Invisible characters and those that change the direction of text: "Trojan Source", CVE-2021-42574.
    **{code: f"<{code:04X}>" for code in (0x200B, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2060, 0x2070))},
    0xFEFF: "<FEFF>",
    **{code: f"<{code:05X}>" for code in range(0xE0000, 0xE0080)},
    # Surrogates, which cannot be encoded for a terminal.
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
}


def sanitize_text(text: str) -> str:
    """Return the text with control and invisible characters made visible."""
    return text.replace("\r\n", "\n").translate(_VISIBLE_FORMS)


def describe_allowance(rule: str) -> str:
    """Describe what a remembered pattern allows; it is a TOML array of words, or names a tool."""
    if tool := _TOOL_RULE.fullmatch(rule):
        return f"every call of {tool[1]}"
    try:
        words = msgspec.json.decode(rule, type=list[str])
    except msgspec.DecodeError:
        return rule
    return f"commands that begin with {shlex.join(words)}"


def to_one_line(text: str) -> str:
    """Return the text in one line."""
    return sanitize_text(" ".join(text.split()))


def format_duration(seconds: float) -> str:
    """Format `12 ms`, `4.2 s`, `3 min 05 s`."""
    if seconds < 0.9995:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    return f"{round(seconds) // 60} min {round(seconds) % 60:02} s"


def format_age(seconds: float) -> str:
    """Format `now`, `5 min ago`, `3 h ago`, `12 d ago`."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return "now"


def format_tokens(count: int) -> str:
    """Format `940 tokens`, `12.3k tokens`."""
    return f"{count} tokens" if count < 1000 else f"{count / 1000:.1f}k tokens"


def format_line_counts(added: int, removed: int) -> str:
    """Format `+2 −1`, with a real minus sign."""
    return f"+{added} −{removed}"


def sum_line_counts(files: tuple[FileStat, ...]) -> tuple[int, int]:
    """Return the lines added and removed in all files together."""
    return sum(file.added for file in files), sum(file.removed for file in files)


def format_count(count: int, noun: str) -> str:
    """Format `1 file`, `2 files`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def format_folder(path: str, home: str) -> str:
    """Format a folder with the home folder as `~`."""
    inside = home and (path == home or path.startswith(home.rstrip("/") + "/"))
    return sanitize_text(f"~{path[len(home.rstrip('/')) :]}" if inside else path)
