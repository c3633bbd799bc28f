"""Prepare: a request whose history is mended, in the words that the model is told.

The order is fixed: what is told at the beginning, the conversation, and at the end lines that change from request to
request and what is demanded of the next answer. What a message becomes depends on the messages
before it and on the system messages, never on answers to come: a conversation that grows keeps its beginning, byte for
byte, and with it the backend's prompt cache. (A backend that keeps the conversation reads the newest alone.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, Literal, NamedTuple

import msgspec

from callwright.dialects import Dialect
from callwright.model import Message, Repair, Request, Text, ToolCall, ToolResult
from callwright.prompt.final import way_to_close
from callwright.prompt.fold import REDUNDANT, first_user, free_tag, take_system
from callwright.prompt.results import failed, shown
from callwright.prompt.rounds import check_rounds
from callwright.prompt.settings import PromptSettings
from callwright.prompt.tags import read_tags
from callwright.prompt.teach import calls_in_words, demand, form_of, lesson
from callwright.prompt.templates import TemplateName, Templates
from callwright.prompt.volatile import settled
from callwright.prompt.words import appended, around, text_of

__all__ = ["Prepared", "Strategy", "prepare"]

Strategy = Literal["none", "native", "constrained", "taught"]

_IN_WORDS = ("constrained", "taught")


class Prepared(NamedTuple):
    """What is sent, and what is worth a warning."""

    request: Request
    notes: tuple[Repair, ...]


def prepare(
    request: Request,
    settings: PromptSettings,
    dialect: Dialect,
    templates: Templates,
    *,
    first: bool,
    strategy: Strategy,
) -> Prepared:
    """A request as its backend needs it. `first`: nothing of the conversation was answered yet.

    Raises `RequestError` when the tool rounds are used up.
    """
    check_rounds(request.messages, settings.max_rounds)
    telling = _Telling(request, settings, dialect, templates, in_words=strategy in _IN_WORDS)
    if telling.nothing:
        return Prepared(request, ())
    messages, last = settled(request.messages, settings.volatile)
    notes: tuple[Repair, ...] = ()
    if settings.system == "fold_first" and not first:
        messages = tuple(telling.newest(messages))
    else:
        messages, notes = telling.opened(messages)
        messages = tuple(telling.conversation(messages))
    if telling.in_words:
        last = "\n\n".join(filter(None, (last, demand(request.tool_choice) if request.tools else "")))
        request = msgspec.structs.replace(request, tools=(), tool_choice="auto")
    messages = appended(messages, last) if last else messages
    return Prepared(msgspec.structs.replace(request, messages=messages), notes)


class _Telling:
    """What one request's model is told besides the conversation, and where."""

    def __init__(
        self, request: Request, settings: PromptSettings, dialect: Dialect, templates: Templates, *, in_words: bool
    ) -> None:
        self.in_words = in_words
        self._settings = settings
        self._dialect = dialect
        self._templates = templates
        self._tools = request.tools if in_words else ()
        self._has_tools = bool(request.tools)
        self._rules = _rules(templates, settings.house_rules, way_to_close(request, settings))

    @property
    def nothing(self) -> bool:
        """The model is told what the client says, and no more."""
        settings = self._settings
        return not (self.in_words or self._rules or settings.volatile) and settings.system == "native"

    def _lesson(self, *, again: bool) -> str:
        return lesson(self._tools, self._dialect, form_of(self._settings, again=again))

    # ── the beginning ──────────────────────────────────────────────────────────────────────────

    def opened(self, messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[Repair, ...]]:
        """The conversation with what is told at its beginning, and warnings."""
        if self._settings.system == "native":
            return self._instructed(messages), ()
        return self._folded(messages)

    def _instructed(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Told in the first system message, after the client's own words."""
        words = "\n\n".join(filter(None, (self._lesson(again=False), self._rules)))
        if not words:
            return tuple(messages)
        if messages and messages[0].role in ("system", "developer"):
            first = messages[0]
            return (Message(first.role, around(first.parts, after=f"\n\n{words}")), *messages[1:])
        return (Message("system", (Text(words),)), *messages)

    def _folded(self, messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[Repair, ...]]:
        """Told in the first user message, before the client's own words."""
        system, sections, others, rest = take_system(messages)
        taught = self._lesson(again=False)
        if not (sections or others or taught or self._rules):
            return rest, ()
        position, rest = first_user(rest)
        user = rest[position]
        tag = free_tag(text_of(user), taught, self._rules, *(section.text for section in sections))
        values: dict[str, Any] = {
            "system": sections,
            "tag": tag,
            "rules": self._rules,
            "tools": taught,
            **read_tags([*system, user], told=text_of(user))._asdict(),
        }
        name: TemplateName = "first" if self._has_tools else "plain_first"
        told = self._templates.message(name, (*others, *user.parts), **values)
        redundant = (Message("system", (Text(REDUNDANT.format(tag=tag)),)),) if self._settings.redundant_system else ()
        size, limit = len(text_of(told)) - len(text_of(user)), self._settings.fold_warn_characters
        warnings = (Repair("large_system", f"{size} characters of instructions were folded into the user's message"),)
        folded = (*redundant, *rest[:position], told, *rest[position + 1 :])
        return folded, warnings if limit and size > limit else ()

    # ── the conversation ───────────────────────────────────────────────────────────────────────

    def conversation(self, messages: Sequence[Message]) -> Iterator[Message]:
        """Every message, with the tools told again where that is due."""
        for message, calls, due in self._rounds(messages):
            yield self._said(message, calls, {"tools": self._lesson(again=True)} if due else {})

    def newest(self, messages: Sequence[Message]) -> Iterator[Message]:
        """For a backend that has the rest: the first message after its last answer is told what it needs again."""
        rounds = list(self._rounds(messages))
        answered = max((at for at, each in enumerate(rounds) if each[0].role == "assistant"), default=-1)
        following = (at for at in range(answered + 1, len(rounds)) if rounds[at][0].role in ("user", "tool"))
        newest = next(following, None)
        for at, (message, calls, due) in enumerate(rounds):
            values: dict[str, Any] = {}
            if at > answered and message.role in ("system", "developer"):
                message = _heard_from_user(message)
            if at == newest:
                tags = read_tags(messages, told=text_of(message))
                values = {"tools": self._lesson(again=not due), "rules": self._rules, **tags._asdict()}
            yield self._said(message, calls, values)

    def _said(self, message: Message, calls: dict[str, ToolCall], values: dict[str, Any]) -> Message:
        """A message as it is sent, with what is told beside it."""
        if message.role == "tool":
            return self._results(message, calls, values) if self.in_words else message
        if values:
            return self._templates.message("continuing" if self._has_tools else "plain", message.parts, **values)
        return calls_in_words(message, self._dialect) if self.in_words else message

    def _rounds(self, messages: Sequence[Message]) -> Iterator[tuple[Message, dict[str, ToolCall], bool]]:
        """Every message with the calls that it may answer, and whether the tools are due again; results that come
        together are one message where they are told in words."""
        calls: dict[str, ToolCall] = {}
        since = 0
        for message in _together(messages) if self.in_words else messages:
            due = 0 < self._settings.reteach_after <= since and message.role in ("user", "tool") and bool(self._tools)
            since = 0 if due else since + 1
            yield message, calls, due
            if message.role == "assistant":
                calls = {part.id: part for part in message.parts if isinstance(part, ToolCall)}

    def _results(self, message: Message, calls: dict[str, ToolCall], values: dict[str, Any]) -> Message:
        """Results as the dialect writes them; they are the user's to say."""
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        told = [self._result(result, calls.get(result.call_id)) for result in results]
        images = [image for result in results for image in result.images]
        others = [part for part in message.parts if not isinstance(part, ToolResult)]
        return Message("user", (Text(self._templates.text("results", results=told, **values)), *images, *others))

    def _result(self, result: ToolResult, call: ToolCall | None) -> dict[str, str]:
        content = shown(result, call) if self._settings.show_results else result.content
        return {
            "id": result.call_id,
            "name": result.name,
            "arguments": call.arguments if call else "",
            "status": "error" if failed(result) else "success",
            "content": result.content,
            "text": self._dialect.render_result(msgspec.structs.replace(result, content=content)),
        }


def _heard_from_user(message: Message) -> Message:
    """Instructions that come late, for a backend that ignores system messages."""
    tag = free_tag(text_of(message))
    return Message("user", around(message.parts, f"<{tag}>\n", f"\n</{tag}>"))


@lru_cache(64)
def _rules(templates: Templates, house_rules: str, final: str) -> str:
    return templates.text("rules", house_rules=house_rules, final_answer=final).strip()


def _together(messages: Sequence[Message]) -> Iterator[Message]:
    """Messages, those of results that follow each other as one."""
    for is_result, group in groupby(messages, key=lambda message: message.role == "tool"):
        if is_result:
            yield Message("tool", tuple(part for message in group for part in message.parts))
        else:
            yield from group
