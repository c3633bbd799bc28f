"""The syntax tree of a text from tree-sitter-bash, and workarounds for what its grammar misses."""

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
    """Return the root of a text's tree. Every text has one."""
    return Parser(_BASH).parse(text.encode("utf-8", "replace")).root_node


def iter_nodes(root: Node) -> Iterator[Node]:
    """Yield every node, outer nodes first, without recursion."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending += reversed(node.children)


def measure_height(root: Node) -> int:
    """Return the height of the tree, without recursion."""
    levels, level = 0, [root]
    while level:
        levels += 1
        level = [child for node in level for child in node.children]
    return levels


def list_statements(node: Node) -> list[Node]:
    """Return the children of a node that may be or contain commands."""
    return [child for child in node.named_children if child.type not in _NON_STATEMENT_TYPES]


def find_merged_command(node: Node) -> int | None:
    """Return the offset at which a command node wrongly contains a second command; the grammar reports no error there.

    tree-sitter-bash 0.25 merges two commands if a line begins with a backslash (`ls` and then `\\rm x`), or for `a= | b
    | c` before a line with `&&`. The text between the words of a command, and unquoted words, cannot contain a line end
    or a separator.
    """
    if node.type != "command":
        return None
    text, start, at = node.text or b"", node.start_byte, 0
    for child in node.children:
        end = child.end_byte - start if child.type == "word" else child.start_byte - start
        if found := _SEPARATOR.search(text[at:end]):
            return start + at + found.start()
        if child.type == "heredoc_redirect":
            return None
        at = child.end_byte - start
    return None


def find_hidden_commands(node: Node) -> Iterator[str]:
    """Find commands that the grammar takes for plain text: backquotes within `${x:-...}` or in a here-document.

    Whether the body of a here-document can contain commands depends on the quotes around its end mark, which the caller
    checks.
    """
    is_body = node.type == "heredoc_body"
    if is_body or (node.type in _TEXT_TYPES and not node.children):
        for found in _HIDDEN_COMMAND.finditer(get_node_text(node)):
            if found[1] or not (is_body and node.children):
                yield found[1] or found[2] or ""
