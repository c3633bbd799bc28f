"""Prompt templates: Jinja2, in a sandbox, without file access.

The caller loads the text of each template. Templates are compiled once and checked with sample data before use: an
unknown variable is a mistake that is reported with its file and line. A template places the client's own message with
`{{ message }}`; it never receives the message itself, so no part of it can be lost or changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any, Literal, NamedTuple

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError, nodes
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

from callwright.errors import ConfigError
from callwright.model import Message, Part
from callwright.prompt.message_text import wrap_parts

__all__ = [
    "TEMPLATE_NAMES",
    "TEMPLATE_VARIABLES",
    "PromptTemplateName",
    "PromptTemplates",
    "TemplateSource",
    "find_template_errors",
]

PromptTemplateName = Literal["first", "continuing", "results", "plain_first", "plain", "rules"]

_TAG_VARIABLES = {
    "context": "every <context> that the client sent and that is not in the message, the newest first",
    "attachments": "the same for <attachments>",
    "instructions": "the client's last <instructions>",
    "request": "the user's request: the newest <userRequest>, or the complete message",
}
_SYSTEM_VARIABLES = {
    "tag": "a name for the enclosing tag that does not occur in the client's text",
    "system": "the client's system messages: a list, each with heading and text",
}
_TOOL_VARIABLES = {"tools": "the tools and how to call them; may be empty"}
_RULE_VARIABLES = {"rules": "the house rules as the rules template renders them; may be empty"}
_MESSAGE_VARIABLES = {"message": "where the client's own message goes; exactly once"}

TEMPLATE_VARIABLES: Mapping[PromptTemplateName, Mapping[str, str]] = {
    "first": {**_SYSTEM_VARIABLES, **_TOOL_VARIABLES, **_RULE_VARIABLES, **_TAG_VARIABLES, **_MESSAGE_VARIABLES},
    "continuing": {**_TOOL_VARIABLES, **_RULE_VARIABLES, **_TAG_VARIABLES, **_MESSAGE_VARIABLES},
    "results": {
        "results": "the results of the calls: a list, each with id, name, arguments, status, content, and text, which "
        "is the complete result in the model's dialect",
        **_TOOL_VARIABLES,
        **_RULE_VARIABLES,
        **{name: meaning for name, meaning in _TAG_VARIABLES.items() if name != "request"},
    },
    "plain_first": {**_SYSTEM_VARIABLES, **_RULE_VARIABLES, **_TAG_VARIABLES, **_MESSAGE_VARIABLES},
    "plain": {**_TAG_VARIABLES, **_MESSAGE_VARIABLES},
    "rules": {"house_rules": "house_rules of the settings", "final_answer": "off, call or tag"},
}
TEMPLATE_NAMES: tuple[PromptTemplateName, ...] = tuple(TEMPLATE_VARIABLES)


class _MessageMarker(str):
    """The output of `{{ message }}`. Its position is found by identity, which no other text has."""

    __slots__ = ()

    def __str__(self) -> str:
        return self


_MESSAGE_MARKER = _MessageMarker("{{ message }}")
_SAMPLE_RESULT = {"id": "call_1", "name": "get", "arguments": "{}", "content": "x", "text": "x"}
_SAMPLE_VALUES: tuple[dict[str, Any], ...] = (
    {
        **dict.fromkeys((*_TAG_VARIABLES, *_TOOL_VARIABLES, *_RULE_VARIABLES, "tag", "house_rules"), "x"),
        "system": [{"heading": "x", "text": "y"}],
        "results": [{**_SAMPLE_RESULT, "status": "success"}, {**_SAMPLE_RESULT, "status": "error"}],
        "final_answer": "call",
    },
    {
        **dict.fromkeys((*_TAG_VARIABLES, *_TOOL_VARIABLES, *_RULE_VARIABLES, "tag", "house_rules"), ""),
        "system": [],
        "results": [],
        "final_answer": "tag",
    },
)
_RENDER_ERRORS = (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError)
"""Errors that a template can raise while it is rendered."""


class TemplateSource(NamedTuple):
    """A template's text and the file that it came from."""

    text: str
    origin: str


