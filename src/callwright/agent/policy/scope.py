"""What the words of a script may refer to: variables, arrays, positional parameters, functions and aliases.

They are gathered from the whole text before it is walked, without regard to order: a variable may have any value that
is assigned to it anywhere, here or in the script around.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from callwright.agent.policy.words import MOST_READINGS, UNKNOWN, Stream, readings, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Scope"]

_DEEPEST = 16
_LONGEST_VALUE = 4_000
_NO_ITEMS = ("variable_name", "do_group", "compound_statement")


class Scope(ABC):
    """The names of a script. `given` is `$0` and the positional parameters."""

    def __init__(self, parent: Scope | None, given: Sequence[str], spent_alias: str = "") -> None:
        self._parent = parent
        self._given = list(given)
        self._spent: frozenset[str] = (parent._spent if parent else frozenset()) | {spent_alias}
        self._assigned: dict[str, list[Node]] = {}
        self._functions: dict[str, Node] = {}
        self._aliases: dict[str, str] = {}
        self._working: list[str] = []
        self._known: dict[str, list[str]] = {}

    @abstractmethod
    def output(self, substitution: Node) -> Stream:
        """What the commands of a substitution write."""

    def collect(self, nodes: Sequence[Node]) -> None:
        """Gather the names of a text."""
        for node in nodes:
            name = node.child_by_field_name("name")
            match node.type:
                case "variable_assignment" if name:
                    self._assigned.setdefault(text_of(name).partition("[")[0], []).append(node)
                case "for_statement" if variable := node.child_by_field_name("variable"):
                    self._assigned.setdefault(text_of(variable), []).append(node)
                case "function_definition" if name and (body := node.child_by_field_name("body")):
                    self._functions[text_of(name)] = body
                case "command" if name and text_of(name) == "alias":
                    for word in node.children[1:]:
                        alias, _, value = " ".join(each.text for each in readings(word, self)[0]).partition("=")
                        self._aliases[alias] = value
                case _:
                    pass

    def values(self, name: str) -> list[str]:
        """The possible values of a variable; none if it is not assigned."""
        if name == "0":
            return self._given[:1]
        if name not in self._assigned:
            return self._parent.values(name) if self._parent else []
        if name in self._working or len(self._working) > _DEEPEST:
            return [UNKNOWN]
        if name not in self._known:
            self._known[name] = self._worked_out(name)
        return self._known[name]

    def _worked_out(self, name: str) -> list[str]:
        self._working.append(name)
        found: list[str] = []
        for node in self._assigned[name]:
            if node.type == "for_statement":  # a loop's variable is each of its items
                items = [child for child in node.named_children if child.type not in _NO_ITEMS]
                found += [word.text for item in items for words in readings(item, self) for word in words]
            else:
                texts = self._values_of(name, node.child_by_field_name("value"))
                appends = any(child.type == "+=" for child in node.children)
                found += [f"{before}{text}" for before in found or [""] for text in texts] if appends else texts
            found = list(dict.fromkeys(found))[-MOST_READINGS:]
        self._working.pop()
        return [text if len(text) <= _LONGEST_VALUE else UNKNOWN for text in found]

    def _values_of(self, name: str, value: Node | None) -> list[str]:
        if value is None:
            return [""]
        if value.type == "array":
            return self.elements(name)[:1]
        return [" ".join(word.text for word in words) for words in readings(value, self)]

    def give(self, given: Sequence[str]) -> list[str]:
        """Set `$0` and the positional parameters, on which values may depend; returns those before."""
        before, self._given = self._given, list(given)
        self._known.clear()
        return before

    def elements(self, name: str) -> list[str]:
        """The elements of an array; those of `@` are the positional parameters."""
        if name == "@":
            return self._given[1:]
        arrays = [value for node in self._assigned.get(name, ()) if (value := node.child_by_field_name("value"))]
        items = [item for array in arrays if array.type == "array" for item in array.named_children]
        return [word.text for item in items for words in readings(item, self)[:1] for word in words]

    def function(self, name: str) -> Node | None:
        """The body of a function, from here or from the script around."""
        return self._functions.get(name) or (self._parent.function(name) if self._parent else None)

    def alias(self, name: str) -> str | None:
        """What an alias stands for, here or in the script around. Within itself it does not hold."""
        if name in self._spent:
            return None
        return self._aliases.get(name) or (self._parent.alias(name) if self._parent else None)
