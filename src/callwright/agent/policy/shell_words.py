"""The words of a shell command, after quoting, escapes, braces and variables.

A word is expanded as the shell would, as far as the text alone allows. What only the running shell knows is `UNKNOWN`
in the word. One written word may expand to several (braces, splitting), and a variable that is assigned more than once
has several possible readings; all of them are judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice, product
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["MAX_READINGS", "UNKNOWN", "CommandStream", "ShellWord", "WordScope", "get_node_text", "list_readings"]

UNKNOWN = "\0"
MAX_READINGS = 16
_MAX_WORDS = 64
_MAX_BRACES = 16
# Quoted characters are shifted into a private plane while braces and spaces are searched.
_SPECIAL_CHARACTERS = "{},.*?[]~ \t\n"
_SHIELD = {ord(char): 0xF0000 + ord(char) for char in _SPECIAL_CHARACTERS}
_UNSHIELD = {shielded: char for char, shielded in _SHIELD.items()}
_SHIELD_BRACES = {code: shielded for code, shielded in _SHIELD.items() if chr(code) in "{},.~"}
_ANSI_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_ANSI_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "E": "\x1b"}
_BRACE_SEQUENCE = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.(-?\d+))?")
# What the shell sets itself. `~` represents the home folder in all paths.
_SHELL_VARIABLES = {
    "HOME": "~",
    "PWD": ".",
    "IFS": " \t\n",
    "TMPDIR": "/tmp",  # noqa: S108
    "?": "0",
    "#": "0",
    "$": "1",
    "0": "bash",
}


class CommandStream(NamedTuple):
    """What a command reads or writes: its text, where the command line alone determines it."""

    text: str | None
    origin: str
    """The command that it comes from, as text for the user."""


class ShellWord(NamedTuple):
    """One word as the program receives it."""

    text: str
    has_glob: bool = False
    """Whether it contains a pattern that the shell matches with file names."""
    stream: CommandStream | None = None
    """What can be read from it, if it is a process substitution."""

    @property
    def is_known(self) -> bool:
        """Whether the text determines it completely."""
        return UNKNOWN not in self.text

    @property
    def known_text(self) -> str:
        """The text with every unknown part empty, as for unset variables."""
        return self.text.replace(UNKNOWN, "")


class WordScope(Protocol):
    """What a word may refer to."""

    def get_values(self, name: str) -> list[str]:
        """Return the possible values of a variable; an empty list if it is not assigned."""

    def get_elements(self, name: str) -> list[str]:
        """Return the elements of an array, or the positional parameters for `@`."""

    def read_output(self, substitution: Node) -> CommandStream:
        """Return what the commands of a substitution write."""


def get_node_text(node: Node) -> str:
    """Return the text of a node as written."""
    return (node.text or b"").decode("utf-8", "replace")


def list_readings(node: Node, scope: WordScope) -> list[list[ShellWord]]:
    """Return each possible reading of a word: the words that it expands to."""
    if node.type == "process_substitution":
        return [[ShellWord("/dev/fd/63", stream=scope.read_output(node))]]
    return [_split_fields(text) for text in _expand_node(node, scope, quoted=False)]


def _expand_node(node: Node, scope: WordScope, *, quoted: bool) -> list[str]:
    """Return the possible texts of a node: quoted characters shielded, separating spaces unchanged."""
    written = get_node_text(node)
    match node.type:
        case "raw_string":
            return [written[1:-1].translate(_SHIELD)]
        case "ansi_c_string":
            return [_ANSI_ESCAPE.sub(_decode_ansi_escape, written[2:-1]).translate(_SHIELD)]
        case "simple_expansion" | "expansion":
            return _expand_variable(node, written, scope, quoted=quoted)
        case "command_substitution":
            text = scope.read_output(node).text
            return [_shield_value(UNKNOWN if text is None else text.rstrip("\n"), quoted=quoted)]
        case "process_substitution":
            scope.read_output(node)
            return ["/dev/fd/63"]
        case "arithmetic_expansion":
            return [UNKNOWN]
        case "string" | "translated_string":
            return _expand_children(node, scope, quoted=True)
        case "concatenation" | "command_name" | "array" | "heredoc_body":
            return _expand_children(node, scope, quoted=quoted or node.type == "heredoc_body")
        case "string_content" | "heredoc_content":
            return [_remove_escapes(written, quoted=True)]
        case _:
            return [_remove_escapes(written, quoted=quoted)]


def _expand_children(node: Node, scope: WordScope, *, quoted: bool) -> list[str]:
    """Join the expanded children with the text that the grammar omits between them."""
    source = node.text or b""
    parts: list[list[str]] = []
    at = 0
    for child in node.children:
        start, end = child.start_byte - node.start_byte, child.end_byte - node.start_byte
        if start > at:
            parts.append([_remove_escapes(source[at:start].decode("utf-8", "replace"), quoted=quoted)])
        at = end
        if child.type not in ('"', "(", ")") and get_node_text(child) != "$":
            parts.append(_expand_node(child, scope, quoted=quoted))
    if at < len(source):
        parts.append([_remove_escapes(source[at:].decode("utf-8", "replace"), quoted=quoted)])
    return ["".join(chosen) for chosen in islice(product(*parts), MAX_READINGS)]


def _remove_escapes(written: str, *, quoted: bool) -> str:
    if quoted:
        return re.sub(r'\\([$`"\\\n])', lambda found: found[1].strip("\n"), written).translate(_SHIELD)
    return re.sub(r"(?s)\\(.)", lambda found: found[1].strip("\n").translate(_SHIELD), written)


def _decode_ansi_escape(found: re.Match[str]) -> str:
    hexadecimal = found[1] or found[2] or found[3]
    if hexadecimal or found[4]:
        code = int(hexadecimal, 16) if hexadecimal else int(found[4], 8) & 0xFF
        return chr(code) if 0 < code < 0x110000 else ""
    return chr(ord(found[5]) & 0x1F) if found[5] else _ANSI_LETTERS.get(found[6], found[6])


def _expand_variable(node: Node, written: str, scope: WordScope, *, quoted: bool) -> list[str]:
    """Expand `$name`, `${name}`, `${name:-word}` and `${name[@]}`; any other form is unknown."""
    simple = re.fullmatch(r"\$(?:\{(\w+|[@*?#$])\}|(\w+|[@*?#$]))", written)
    if simple:
        name = simple[1] or simple[2]
        if name in "@*" or (name.isdigit() and name != "0"):
            elements = scope.get_elements("@")
            chosen = elements if name in "@*" else elements[int(name) - 1 : int(name)]
            return [" ".join(_shield_value(each, quoted=True) for each in chosen) if chosen else UNKNOWN]
        found = scope.get_values(name) or [_SHELL_VARIABLES.get(name, UNKNOWN)]
        if not quoted and (separators := "".join(scope.get_values("IFS"))):
            found = [value.translate(dict.fromkeys(map(ord, separators), " ")) for value in found]
        return [_shield_value(value, quoted=quoted) for value in found[:MAX_READINGS]]
    element = re.fullmatch(r"\$\{(\w+)\[(\d+|[@*])\]\}", written)
    if element:
        elements = scope.get_elements(element[1])
        chosen = elements if element[2] in "@*" else elements[int(element[2]) : int(element[2]) + 1]
        return [" ".join(_shield_value(each, quoted=True) for each in chosen) if chosen else UNKNOWN]
    default = re.match(r"\$\{(\w+):?[-=+]", written)
    if default and len(node.children) > 3:
        instead = [_expand_node(child, scope, quoted=quoted) for child in node.children[3:-1]]
        otherwise = ["".join(chosen) for chosen in islice(product(*instead), MAX_READINGS)]
        set_here = scope.get_values(default[1]) or [_SHELL_VARIABLES.get(default[1], UNKNOWN)]
        return [*(_shield_value(value, quoted=quoted) for value in set_here), *otherwise][:MAX_READINGS]
    return [UNKNOWN]


def _shield_value(value: str, *, quoted: bool) -> str:
    return value.translate(_SHIELD if quoted else _SHIELD_BRACES)


def _split_fields(text: str) -> list[ShellWord]:
    if text.count("{") > _MAX_BRACES:
        return [ShellWord(UNKNOWN)]
    words: list[ShellWord] = []
    for one in islice(_expand_braces(text), _MAX_WORDS):
        split = one.split() if one.strip() != one or any(space in one for space in " \t\n") else [one]
        words += [
            ShellWord(field.translate(_UNSHIELD), has_glob=any(char in field for char in "*?[")) for field in split
        ]
    return words


def _expand_braces(text: str) -> Iterator[str]:
    """Expand `a{b,c}` to `ab` and `ac`, and `{1..3}` to `1`, `2` and `3`."""
    start = text.find("{")
    while start >= 0:
        parts = _split_brace_list(text, start)
        if parts:
            choices, end = parts
            for choice, rest in product(choices, islice(_expand_braces(text[end:]), _MAX_WORDS)):
                yield from islice((f"{text[:start]}{inner}{rest}" for inner in _expand_braces(choice)), _MAX_WORDS)
            return
        start = text.find("{", start + 1)
    yield text


def _split_brace_list(text: str, start: int) -> tuple[Iterable[str], int] | None:
    """Return the parts between the commas of the brace at `start`, and where it ends; None if it is not a list."""
    depth, piece, parts = 0, start + 1, []
    for at in range(start, len(text)):
        char = text[at]
        depth += (char == "{") - (char == "}")
        if depth == 1 and char == ",":
            parts.append(text[piece:at])
            piece = at + 1
        if depth == 0:
            if parts:
                return [*parts, text[piece:at]], at + 1
            return (_expand_sequence(found), at + 1) if (found := _BRACE_SEQUENCE.fullmatch(text[piece:at])) else None
    return None


def _expand_sequence(found: re.Match[str]) -> list[str]:
    first, last = found[1], found[2]
    if first.lstrip("-").isdigit() and last.lstrip("-").isdigit():
        low, high = int(first), int(last)
        return [str(n) for n in islice(range(low, high + 1) if low <= high else range(low, high - 1, -1), _MAX_WORDS)]
    if len(first) == len(last) == 1:
        low, high = sorted((ord(first), ord(last)))
        return [chr(code) for code in range(low, high + 1)][:_MAX_WORDS]
    return [f"{first}..{last}"]
