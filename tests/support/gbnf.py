"""GBNF for tests: what a grammar accepts, and texts that it makes. Reads the notation as llama.cpp documents it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from random import Random
from typing import Any

_TOKEN = re.compile(
    r"""\s*(?:(?P<literal>"(?:[^"\\]|\\.)*")|(?P<chars>\[\^?(?:[^\]\\]|\\.)*\])"""
    r"""|(?P<repeat>[*+?]|\{\d+(?:,\d*)?\})|(?P<sign>[()|])|(?P<name>[a-z0-9-]+))""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:x([0-9A-F]{2})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "[": "[", "]": "]"}

Node = tuple[Any, ...]
"""("text", str) | ("chars", negated, ((low, high), …)) | ("rule", name) | ("all", nodes) | ("any", nodes)
| ("many", node, least, most)"""


@dataclass
class Grammar:
    """A grammar that was read."""

    rules: dict[str, Node] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Grammar:
        grammar = cls()
        for line in text.strip().split("\n"):
            name, _, body = line.partition(" ::= ")
            assert name not in grammar.rules, name
            grammar.rules[name] = _Reader(body).whole()
        missing = {name for node in grammar.rules.values() for name in _names(node)} - grammar.rules.keys()
        assert not missing, missing
        return grammar

    def accepts(self, text: str) -> bool:
        """Whether the root makes exactly this text. A rule that begins with itself is an error."""
        known: dict[tuple[str, int], frozenset[int] | None] = {}

        def rule(name: str, at: int) -> frozenset[int]:
            if (name, at) not in known:
                known[name, at] = None
                known[name, at] = ends(self.rules[name], at)
            found = known[name, at]
            assert found is not None, f"{name} begins with itself"
            return found

        def ends(node: Node, at: int) -> frozenset[int]:
            match node:
                case ("text", word):
                    return frozenset({at + len(word)} if text.startswith(word, at) else ())
                case ("chars", negated, ranges):
                    hit = at < len(text) and _among(text[at], ranges) != negated
                    return frozenset({at + 1} if hit else ())
                case ("rule", name):
                    return rule(name, at)
                case ("any", nodes):
                    return frozenset().union(*(ends(each, at) for each in nodes))
                case ("all", nodes):
                    here = frozenset({at})
                    for each in nodes:
                        here = frozenset().union(*(ends(each, one) for one in here))
                    return here
                case ("many", inner, least, most):
                    return many(inner, least, most, at)
            raise AssertionError(node)

        def many(inner: Node, least: int, most: int | None, at: int) -> frozenset[int]:
            here, found, count = frozenset({at}), frozenset({at} if not least else ()), 0
            while here and (most is None or count < most):
                count += 1
                here = frozenset().union(*(ends(inner, one) for one in here))
                here = here - found if count > least else here
                found |= here if count >= least else frozenset()
            return found

        return len(text) in rule("root", 0)

    def make(self, random: Random, alphabet: str, depth: int = 40) -> str:
        """A text that the root makes; from `depth` rules on, the shortest way to the end."""
        sizes = self._sizes()
        out: list[str] = []

        def size(node: Node) -> float:
            return _size(node, sizes)

        def write(node: Node, left: int) -> None:
            match node:
                case ("text", word):
                    out.append(word)
                case ("chars", negated, ranges):
                    usable = [char for char in alphabet if _among(char, ranges) != negated]
                    out.append(random.choice(usable or [_one_of(negated, ranges)]))
                case ("rule", name):
                    write(self.rules[name], left - 1)
                case ("any", nodes):
                    ways = [each for each in nodes if size(each) < float("inf")]
                    write(random.choice(ways) if left > 0 else min(ways, key=size), left)
                case ("all", nodes):
                    for each in nodes:
                        write(each, left)
                case ("many", inner, least, most):
                    upto = least if left <= 0 else least + 3 if most is None else min(most, least + 3)
                    for _ in range(random.randint(least, upto)):
                        write(inner, left)

        write(("rule", "root"), depth)
        return "".join(out)

    def _sizes(self) -> dict[str, float]:
        """The length of the shortest text of each rule."""
        sizes = dict.fromkeys(self.rules, float("inf"))
        while True:
            found = {name: _size(node, sizes) for name, node in self.rules.items()}
            if found == sizes:
                return sizes
            sizes = found


def _size(node: Node, sizes: dict[str, float]) -> float:
    match node:
        case ("text", word):
            return len(word)
        case ("rule", name):
            return sizes[name] + 0.01
        case ("any", nodes):
            return min(_size(each, sizes) for each in nodes)
        case ("all", nodes):
            return sum(_size(each, sizes) for each in nodes)
        case ("many", inner, least, _):
            return least * _size(inner, sizes) if least else 0
    return 1


def _names(node: Node) -> set[str]:
    match node:
        case ("rule", name):
            return {name}
        case ("any" | "all", nodes):
            return {name for each in nodes for name in _names(each)}
        case ("many", inner, _, _):
            return _names(inner)
    return set()


def _among(char: str, ranges: tuple[tuple[str, str], ...]) -> bool:
    return any(low <= char <= high for low, high in ranges)


def _one_of(negated: bool, ranges: tuple[tuple[str, str], ...]) -> str:
    return next(chr(code) for code in range(32, 0x1000) if _among(chr(code), ranges) != negated)


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        position = 0
        while position < len(text.rstrip()):
            found = _TOKEN.match(text, position)
            assert found, f"no GBNF: {text[position : position + 40]!r}"
            self._tokens.append((found.lastgroup or "", found[found.lastgroup or 0]))
            position = found.end()

    def whole(self) -> Node:
        node = self._either()
        assert not self._tokens, self._tokens
        return node

    def _either(self) -> Node:
        choices = [self._all()]
        while self._tokens and self._tokens[0][1] == "|" and self._tokens[0][0] == "sign":
            self._tokens.pop(0)
            choices.append(self._all())
        return choices[0] if len(choices) == 1 else ("any", choices)

    def _all(self) -> Node:
        nodes: list[Node] = []
        while self._tokens and self._tokens[0] not in (("sign", "|"), ("sign", ")")):
            kind, token = self._tokens.pop(0)
            if kind == "repeat":
                nodes.append(_many(nodes.pop(), token))
            elif kind == "sign":
                nodes.append(self._either())
                assert self._tokens.pop(0) == ("sign", ")")
            else:
                nodes.append({"literal": _literal, "chars": _chars, "name": lambda name: ("rule", name)}[kind](token))
        assert nodes, "an alternative is empty"
        return ("all", nodes)


def _many(node: Node, sign: str) -> Node:
    if sign in "*+?":
        return ("many", node, int(sign == "+"), 1 if sign == "?" else None)
    least, comma, most = re.fullmatch(r"\{(\d+)(,?)(\d*)\}", sign).groups()  # type: ignore[union-attr]
    return ("many", node, int(least), int(most) if most else None if comma else int(least))


def _plain(text: str) -> list[str]:
    return [
        chr(int(escape[1], 16)) if escape[1] else _LETTERS[escape[2]] if escape[2] else escape[0]
        for escape in re.finditer(_ESCAPE.pattern + "|.", text, re.DOTALL)
    ]


def _literal(token: str) -> Node:
    return ("text", "".join(_plain(token[1:-1])))


def _chars(token: str) -> Node:
    negated = token.startswith("[^")
    pieces = [hit[0] for hit in re.finditer(_ESCAPE.pattern + "|.", token[2 if negated else 1 : -1], re.DOTALL)]
    ranges = []
    while pieces:
        low = "".join(_plain(pieces.pop(0)))
        high = low
        if len(pieces) > 1 and pieces[0] == "-":
            pieces.pop(0)
            high = "".join(_plain(pieces.pop(0)))
        ranges.append((low, high))
    return ("chars", negated, tuple(ranges))
