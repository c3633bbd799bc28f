"""Sections: consecutive calls in tags inside a wrapper, whose own tags may be missing.

    <tool_calls>
    <tool_call>…</tool_call>
    <tool_call>…</tool_call>
    </tool_calls>

Text that is no call ends the section: the rest of it is text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from callwright.arguments import ArgumentsWriter
from callwright.dialects import call_object
from callwright.text.source import ParseStep, Source, compile_markers
from callwright.turn import Turn

__all__ = ["TagSection", "get_key_filter", "read_closing_tag", "read_json_section"]


@dataclass(frozen=True)
class TagSection:
    """The two tags of the wrapper, and the tag that begins each call between them."""

    open: str
    call_opener: str
    close: str

    def read_section(
        self, source: Source, turn: Turn, read_call: Callable[[], ParseStep[str]], *, is_opened: bool
    ) -> ParseStep[str]:
        """Read calls up to the wrapper's end; the tag that begins the first one is consumed.

        `is_opened` says whether the wrapper's opening tag was read. Return an empty string, or the problem with the
        first call.
        """
        problem = yield from read_call()
        if problem:
            return problem
        if not is_opened:
            turn.add_repair("missing_open", f"{self.open} was missing before a call")
        while (yield from source.accept_next(compile_markers(self.call_opener))):
            source.start_capture()
            problem = yield from read_call()
            if problem:
                raw = source.end_capture()
                rest = source.text[source.position :]
                if source.closed and not (raw + rest).rstrip().endswith(">"):
                    source.position = len(source.text)
                    turn.add_truncated(self.call_opener + raw + rest)
                    return ""
                # This is no call. The rest of the section is text, where further calls are found.
                turn.add_text(self.call_opener + raw)
                turn.add_malformed(self.call_opener + raw, problem, shown=True)
                return ""
        yield from read_closing_tag(source, turn, self.close, is_required=is_opened)
        return ""


def read_json_section(source: Source, turn: Turn, tag: str) -> ParseStep[str]:
    """Read calls that are written as JSON inside tags, as in the hermes family, and the closing tag."""
    problem = yield from call_object.read_json_calls(source, turn)
    if not problem:
        yield from read_closing_tag(source, turn, tag)
    return problem


def read_closing_tag(source: Source, turn: Turn, tag: str, *, is_required: bool = True) -> ParseStep[None]:
    """Consume a closing tag after white space. If it is missing, consume nothing and record that."""
    if not (yield from source.accept_next(compile_markers(tag))) and is_required and not turn.is_truncated:
        turn.add_repair("missing_close", f"{tag} was missing after a call")


def get_key_filter(arguments: ArgumentsWriter) -> Callable[[str], bool] | None:
    """Return a filter for the keys that the tool still expects; None if it declares none, so that any is accepted."""
    return arguments.is_missing if arguments.call.schema.properties else None
