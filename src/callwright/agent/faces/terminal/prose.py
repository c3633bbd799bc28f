"""What a model says: Markdown that arrives in pieces.

`Paragraphs` cuts it into blocks that can be shown for good, in time linear in the text; how the text was cut into
pieces makes no difference. `Prose` shows one: without losing a word, and without a link that hides where it leads.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from rich.markdown import CodeBlock, Heading, Markdown
from rich.padding import Padding
from rich.segment import Segment
from rich.syntax import Syntax

from callwright.agent.faces.terminal.wording import clean

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

__all__ = ["Paragraphs", "Prose"]

_FENCE = re.compile(r"(\s*)(`{3,}|~{3,})(.*)")
_ITEM = re.compile(r"\s*([-*+]|\d{1,9}[.)])\s")


class Paragraphs:
    """Markdown blocks, each handed on when nothing can be added to it any more."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._begun: list[str] = []
        self._fence = ""
        self._has_items = False

    @property
    def pending(self) -> str:
        """What is there of the block that is being written."""
        return "".join((*self._lines, *self._begun))

    def feed(self, text: str) -> list[str]:
        """The blocks that are whole with this."""
        whole: list[str] = []
        for line in text.splitlines(keepends=True):
            self._begun.append(line)
            if line.endswith("\n"):
                whole += self._add("".join(self._begun))
                self._begun.clear()
        return whole

    def close(self) -> list[str]:
        """What is left, whole or not."""
        whole = self._add("".join(self._begun)) if self._begun else []
        self._begun.clear()
        self._fence = ""
        return whole + self._cut()

    def _add(self, line: str) -> list[str]:
        fence = _FENCE.match(line)
        if self._fence:
            self._lines.append(line)
            if fence and fence[2].startswith(self._fence) and not fence[3].strip():
                self._fence = ""
                return [] if self._has_items else self._cut()
            return []
        opens = fence is not None and not (fence[2][0] == "`" and "`" in fence[3])
        is_item = _ITEM.match(line) is not None
        after_blank = bool(self._lines) and not self._lines[-1].strip()
        continues = line[0] in " \t" or (is_item and self._has_items)
        ends = bool(line.strip()) and not continues and (after_blank or (opens and not self._has_items))
        whole = self._cut() if ends else []
        self._lines.append(line)
        self._has_items |= is_item
        if opens and fence:
            self._fence = fence[2]
        return whole

    def _cut(self) -> list[str]:
        block = "".join(self._lines).strip("\n")
        self._lines.clear()
        self._has_items = False
        return [block] if block.strip() else []


class _PlainHeading(Heading):
    LEVEL_ALIGN: ClassVar[dict[str, Any]] = {}

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text  # rich frames or centres the first level: too loud in a conversation


class _Code(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = Syntax(
            str(self.text).rstrip(), self.lexer_name, theme="ansi_dark", background_color="default", word_wrap=True
        )
        yield Padding(code, (0, 0, 0, 2))


class Prose(Markdown):
    """One block of Markdown."""

    elements: ClassVar[dict[str, Any]] = {
        **Markdown.elements,
        "heading_open": _PlainHeading,
        "fence": _Code,
        "code_block": _Code,
    }

    def __init__(self, text: str) -> None:
        super().__init__(clean(text), hyperlinks=False)
        for token in self.parsed:
            if token.type == "html_block":  # rich leaves HTML out, and `<Button>` may be what the sentence is about
                token.type = "code_block"
            for child in token.children or ():
                if child.type == "html_inline":
                    child.type = "text"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """As rich does it, without the empty line that it puts above a list."""
        has_begun = False
        for piece in super().__rich_console__(console, options):
            has_begun = has_begun or piece != Segment.line()
            if has_begun:
                yield piece
