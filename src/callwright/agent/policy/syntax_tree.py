"""The syntax tree of a text, as tree-sitter-bash sees it, and where it is known to see too little."""

from __future__ import annotations

import re
from collections.abc import Iterator

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from callwright.agent.policy.shell_words import get_node_text

__all__ = [
    "REDIRECTION_TYPES",
    "SUBSTITUTION_TYPES",
    "find_hidden_commands",
    "find_merged_command",
    "iter_nodes",
    "list_statements",
    "measure_height",
    "parse_tree",
]

SUBSTITUTION_TYPES = ("command_substitution", "process_substitution")
REDIRECTION_TYPES = ("file_redirect", "herestring_redirect", "heredoc_redirect")
_BASH = Language(tree_sitter_bash.language())
_NON_STATEMENT_TYPES = ("variable_name", "heredoc_start", "heredoc_body", "heredoc_end")
_TEXT_TYPES = ("word", "string_content", "regex", "extglob_pattern", "test_operator", "heredoc_content")
_SEPARATOR = re.compile(rb"(?<!\\)[\n;|&]")
_HIDDEN_COMMAND = re.compile(r"(?<!\\)`([^`]*)`?|(?<!\\)\$\((.*)", re.DOTALL)


def parse_tree(text: str) -> Node:
    """The root of a text's tree. Any text has one."""
    return Parser(_BASH).parse(text.encode("utf-8", "replace")).root_node


def iter_nodes(root: Node) -> Iterator[Node]:
    """Every node, the outer ones first, without recursion."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children)


def measure_height(root: Node) -> int:
    """How many nodes stand above each other, without recursion."""
    levels, level = 0, [root]
    while level:
        levels += 1
        level = [child for node in level for child in node.children]
    return levels


def list_statements(node: Node) -> list[Node]:
    """The parts of a node that may be or hold commands."""
    return [child for child in node.named_children if child.type not in _NON_STATEMENT_TYPES]


def find_merged_command(node: Node) -> int | None:
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


def find_hidden_commands(node: Node) -> Iterator[str]:
    """Commands that the grammar takes for plain text: backquotes within `${x:-...}`, or in a here-document.

    Whether a here-document's body may hold any depends on the quotes around its end mark: the caller knows.
    """
    is_body = node.type == "heredoc_body"
    if is_body or (node.type in _TEXT_TYPES and not node.children):
        for found in _HIDDEN_COMMAND.finditer(get_node_text(node)):
            if found[1] or not (is_body and node.children):
                yield found[1] or found[2] or ""
