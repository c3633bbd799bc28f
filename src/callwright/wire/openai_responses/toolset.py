"""The tools of a request: the client's names, and what the model sees instead.

The model sees only functions. A `custom` tool (Codex's `exec`, Copilot's `apply_patch`) takes free text, so it becomes
a function with one string parameter; a tool in a `namespace` (all of Codex's MCP tools) gets a name that contains both.
The origins map back: Codex runs a call only under the `name` and the `namespace` that it declared, never under a joined
name (measured with 0.149 in butterbase-ai/butterbase#134; openai/codex#26234).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

from callwright.errors import RequestError
from callwright.model import ToolSpec
from callwright.wire.base import ToolOrigin
from callwright.wire.request_fields import RequestFields

__all__ = ["RequestToolset"]

_DEFAULT_NAMESPACE = "functions"
"""Codex (0.144 and later) puts its own tools in this namespace, and accepts calls without a namespace for it."""
_MAX_NAME_LENGTH = 64
"""The limit of OpenAI's API and those that follow it."""
_INPUT_SCHEMA = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "All of the input, as plain text."}},
    "required": ["input"],
    "additionalProperties": False,
}


class RequestToolset:
    """The tools of a request, by the names that the model sees."""

    def __init__(self) -> None:
        self.specs: dict[str, ToolSpec] = {}
        self.origins: dict[str, ToolOrigin] = {}
        self.hosted_tools: list[Any] = []
        """Tools that the API's own server runs (`web_search` …): this gateway does not offer them to the model."""
        self._names: dict[tuple[str, str], str] = {}
        self._added_names: list[str] = []
        self._next_numbers: dict[str, int] = {}
        """The next number to try for a name that is already taken."""

    def add_tools(self, tools: Iterable[RequestFields], namespace: str = "") -> None:
        """Add a list of tools."""
        for tool in tools:
            match tool.get_text("type") or "function":
                case "namespace" if not namespace:
                    self._add_namespace(tool)
                case "function":
                    self._add_tool(tool.get_object("function") or tool, namespace, "function")
                case "custom":
                    self._add_tool(tool, namespace, "custom")
                case _:
                    self.hosted_tools.append(tool.values)

    def get_model_name(self, name: str, namespace: str = "") -> str:
        """Return the name under which the model sees a tool, or would see it."""
        namespace = _normalize_namespace(namespace)
        return self._names.get((namespace, name)) or (_join_name(namespace, name) if namespace else name)

    def resolve_choice(self, tool: RequestFields) -> str:
        """Return the tool that a `tool_choice` names."""
        name = self.get_model_name(tool.require_text("name"), tool.get_text("namespace"))
        if name not in self.specs:
            raise RequestError(
                f"{tool.format_path('name')}: the request has no tool {tool.get_text('name')!r}",
                param=tool.format_path("name"),
            )
        return name

    def _add_namespace(self, group: RequestFields) -> None:
        """Add the members of a namespace. Its description goes to the first: MCP servers put instructions there."""
        before = len(self._added_names)
        self.add_tools(group.iter_objects("tools"), group.require_text("name"))
        if (description := group.get_text("description")) and len(self._added_names) > before:
            first = self.specs[self._added_names[before]]
            self.specs[first.name] = ToolSpec(
                first.name, f"{first.description}\n\n{description}".strip(), first.parameters
            )

    def _add_tool(self, tool: RequestFields, namespace: str, kind: str) -> None:
        client_name, namespace = tool.require_text("name"), _normalize_namespace(namespace)
        if (namespace, client_name) in self._names:
            return
        name = self._find_free_name(namespace, client_name)
        self._names[namespace, client_name] = name
        self._added_names.append(name)
        description = tool.get_text("description")
        if kind == "custom":
            self.specs[name] = ToolSpec(name, _append_format(description, tool.get_object("format")), _INPUT_SCHEMA)
            self.origins[name] = ToolOrigin(client_name, "custom", namespace)
        else:
            self.specs[name] = ToolSpec(name, description, tool.get("parameters", dict) or {})
            if namespace or name != client_name:
                self.origins[name] = ToolOrigin(client_name, "function", namespace)

    def _find_free_name(self, namespace: str, name: str) -> str:
        """Return the best name for a tool that is still free."""
        joined = _join_name(namespace, name) if namespace else name
        if joined not in self.specs and not (namespace and len(joined) > _MAX_NAME_LENGTH):
            return joined
        prefix = name[: _MAX_NAME_LENGTH - 8]
        number = next(each for each in count(self._next_numbers.get(prefix, 2)) if f"{prefix}_{each}" not in self.specs)
        self._next_numbers[prefix] = number + 1
        return f"{prefix}_{number}"


def _normalize_namespace(namespace: str) -> str:
    return "" if namespace == _DEFAULT_NAMESPACE else namespace


def _join_name(namespace: str, name: str) -> str:
    """Join both names, as Codex does where it must (`canonical_flat_name` in its tool_name.rs)."""
    return f"{namespace.rstrip('_')}__{name.lstrip('_')}"


def _append_format(description: str, form: RequestFields | None) -> str:
    """Append the grammar of the input to the description: only text can make the model follow it."""
    if form is None or not (definition := form.get_text("definition")):
        return description
    return f"{description}\n\nThe input must follow this {form.get_text('syntax')} grammar:\n{definition}".strip()
