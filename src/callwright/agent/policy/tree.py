"""The syntax tree of a text, as tree-sitter-bash sees it, and where it is known to see too little."""

from __future__ import annotations

import re
from collections.abc import Iterator

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from callwright.agent.policy.words import text_of

__all__ = ["REDIRECTIONS", "SUBSTITUTIONS", "every_node", "height", "hidden", "parse", "statements", "swallowed"]

SUBSTITUTIONS = ("command_substitution", "process_substitution")
REDIRECTIONS = ("file_redirect", "herestring_redirect", "heredoc_redirect")
_LANGUAGE = Language(tree_sitter_bash.language())
_NO_STATEMENTS = ("variable_name", "heredoc_start", "heredoc_body", "heredoc_end")
_MAY_HIDE = ("word", "string_content", "regex", "extglob_pattern", "test_operator", "heredoc_content")
_SEPARATOR = re.compile(rb"(?<!\\)[\n;|&]")
_HIDDEN = re.compile(r"(?<!\\)`([^`]*)`?|(?<!\\)\$\((.*)", re.DOTALL)


def parse(text: str) -> Node:
    """The root of a text's tree. Any text has one."""
    return Parser(_LANGUAGE).parse(text.encode("utf-8", "replace")).root_node


def every_node(root: Node) -> Iterator[Node]:
    """Every node, the outer ones first, without recursion."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children)


def height(root: Node) -> int:
    """How many nodes stand above each other, without recursion."""
    levels, level = 0, [root]
    while level:
        levels += 1
        level = [child for node in level for child in node.children]
    return levels


def statements(node: Node) -> list[Node]:
    """The parts of a node that may be or hold commands."""
    return [child for child in node.named_children if child.type not in _NO_STATEMENTS]


def swallowed(node: Node) -> int | None:
    """Where a command ends within one, which it cannot: the grammar took two commands for one, and reports no error.

    tree-sitter-bash 0.25 does so with a line that begins with a backslash (`ls` and then `\\rm x`), and with
    `a= | b | c` before a line with `&&`. What stands between the words of a command, and words without quotes, cannot
    hold the end of a line or a separator.
    """
    if node.type != "command":
        return None
    whole, start, at = node.text or b"", node.start_byte, 0
    for child in node.children:
        bare = child.end_byte - start if child.type == "word" else child.start_byte - start
        if found := _SEPARATOR.search(whole[at:bare]):
            return start + at + found.start()
        if child.type == "heredoc_redirect":
            return None
        at = child.end_byte - start
    return None


def hidden(node: Node) -> Iterator[str]:
    """Commands that the grammar takes for plain text: backquotes within `${x:-...}`, or in a here-document.

    Whether a here-document's body may hold any depends on the quotes around its end mark: the caller knows.
    """
    is_body = node.type == "heredoc_body"
    if is_body or (node.type in _MAY_HIDE and not node.children):
        for found in _HIDDEN.finditer(text_of(node)):
            if found[1] or not (is_body and node.children):
                yield found[1] or found[2] or ""
