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
from callwright.prompt.words import around

__all__ = ["NAMES", "VARIABLES", "Source", "TemplateName", "Templates", "mistakes"]

TemplateName = Literal["first", "continuing", "results", "plain_first", "plain", "rules"]

_TAGS = {
    "context": "every <context> that the client sent and that is not in the message, the newest first",
    "attachments": "the same for <attachments>",
    "instructions": "the client's last <instructions>",
    "request": "what the user asks for: the newest <userRequest>, or the whole message",
}
_SYSTEM = {
    "tag": "a name for the tag around it all, which the client's text does not hold",
    "system": "the client's system messages: a list, each with heading and text",
}
_TOOLS = {"tools": "the tools and how to call them; may be empty"}
_RULES = {"rules": "the house rules, as the template of that name writes them; may be empty"}
_MESSAGE = {"message": "where the client's own message goes; exactly once"}

VARIABLES: Mapping[TemplateName, Mapping[str, str]] = {
    "first": {**_SYSTEM, **_TOOLS, **_RULES, **_TAGS, **_MESSAGE},
    "continuing": {**_TOOLS, **_RULES, **_TAGS, **_MESSAGE},
    "results": {
        "results": "what the calls gave: a list, each with id, name, arguments, status, content, and text, which is "
        "all of it as the model's dialect writes results",
        **_TOOLS,
        **_RULES,
        **{name: meaning for name, meaning in _TAGS.items() if name != "request"},
    },
    "plain_first": {**_SYSTEM, **_RULES, **_TAGS, **_MESSAGE},
    "plain": {**_TAGS, **_MESSAGE},
    "rules": {"house_rules": "house_rules of the settings", "final_answer": "off, call or tag"},
}
NAMES: tuple[TemplateName, ...] = tuple(VARIABLES)


class _Place(str):
    """What `{{ message }}` writes. The place is found by identity, which no text can have."""

    __slots__ = ()

    def __str__(self) -> str:
        return self


_HERE = _Place("{{ message }}")
_RESULT = {"id": "call_1", "name": "get", "arguments": "{}", "content": "x", "text": "x"}
_SAMPLES: tuple[dict[str, Any], ...] = (
    {
        **dict.fromkeys((*_TAGS, *_TOOLS, *_RULES, "tag", "house_rules"), "x"),
        "system": [{"heading": "x", "text": "y"}],
        "results": [{**_RESULT, "status": "success"}, {**_RESULT, "status": "error"}],
        "final_answer": "call",
    },
    {
        **dict.fromkeys((*_TAGS, *_TOOLS, *_RULES, "tag", "house_rules"), ""),
        "system": [],
        "results": [],
        "final_answer": "tag",
    },
)
_RENDERING = (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError)
"""What a template can fail with while it is rendered."""


class Source(NamedTuple):
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


class Templates:
    """All six, compiled and checked. Raises `ConfigError` with every mistake."""

    def __init__(self, sources: Mapping[TemplateName, Source]) -> None:
        found = [mistake for name in NAMES for mistake in mistakes(name, sources[name])]
        if found:
            raise ConfigError(found)
        self._compiled = {name: _compiled(sources[name]) for name in NAMES}
        self._origins = {name: sources[name].origin for name in NAMES}

    def text(self, name: TemplateName, **values: Any) -> str:
        """What a template writes of these values; those that are not given are empty."""
        return "".join(self._render(name, values))

    def message(self, name: TemplateName, parts: tuple[Part, ...], **values: Any) -> Message:
        """A user message with its parts where the template wants them."""
        pieces = iter(self._render(name, {**values, "message": _HERE}))
        before = "".join(takewhile(lambda piece: piece is not _HERE, pieces))
        return Message("user", around(parts, before, "".join(pieces).rstrip()))

    def _render(self, name: TemplateName, values: dict[str, Any]) -> list[str]:
        try:
            return list(self._compiled[name].generate({key: values.get(key, "") for key in VARIABLES[name]}))
        except _RENDERING as problem:
            raise ConfigError([f"{_place(self._origins[name], problem)} cannot be rendered: {problem}"]) from problem


def _compiled(source: Source) -> Template:
    code = _ENVIRONMENT.compile(source.text, filename=source.origin)
    return Template.from_code(_ENVIRONMENT, code, _ENVIRONMENT.make_globals(None))


def mistakes(name: TemplateName, source: Source) -> Iterator[str]:
    """What is wrong with a template, each with its file and line."""
    try:
        tree = _ENVIRONMENT.parse(source.text)
        compiled = _compiled(source)
    except TemplateSyntaxError as problem:
        yield f"{source.origin}, line {problem.lineno}: {problem.message}"
        return
    found = list(_strangers(name, source, tree))
    yield from found
    if not found:
        yield from _tried(name, source, compiled)


def _strangers(name: TemplateName, source: Source, tree: nodes.Template) -> Iterator[str]:
    """Names that nothing gives a value to, also where the samples do not lead."""
    unknown = find_undeclared_variables(tree) - VARIABLES[name].keys()
    for node in tree.find_all(nodes.Name):
        if node.name in unknown:
            given = ", ".join(VARIABLES[name])
            yield f"{source.origin}, line {node.lineno}: there is no variable {node.name!r}; there are {given}"
    for kind in (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends):
        for reference in tree.find_all(kind):
            yield f"{source.origin}, line {reference.lineno}: a template cannot use another file; write it out"


def _tried(name: TemplateName, source: Source, compiled: Template) -> Iterator[str]:
    for sample in _SAMPLES:
        values = {key: sample[key] for key in VARIABLES[name] if key != "message"} | {"message": _HERE}
        try:
            written = list(compiled.generate(values))
        except _RENDERING as problem:
            yield f"{_place(source.origin, problem)}: {problem}"
            return
        if "message" in VARIABLES[name] and sum(piece is _HERE for piece in written) != 1:
            yield f"{source.origin}: {{{{ message }}}} must be written exactly once, whatever else is empty"
            return


def _place(origin: str, problem: Exception) -> str:
    """The file, and the line if the problem's traceback knows it: Jinja2 puts the template's own lines there."""
    line, frame = 0, problem.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == origin:
            line = frame.tb_lineno
        frame = frame.tb_next
    return f"{origin}, line {line}" if line else origin
