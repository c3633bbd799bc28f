"""Renders the model's Markdown, which arrives in pieces.

`MarkdownSplitter` splits it into blocks that can be shown permanently, in time linear in the text; the boundaries of
the pieces do not matter. `MarkdownBlock` renders one without dropping a word, and shows the target of every link.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from rich.markdown import CodeBlock, Heading, Markdown
from rich.padding import Padding
from rich.segment import Segment
from rich.syntax import Syntax

from callwright.agent.ui.console.formatting import sanitize_text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

__all__ = ["MarkdownBlock", "MarkdownSplitter"]

_FENCE = re.compile(r"(\s*)(`{3,}|~{3,})(.*)")
_LIST_ITEM = re.compile(r"\s*([-*+]|\d{1,9}[.)])\s")


class MarkdownSplitter:
    """Splits Markdown into blocks, each returned when nothing can be added to it."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._partial_line: list[str] = []
        self._fence = ""
        self._has_items = False

    @property
    def pending(self) -> str:
        """The incomplete block so far."""
        return "".join((*self._lines, *self._partial_line))

    def feed(self, text: str) -> list[str]:
        """Add text and return the blocks that are now complete."""
        complete: list[str] = []
        for line in text.splitlines(keepends=True):
            self._partial_line.append(line)
            if line.endswith("\n"):
                complete += self._add_line("".join(self._partial_line))
                self._partial_line.clear()
        return complete

    def close(self) -> list[str]:
        """Return the remaining block, complete or not."""
        complete = self._add_line("".join(self._partial_line)) if self._partial_line else []
        self._partial_line.clear()
        self._fence = ""
        return complete + self._flush_block()

    def _add_line(self, line: str) -> list[str]:
        fence = _FENCE.match(line)
        if self._fence:
            self._lines.append(line)
            if fence and fence[2].startswith(self._fence) and not fence[3].strip():
                self._fence = ""
                return [] if self._has_items else self._flush_block()
            return []
        opens = fence is not None and not (fence[2][0] == "`" and "`" in fence[3])
        is_item = _LIST_ITEM.match(line) is not None
        after_blank = bool(self._lines) and not self._lines[-1].strip()
        continues = line[0] in " \t" or (is_item and self._has_items)
        ends = bool(line.strip()) and not continues and (after_blank or (opens and not self._has_items))
        complete = self._flush_block() if ends else []
        self._lines.append(line)
        self._has_items |= is_item
        if opens and fence:
            self._fence = fence[2]
        return complete

    def _flush_block(self) -> list[str]:
        block = "".join(self._lines).strip("\n")
        self._lines.clear()
        self._has_items = False
        return [block] if block.strip() else []


class _PlainHeading(Heading):
    LEVEL_ALIGN: ClassVar[dict[str, Any]] = {}

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text  # rich frames or centres the first level, which is too prominent in a conversation


class _PlainCodeBlock(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = Syntax(
            str(self.text).rstrip(), self.lexer_name, theme="ansi_dark", background_color="default", word_wrap=True
        )
        yield Padding(code, (0, 0, 0, 2))


class MarkdownBlock(Markdown):
    """One block of Markdown."""

    elements: ClassVar[dict[str, Any]] = {
        **Markdown.elements,
        "heading_open": _PlainHeading,
        "fence": _PlainCodeBlock,
        "code_block": _PlainCodeBlock,
    }

    def __init__(self, text: str) -> None:
        super().__init__(sanitize_text(text), hyperlinks=False)
        for token in self.parsed:
            if token.type == "html_block":  # rich drops HTML, and `<Button>` may be what the sentence is about
                token.type = "code_block"
            for child in token.children or ():
                if child.type == "html_inline":
                    child.type = "text"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render like rich, without the empty line above a list."""
        has_begun = False
        for piece in super().__rich_console__(console, options):
            has_begun = has_begun or piece != Segment.line()
            if has_begun:
                yield piece
