"""The tools of a request: what the client calls them, and what the model sees instead.

The model sees functions only. A `custom` tool (Codex's `exec`, Copilot's `apply_patch`) takes free text, so it becomes
a function with one string parameter; a tool in a `namespace` (all of Codex's MCP tools) gets a name that holds both.
The origins lead back: Codex runs a call only under the `name` and the `namespace` that it declared, never under a
joined name (measured with 0.149 in butterbase-ai/butterbase#134; openai/codex#26234).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from callwright.errors import RequestError
from callwright.model import ToolSpec
from callwright.wire.base import Origin
from callwright.wire.fields import Fields

__all__ = ["Toolset"]

_IMPLIED = "functions"
"""Codex (0.144 and later) puts its own tools in this namespace, and takes calls without one as meant for it."""
_LONGEST_NAME = 64
"""What OpenAI's API and those that follow it accept."""
_INPUT = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "All of the input, as plain text."}},
    "required": ["input"],
    "additionalProperties": False,
}


class Toolset:
    """What a request offers, by the names that the model sees."""

    def __init__(self) -> None:
        self.specs: dict[str, ToolSpec] = {}
        self.origins: dict[str, Origin] = {}
        self.left_out: list[Any] = []
        """Tools that the API's own server runs (`web_search` …): none of ours, and none that a model can call here."""
        self._names: dict[tuple[str, str], str] = {}

    def add(self, tools: Iterable[Fields], namespace: str = "") -> None:
        """Take in a list of tools."""
        for tool in tools:
            match tool.text("type") or "function":
                case "namespace" if not namespace:
                    self._add_group(tool)
                case "function":
                    self._declare(tool.nested("function") or tool, namespace, "function")
                case "custom":
                    self._declare(tool, namespace, "custom")
                case _:
                    self.left_out.append(tool.values)

    def seen_as(self, name: str, namespace: str = "") -> str:
        """The name under which the model sees a tool, or would see it if it were offered."""
        namespace = _explicit(namespace)
        return self._names.get((namespace, name)) or (_joined(namespace, name) if namespace else name)

    def chosen(self, tool: Fields) -> str:
        """The offered tool that a `tool_choice` names."""
        name = self.seen_as(tool.need("name"), tool.text("namespace"))
        if name not in self.specs:
            raise RequestError(f"{tool.at('name')}: no tool {tool.text('name')!r} is offered", param=tool.at("name"))
        return name

    def _add_group(self, group: Fields) -> None:
        """The members of a namespace. What it says of itself goes to the first: MCP servers put instructions there."""
        before = len(self.specs)
        self.add(group.objects("tools"), group.need("name"))
        if (about := group.text("description")) and len(self.specs) > before:
            first = list(self.specs.values())[before]
            self.specs[first.name] = ToolSpec(first.name, f"{first.description}\n\n{about}".strip(), first.parameters)

    def _declare(self, tool: Fields, namespace: str, kind: str) -> None:
        given, namespace = tool.need("name"), _explicit(namespace)
        if (namespace, given) in self._names:
            return
        name = next(wish for wish in _wishes(namespace, given) if wish not in self.specs)
        self._names[namespace, given] = name
        description = tool.text("description")
        if kind == "custom":
            self.specs[name] = ToolSpec(name, _with_format(description, tool.nested("format")), _INPUT)
            self.origins[name] = Origin(given, "custom", namespace)
        else:
            self.specs[name] = ToolSpec(name, description, tool.get("parameters", dict) or {})
            if namespace or name != given:
                self.origins[name] = Origin(given, "function", namespace)


def _explicit(namespace: str) -> str:
    return "" if namespace == _IMPLIED else namespace


def _joined(namespace: str, name: str) -> str:
    """Both in one, as Codex joins them where it must (`canonical_flat_name` in its tool_name.rs)."""
    return f"{namespace.rstrip('_')}__{name.lstrip('_')}"


def _wishes(namespace: str, name: str) -> Iterator[str]:
    """Names for a tool, the best first; one of them is free."""
    if not namespace:
        yield name
    elif len(joined := _joined(namespace, name)) <= _LONGEST_NAME:
        yield joined
    yield from (f"{name[: _LONGEST_NAME - 8]}_{number}" for number in count(2))


def _with_format(description: str, form: Fields | None) -> str:
    """The description, with the grammar that the input must follow: only words can hold the model to it."""
    if form is None or not (definition := form.text("definition")):
        return description
    return f"{description}\n\nThe input must follow this {form.text('syntax')} grammar:\n{definition}".strip()