# Prompts are not HTML: nothing in them is escaped.
_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined,
    autoescape=False,
    trim_blocks=True,
    lstrip_blocks=True,
)


class PromptTemplates:
    """All six templates, compiled and checked. Raises `ConfigError` with every mistake."""

    def __init__(self, sources: Mapping[PromptTemplateName, TemplateSource]) -> None:
        mistakes = [mistake for name in TEMPLATE_NAMES for mistake in find_template_errors(name, sources[name])]
        if mistakes:
            raise ConfigError(mistakes)
        self._templates = {name: _compile_template(sources[name]) for name in TEMPLATE_NAMES}
        self._origins = {name: sources[name].origin for name in TEMPLATE_NAMES}

    def render_text(self, name: PromptTemplateName, **values: Any) -> str:
        """Render a template with these values; missing values are empty."""
        return "".join(self._render_pieces(name, values))

    def render_message(self, name: PromptTemplateName, parts: tuple[Part, ...], **values: Any) -> Message:
        """Render a user message with its parts where the template places them."""
        pieces = iter(self._render_pieces(name, {**values, "message": _MESSAGE_MARKER}))
        before = "".join(takewhile(lambda piece: piece is not _MESSAGE_MARKER, pieces))
        return Message("user", wrap_parts(parts, before, "".join(pieces).rstrip()))

    def _render_pieces(self, name: PromptTemplateName, values: dict[str, Any]) -> list[str]:
        try:
            return list(self._templates[name].generate({key: values.get(key, "") for key in TEMPLATE_VARIABLES[name]}))
        except _RENDER_ERRORS as problem:
            raise ConfigError(
                [f"{_format_location(self._origins[name], problem)} cannot be rendered: {problem}"]
            ) from problem


def _compile_template(source: TemplateSource) -> Template:
    code = _ENVIRONMENT.compile(source.text, filename=source.origin)
    return Template.from_code(_ENVIRONMENT, code, _ENVIRONMENT.make_globals(None))


def find_template_errors(name: PromptTemplateName, source: TemplateSource) -> Iterator[str]:
    """Yield the mistakes in a template, each with its file and line."""
    try:
        tree = _ENVIRONMENT.parse(source.text)
        compiled = _compile_template(source)
    except TemplateSyntaxError as problem:
        yield f"{source.origin}, line {problem.lineno}: {problem.message}"
        return
    mistakes = list(_find_unknown_names(name, source, tree))
    yield from mistakes
    if not mistakes:
        yield from _try_samples(name, source, compiled)


def _find_unknown_names(name: PromptTemplateName, source: TemplateSource, tree: nodes.Template) -> Iterator[str]:
    """Yield variables that have no value, including those in branches that the samples do not reach."""
    unknown = find_undeclared_variables(tree) - TEMPLATE_VARIABLES[name].keys()
    for node in tree.find_all(nodes.Name):
        if node.name in unknown:
            variables = ", ".join(TEMPLATE_VARIABLES[name])
            yield f"{source.origin}, line {node.lineno}: unknown variable {node.name!r}; the variables are {variables}"
    for kind in (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends):
        for reference in tree.find_all(kind):
            yield f"{source.origin}, line {reference.lineno}: a template cannot include another file"


def _try_samples(name: PromptTemplateName, source: TemplateSource, compiled: Template) -> Iterator[str]:
    for sample in _SAMPLE_VALUES:
        values = {key: sample[key] for key in TEMPLATE_VARIABLES[name] if key != "message"} | {
            "message": _MESSAGE_MARKER
        }
        try:
            pieces = list(compiled.generate(values))
        except _RENDER_ERRORS as problem:
            yield f"{_format_location(source.origin, problem)}: {problem}"
            return
        if "message" in TEMPLATE_VARIABLES[name] and sum(piece is _MESSAGE_MARKER for piece in pieces) != 1:
            yield f"{source.origin}: {{{{ message }}}} must occur exactly once, even if all other variables are empty"
            return


def _format_location(origin: str, problem: Exception) -> str:
    """Return the file, and the line if the traceback has it: Jinja2 puts the template's own lines there."""
    line, frame = 0, problem.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == origin:
            line = frame.tb_lineno
        frame = frame.tb_next
    return f"{origin}, line {line}" if line else origin
