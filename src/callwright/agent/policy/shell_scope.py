"""What the words of a script may refer to: variables, arrays, positional parameters, functions and aliases.

Names are collected from the whole text before it is walked, regardless of order: a variable may have any value that is
assigned to it anywhere in this script or in the one around it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from callwright.agent.policy.shell_words import MAX_READINGS, UNKNOWN, CommandStream, get_node_text, list_readings

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["ShellScope"]

_MAX_DEPTH = 16
_MAX_VALUE_LENGTH = 4_000
_NON_ITEM_TYPES = ("variable_name", "do_group", "compound_statement")


class ShellScope(ABC):
    """The names of a script. `parameters` are `$0` and the positional parameters."""

    def __init__(self, parent: ShellScope | None, parameters: Sequence[str], spent_alias: str = "") -> None:
        self._parent = parent
        self._parameters = list(parameters)
        self._used_aliases: frozenset[str] = (parent._used_aliases if parent else frozenset()) | {spent_alias}
        self._assignments: dict[str, list[Node]] = {}
        self._functions: dict[str, Node] = {}
        self._aliases: dict[str, str] = {}
        self._resolving: list[str] = []
        self._value_cache: dict[str, list[str]] = {}

    @abstractmethod
    def read_output(self, substitution: Node) -> CommandStream:
        """Return what the commands of a substitution write."""

    def collect_names(self, nodes: Sequence[Node]) -> None:
        """Collect the names of a text."""
        for node in nodes:
            name = node.child_by_field_name("name")
            match node.type:
                case "variable_assignment" if name:
                    self._assignments.setdefault(get_node_text(name).partition("[")[0], []).append(node)
                case "for_statement" if variable := node.child_by_field_name("variable"):
                    self._assignments.setdefault(get_node_text(variable), []).append(node)
                case "function_definition" if name and (body := node.child_by_field_name("body")):
                    self._functions[get_node_text(name)] = body
                case "command" if name and get_node_text(name) == "alias":
                    for word in node.children[1:]:
                        alias, _, value = " ".join(each.text for each in list_readings(word, self)[0]).partition("=")
                        self._aliases[alias] = value
                case _:
                    pass

    def get_values(self, name: str) -> list[str]:
        """Return the possible values of a variable; an empty list if it is not assigned."""
        if name == "0":
            return self._parameters[:1]
        if name not in self._assignments:
            return self._parent.get_values(name) if self._parent else []
        if name in self._resolving or len(self._resolving) > _MAX_DEPTH:
            return [UNKNOWN]
        if name not in self._value_cache:
            self._value_cache[name] = self._compute_values(name)
        return self._value_cache[name]

    def _compute_values(self, name: str) -> list[str]:
        self._resolving.append(name)
        found: list[str] = []
        for node in self._assignments[name]:
            if node.type == "for_statement":  # a loop's variable takes the value of each item
                items = [child for child in node.named_children if child.type not in _NON_ITEM_TYPES]
                found += [word.text for item in items for words in list_readings(item, self) for word in words]
            else:
                texts = self._read_value(name, node.child_by_field_name("value"))
                appends = any(child.type == "+=" for child in node.children)
                found += [f"{before}{text}" for before in found or [""] for text in texts] if appends else texts
            found = list(dict.fromkeys(found))[-MAX_READINGS:]
        self._resolving.pop()
        return [text if len(text) <= _MAX_VALUE_LENGTH else UNKNOWN for text in found]

    def _read_value(self, name: str, value: Node | None) -> list[str]:
        if value is None:
            return [""]
        if value.type == "array":
            return self.get_elements(name)[:1]
        return [" ".join(word.text for word in words) for words in list_readings(value, self)]

    def set_parameters(self, parameters: Sequence[str]) -> list[str]:
        """Set `$0` and the positional parameters, on which values may depend; returns the previous ones."""
        before, self._parameters = self._parameters, list(parameters)
        self._value_cache.clear()
        return before

    def get_elements(self, name: str) -> list[str]:
        """Return the elements of an array; those of `@` are the positional parameters."""
        if name == "@":
            return self._parameters[1:]
        arrays = [value for node in self._assignments.get(name, ()) if (value := node.child_by_field_name("value"))]
        items = [item for array in arrays if array.type == "array" for item in array.named_children]
        return [word.text for item in items for words in list_readings(item, self)[:1] for word in words]

    def find_function(self, name: str) -> Node | None:
        """Return the body of a function, from this script or the one around it."""
        return self._functions.get(name) or (self._parent.find_function(name) if self._parent else None)

    def find_alias(self, name: str) -> str | None:
        """Return what an alias expands to, from this script or the one around it. An alias does not expand within
        itself.
        """
        if name in self._used_aliases:
            return None
        return self._aliases.get(name) or (self._parent.find_alias(name) if self._parent else None)
