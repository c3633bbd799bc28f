"""What a call of a tool looks like: one struct per tool, and everything else follows from it.

The struct's docstring is the tool's description, its fields are the parameters. Models write other names for the same
things, numbers as strings and null for nothing; all of that is read here, once, for every tool.
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

# What the tools of other agents call the same thing; models have learnt those names. `_` and capitals do not count.
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
    """The calls of one tool."""

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
        """The call as a struct. `ToolError` says how to call it right."""
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
        """The call as a struct; None for one that cannot be read."""
        try:
            return self.parse(arguments)
        except ToolError:
            return None

    def describe_call(self, arguments: ToolArguments, describe: Callable[[ArgumentsT], str]) -> str:
        """A call in one line for people, also one that cannot be read."""
        wanted = self.try_parse(arguments)
        raw = json.dumps(dict(arguments), ensure_ascii=False, default=str)
        return to_one_line(f"{self.spec.name} {raw}" if wanted is None else describe(wanted))

    def replace_arguments(self, arguments: ToolArguments, **fields: Any) -> dict[str, Any]:
        """The same call with other values, under the tool's own names."""
        return {**self._normalize_arguments(arguments), **fields}

    def _normalize_arguments(self, arguments: ToolArguments) -> dict[str, Any]:
        """The values by the tool's own names and in its types, where that is plainly what was meant."""
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
        kind = "a string that is not empty" if "minLength" in parameter else _TYPE_NAMES[parameter["type"]]
        limits = [f"{words} {parameter[key]}" for key, words in _BOUND_NAMES if key in parameter]
        given = to_one_line(json.dumps(values.get(field), ensure_ascii=False, default=str))
        return f"`{field}` of {self.spec.name} must be {', '.join([kind, *limits])}, not {given}. {self._usage_example}"

    @property
    def _usage_example(self) -> str:
        return f"For example: {json.dumps(self._example, ensure_ascii=False)}"


def _simplify_parameter(parameter: dict[str, Any]) -> dict[str, Any]:
    """A parameter as models are told of it, without what not every service takes and what says nothing."""
    empty = ("examples", *(("default",) if not parameter.get("default") else ()))
    return {key: value for key, value in parameter.items() if key not in empty}


def _iter_aliases(fields: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Other names of fields, each for one field: what a field is called itself goes before what others call it."""
    own = {_normalize_name(field): field for field in fields}
    for field in reversed(fields):
        yield from ((_normalize_name(alias), field) for alias in _PARAMETER_ALIASES.get(field, ()))
    yield from own.items()


def _normalize_name(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
