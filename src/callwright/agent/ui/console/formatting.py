"""Numbers, places and foreign text as a person reads them in a terminal.

Whatever a model, a command or a file says goes through `clean` before it is printed: a terminal obeys some characters
instead of showing them, and others make a line look like what it is not.
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
    # C1: 0x9b begins an escape sequence on its own.
    **{code: f"<{code:02X}>" for code in range(0x80, 0xA0)},
    # What turns the direction of text, or is not seen: "Trojan Source", CVE-2021-42574.
    **{code: f"<{code:04X}>" for code in (0x200B, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2060, 0x2070))},
    0xFEFF: "<FEFF>",
    **{code: f"<{code:05X}>" for code in range(0xE0000, 0xE0080)},
    # Halves of a character, which no terminal can be sent.
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
}


def sanitize_text(text: str) -> str:
    """The text with what a terminal would obey, or not show, made visible."""
    return text.replace("\r\n", "\n").translate(_VISIBLE_FORMS)


def describe_allowance(rule: str) -> str:
    """What a remembered pattern allows, in words; it is a TOML array of words, or names a tool."""
    if tool := _TOOL_RULE.fullmatch(rule):
        return f"every call of {tool[1]}"
    try:
        words = msgspec.json.decode(rule, type=list[str])
    except msgspec.DecodeError:
        return rule
    return f"commands that begin with {shlex.join(words)}"


def to_one_line(text: str) -> str:
    """The text in one line."""
    return sanitize_text(" ".join(text.split()))


def format_duration(seconds: float) -> str:
    """`12 ms`, `4.2 s`, `3 min 05 s`."""
    if seconds < 0.9995:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    return f"{round(seconds) // 60} min {round(seconds) % 60:02} s"


def format_age(seconds: float) -> str:
    """`now`, `5 min ago`, `3 h ago`, `12 d ago`."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return "now"


def format_tokens(count: int) -> str:
    """`940 tokens`, `12.3k tokens`."""
    return f"{count} tokens" if count < 1000 else f"{count / 1000:.1f}k tokens"


def format_line_counts(added: int, removed: int) -> str:
    """`+2 −1`, with a real minus sign."""
    return f"+{added} −{removed}"


def sum_line_counts(files: tuple[FileStat, ...]) -> tuple[int, int]:
    """Lines added and removed, all files together."""
    return sum(file.added for file in files), sum(file.removed for file in files)


def format_count(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def format_folder(path: str, home: str) -> str:
    """A folder with the home folder as `~`."""
    inside = home and (path == home or path.startswith(home.rstrip("/") + "/"))
    return sanitize_text(f"~{path[len(home.rstrip('/')) :]}" if inside else path)
