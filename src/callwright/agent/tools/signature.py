"""The signature of a tool: one struct, from which its schema, parsing and errors are derived.

The struct's docstring is the tool's description, its fields are the parameters. Models write other names for the same
parameters, numbers as strings and null for nothing; this module normalizes all of that for every tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import msgspec

from callwright.agent.tools.base import ToolArguments
from callwright.agent.tools.text_format import to_one_line
from callwright.errors import ToolError
from callwright.model import ToolSpec
from callwright.schema import Schema, coerce_value

__all__ = ["ToolSignature"]

ArgumentsT = TypeVar("ArgumentsT", bound=msgspec.Struct)

# The names that other agents' tools use for the same parameters, which models have learnt. `_` and case are ignored.
_PARAMETER_ALIASES = {
    "path": ("file", "file_path", "filename", "target_file", "relative_path", "folder", "directory", "dir"),
    "folder": ("cwd", "directory", "dir", "workdir", "working_directory", "path"),
    "content": ("text", "contents", "file_text", "file_content", "code"),
    "description": ("instructions", "summary"),
    "command": ("cmd", "command_line", "script"),
    "seconds": ("timeout", "timeout_seconds", "timeout_s"),
    "start_line": ("start", "from", "from_line", "offset", "line_start", "start_line_one_indexed"),
    "end_line": ("end", "to", "to_line", "line_end", "end_line_one_indexed"),
    "limit": ("lines", "count", "max_lines", "num_lines"),
    "old": ("old_string", "old_str", "old_text", "search"),
    "new": ("new_string", "new_str", "new_text", "replace", "replacement"),
    "every": ("replace_all", "all", "global"),
    "patch": ("diff", "patch_text", "input"),
    "glob": ("pattern", "include", "file_pattern", "include_pattern"),
    "query": ("pattern", "text", "search", "search_term", "q"),
    "regex": ("is_regex", "is_regexp", "use_regex"),
    "match_case": ("case_sensitive", "case"),
    "context": ("context_lines", "lines_of_context"),
    "depth": ("max_depth", "levels"),
}
_FIELD_PATTERN = re.compile(r"\$\.(\w+)")
_TYPE_NAMES = {"string": "a string", "integer": "a whole number", "number": "a number", "boolean": "true or false"}
_BOUND_NAMES = (("minimum", "at least"), ("maximum", "at most"))


class ToolSignature(Generic[ArgumentsT]):
    """Parses the calls of one tool."""

    def __init__(self, name: str, struct: type[ArgumentsT]) -> None:
        body = msgspec.json.schema(struct)["$defs"][struct.__name__]
        self._struct = struct
        self._required: list[str] = body.get("required", [])
        self._parameters: dict[str, dict[str, Any]] = body["properties"]
        self._example = {field: one["examples"][0] for field, one in self._parameters.items() if "examples" in one}
        self.spec = ToolSpec(
            name,
            body["description"],
            {
                "type": "object",
                "properties": {field: _simplify_parameter(one) for field, one in self._parameters.items()},
                **({"required": self._required} if self._required else {}),
            },
        )
        self._schema = Schema(self.spec.parameters)
        self._field_by_alias = dict(_iter_aliases(self._parameters))

    def parse(self, arguments: ToolArguments) -> ArgumentsT:
        """Parse a call into the struct. A `ToolError` says how to correct the call."""
        values = self._normalize_arguments(arguments)
        missing = [field for field in self._required if field not in values]
        if missing:
            what = self._parameters[missing[0]]["description"]
            raise ToolError(f"{self.spec.name} needs `{missing[0]}`: {what[0].lower()}{what[1:]} {self._usage_example}")
        try:
            return msgspec.convert(values, self._struct)
        except msgspec.ValidationError as error:
            raise ToolError(self._describe_error(str(error), values)) from error

    def try_parse(self, arguments: ToolArguments) -> ArgumentsT | None:
        """Parse a call into the struct; None if it is invalid."""
        try:
            return self.parse(arguments)
        except ToolError:
            return None

    def describe_call(self, arguments: ToolArguments, describe: Callable[[ArgumentsT], str]) -> str:
        """Describe a call in one line for the user, also an invalid one."""
        parsed = self.try_parse(arguments)
        raw = json.dumps(dict(arguments), ensure_ascii=False, default=str)
        return to_one_line(f"{self.spec.name} {raw}" if parsed is None else describe(parsed))

    def replace_arguments(self, arguments: ToolArguments, **fields: Any) -> dict[str, Any]:
        """Return the call with other values, under the tool's own parameter names."""
        return {**self._normalize_arguments(arguments), **fields}

    def _normalize_arguments(self, arguments: ToolArguments) -> dict[str, Any]:
        """Return the values under the tool's own names and in its types, where the intent is clear."""
        values: dict[str, Any] = {}
        for name, value in arguments.items():
            field = name if name in self._parameters else self._field_by_alias.get(_normalize_name(name))
            if field is None or value is None or (field in values and field != name):
                continue
            values[field] = value
        settled, _ = coerce_value(values, self._schema)
        return dict(settled)

    def _describe_error(self, message: str, values: dict[str, Any]) -> str:
        field = _FIELD_PATTERN.findall(message)[0]
        parameter = self._parameters[field]
        kind = "a non-empty string" if "minLength" in parameter else _TYPE_NAMES[parameter["type"]]
        limits = [f"{words} {parameter[key]}" for key, words in _BOUND_NAMES if key in parameter]
        value = to_one_line(json.dumps(values.get(field), ensure_ascii=False, default=str))
        return f"`{field}` of {self.spec.name} must be {', '.join([kind, *limits])}, not {value}. {self._usage_example}"

    @property
    def _usage_example(self) -> str:
        return f"For example: {json.dumps(self._example, ensure_ascii=False)}"


def _simplify_parameter(parameter: dict[str, Any]) -> dict[str, Any]:
    """Return a parameter's schema for the model, without keywords that some services reject or that add nothing."""
    empty = ("examples", *(("default",) if not parameter.get("default") else ()))
    return {key: value for key, value in parameter.items() if key not in empty}


def _iter_aliases(fields: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield other names of fields, each for one field: a field's own name takes precedence over aliases."""
    own = {_normalize_name(field): field for field in fields}
    for field in reversed(fields):
        yield from ((_normalize_name(alias), field) for alias in _PARAMETER_ALIASES.get(field, ()))
    yield from own.items()


def _normalize_name(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
