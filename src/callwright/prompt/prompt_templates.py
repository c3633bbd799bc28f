"""Templates: how what a model is told is written. Jinja2, in a sandbox, without files.

Each is given as text by whoever loads it, compiled once, and checked with sample data before it is used: a name that
is not a variable of the template is a mistake with its file and line. A template says where the client's own message
goes by `{{ message }}`; the message itself is never handed to it, so none of its parts can be lost or changed.
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
    "request": "what the user asks for: the newest <userRequest>, or the whole message",
}
_SYSTEM_VARIABLES = {
    "tag": "a name for the tag around it all, which the client's text does not hold",
    "system": "the client's system messages: a list, each with heading and text",
}
_TOOL_VARIABLES = {"tools": "the tools and how to call them; may be empty"}
_RULE_VARIABLES = {"rules": "the house rules, as the template of that name writes them; may be empty"}
_MESSAGE_VARIABLES = {"message": "where the client's own message goes; exactly once"}

TEMPLATE_VARIABLES: Mapping[PromptTemplateName, Mapping[str, str]] = {
    "first": {**_SYSTEM_VARIABLES, **_TOOL_VARIABLES, **_RULE_VARIABLES, **_TAG_VARIABLES, **_MESSAGE_VARIABLES},
    "continuing": {**_TOOL_VARIABLES, **_RULE_VARIABLES, **_TAG_VARIABLES, **_MESSAGE_VARIABLES},
    "results": {
        "results": "what the calls gave: a list, each with id, name, arguments, status, content, and text, which is "
        "all of it as the model's dialect writes results",
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
    """What `{{ message }}` writes. The place is found by identity, which no text can have."""

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
"""What a template can fail with while it is rendered."""


class TemplateSource(NamedTuple):
    """A template's text, and the file that it came from."""

    text: str
    origin: str


# Prompts are no HTML: nothing in them is escaped.
_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined,
    autoescape=False,
    trim_blocks=True,
    lstrip_blocks=True,
)


class PromptTemplates:
    """All six, compiled and checked. Raises `ConfigError` with every mistake."""

    def __init__(self, sources: Mapping[PromptTemplateName, TemplateSource]) -> None:
        found = [mistake for name in TEMPLATE_NAMES for mistake in find_template_errors(name, sources[name])]
        if found:
            raise ConfigError(found)
        self._templates = {name: _compile_template(sources[name]) for name in TEMPLATE_NAMES}
        self._origins = {name: sources[name].origin for name in TEMPLATE_NAMES}

    def render_text(self, name: PromptTemplateName, **values: Any) -> str:
        """What a template writes of these values; those that are not given are empty."""
        return "".join(self._render_pieces(name, values))

    def render_message(self, name: PromptTemplateName, parts: tuple[Part, ...], **values: Any) -> Message:
        """A user message with its parts where the template wants them."""
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
    """What is wrong with a template, each with its file and line."""
    try:
        tree = _ENVIRONMENT.parse(source.text)
        compiled = _compile_template(source)
    except TemplateSyntaxError as problem:
        yield f"{source.origin}, line {problem.lineno}: {problem.message}"
        return
    found = list(_find_unknown_names(name, source, tree))
    yield from found
    if not found:
        yield from _try_samples(name, source, compiled)


def _find_unknown_names(name: PromptTemplateName, source: TemplateSource, tree: nodes.Template) -> Iterator[str]:
    """Names that nothing gives a value to, also where the samples do not lead."""
    unknown = find_undeclared_variables(tree) - TEMPLATE_VARIABLES[name].keys()
    for node in tree.find_all(nodes.Name):
        if node.name in unknown:
            given = ", ".join(TEMPLATE_VARIABLES[name])
            yield f"{source.origin}, line {node.lineno}: there is no variable {node.name!r}; there are {given}"
    for kind in (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends):
        for reference in tree.find_all(kind):
            yield f"{source.origin}, line {reference.lineno}: a template cannot use another file; write it out"


def _try_samples(name: PromptTemplateName, source: TemplateSource, compiled: Template) -> Iterator[str]:
    for sample in _SAMPLE_VALUES:
        values = {key: sample[key] for key in TEMPLATE_VARIABLES[name] if key != "message"} | {
            "message": _MESSAGE_MARKER
        }
        try:
            written = list(compiled.generate(values))
        except _RENDER_ERRORS as problem:
            yield f"{_format_location(source.origin, problem)}: {problem}"
            return
        if "message" in TEMPLATE_VARIABLES[name] and sum(piece is _MESSAGE_MARKER for piece in written) != 1:
            yield f"{source.origin}: {{{{ message }}}} must be written exactly once, whatever else is empty"
            return


def _format_location(origin: str, problem: Exception) -> str:
    """The file, and the line if the problem's traceback knows it: Jinja2 puts the template's own lines there."""
    line, frame = 0, problem.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == origin:
            line = frame.tb_lineno
        frame = frame.tb_next
    return f"{origin}, line {line}" if line else origin
