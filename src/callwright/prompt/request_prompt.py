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
from callwright.prompt.client_tags import read_client_tags
from callwright.prompt.final_answer_tool import get_final_answer_mode
from callwright.prompt.message_text import append_text, get_message_text, wrap_parts
from callwright.prompt.prompt_templates import PromptTemplateName, PromptTemplates
from callwright.prompt.result_text import format_result, is_failed_result
from callwright.prompt.settings import PromptSettings
from callwright.prompt.system_fold import REDUNDANT_SYSTEM_TEXT, ensure_first_user, find_free_tag, split_system
from callwright.prompt.tool_prompt import format_call_demand, get_teach_form, render_calls_as_text, render_tool_prompt
from callwright.prompt.tool_rounds import check_tool_rounds
from callwright.prompt.volatile_lines import move_volatile_lines_last

__all__ = ["PreparedRequest", "ToolStrategy", "prepare_request"]

ToolStrategy = Literal["none", "native", "constrained", "taught"]

_TEXT_STRATEGIES = ("constrained", "taught")


class PreparedRequest(NamedTuple):
    """What is sent, and what is worth a warning."""

    request: Request
    warnings: tuple[Repair, ...]


def prepare_request(
    request: Request,
    settings: PromptSettings,
    dialect: Dialect,
    templates: PromptTemplates,
    *,
    is_first_turn: bool,
    strategy: ToolStrategy,
) -> PreparedRequest:
    """A request as its backend needs it. `first`: nothing of the conversation was answered yet.

    Raises `RequestError` when the tool rounds are used up.
    """
    check_tool_rounds(request.messages, settings.max_rounds)
    telling = _PromptWriter(request, settings, dialect, templates, tools_as_text=strategy in _TEXT_STRATEGIES)
    if telling.is_unchanged:
        return PreparedRequest(request, ())
    messages, last = move_volatile_lines_last(request.messages, settings.volatile)
    notes: tuple[Repair, ...] = ()
    if settings.system == "fold_first" and not is_first_turn:
        messages = tuple(telling.iter_newest(messages))
    else:
        messages, notes = telling.add_opening(messages)
        messages = tuple(telling.iter_conversation(messages))
    if telling.tools_as_text:
        last = "\n\n".join(filter(None, (last, format_call_demand(request.tool_choice) if request.tools else "")))
        request = msgspec.structs.replace(request, tools=(), tool_choice="auto")
    messages = append_text(messages, last) if last else messages
    return PreparedRequest(msgspec.structs.replace(request, messages=messages), notes)


class _PromptWriter:
    """What one request's model is told besides the conversation, and where."""

    def __init__(
        self,
        request: Request,
        settings: PromptSettings,
        dialect: Dialect,
        templates: PromptTemplates,
        *,
        tools_as_text: bool,
    ) -> None:
        self.tools_as_text = tools_as_text
        self._settings = settings
        self._dialect = dialect
        self._templates = templates
        self._tools = request.tools if tools_as_text else ()
        self._has_tools = bool(request.tools)
        self._rules = _render_rules(templates, settings.house_rules, get_final_answer_mode(request, settings))

    @property
    def is_unchanged(self) -> bool:
        """The model is told what the client says, and no more."""
        settings = self._settings
        return not (self.tools_as_text or self._rules or settings.volatile) and settings.system == "native"

    def _render_tools(self, *, again: bool) -> str:
        return render_tool_prompt(self._tools, self._dialect, get_teach_form(self._settings, again=again))

    # ── the beginning ──────────────────────────────────────────────────────────────────────────

    def add_opening(self, messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[Repair, ...]]:
        """The conversation with what is told at its beginning, and warnings."""
        if self._settings.system == "native":
            return self._extend_system(messages), ()
        return self._fold_system(messages)

    def _extend_system(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Told in the first system message, after the client's own words."""
        words = "\n\n".join(filter(None, (self._render_tools(again=False), self._rules)))
        if not words:
            return tuple(messages)
        if messages and messages[0].role in ("system", "developer"):
            first = messages[0]
            return (Message(first.role, wrap_parts(first.parts, after=f"\n\n{words}")), *messages[1:])
        return (Message("system", (Text(words),)), *messages)

    def _fold_system(self, messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[Repair, ...]]:
        """Told in the first user message, before the client's own words."""
        system, sections, others, rest = split_system(messages)
        taught = self._render_tools(again=False)
        if not (sections or others or taught or self._rules):
            return rest, ()
        position, rest = ensure_first_user(rest)
        user = rest[position]
        tag = find_free_tag(get_message_text(user), taught, self._rules, *(section.text for section in sections))
        values: dict[str, Any] = {
            "system": sections,
            "tag": tag,
            "rules": self._rules,
            "tools": taught,
            **read_client_tags([*system, user], known_text=get_message_text(user))._asdict(),
        }
        name: PromptTemplateName = "first" if self._has_tools else "plain_first"
        told = self._templates.render_message(name, (*others, *user.parts), **values)
        redundant = (
            (Message("system", (Text(REDUNDANT_SYSTEM_TEXT.format(tag=tag)),)),)
            if self._settings.redundant_system
            else ()
        )
        size, limit = len(get_message_text(told)) - len(get_message_text(user)), self._settings.fold_warn_characters
        warnings = (Repair("large_system", f"{size} characters of instructions were folded into the user's message"),)
        folded = (*redundant, *rest[:position], told, *rest[position + 1 :])
        return folded, warnings if limit and size > limit else ()

    # ── the conversation ───────────────────────────────────────────────────────────────────────

    def iter_conversation(self, messages: Sequence[Message]) -> Iterator[Message]:
        """Every message, with the tools told again where that is due."""
        for message, calls, due in self._iter_rounds(messages):
            yield self._render_message(message, calls, {"tools": self._render_tools(again=True)} if due else {})

    def iter_newest(self, messages: Sequence[Message]) -> Iterator[Message]:
        """For a backend that has the rest: the first message after its last answer is told what it needs again."""
        rounds = list(self._iter_rounds(messages))
        answered = max((at for at, each in enumerate(rounds) if each[0].role == "assistant"), default=-1)
        following = (at for at in range(answered + 1, len(rounds)) if rounds[at][0].role in ("user", "tool"))
        newest = next(following, None)
        for at, (message, calls, due) in enumerate(rounds):
            values: dict[str, Any] = {}
            if at > answered and message.role in ("system", "developer"):
                message = _convert_to_user(message)
            if at == newest:
                tags = read_client_tags(messages, known_text=get_message_text(message))
                values = {"tools": self._render_tools(again=not due), "rules": self._rules, **tags._asdict()}
            yield self._render_message(message, calls, values)

    def _render_message(self, message: Message, calls: dict[str, ToolCall], values: dict[str, Any]) -> Message:
        """A message as it is sent, with what is told beside it."""
        if message.role == "tool":
            return self._render_results(message, calls, values) if self.tools_as_text else message
        if values:
            return self._templates.render_message("continuing" if self._has_tools else "plain", message.parts, **values)
        return render_calls_as_text(message, self._dialect) if self.tools_as_text else message

    def _iter_rounds(self, messages: Sequence[Message]) -> Iterator[tuple[Message, dict[str, ToolCall], bool]]:
        """Every message with the calls that it may answer, and whether the tools are due again; results that come
        together are one message where they are told in words."""
        calls: dict[str, ToolCall] = {}
        since = 0
        for message in _join_results(messages) if self.tools_as_text else messages:
            due = 0 < self._settings.reteach_after <= since and message.role in ("user", "tool") and bool(self._tools)
            since = 0 if due else since + 1
            yield message, calls, due
            if message.role == "assistant":
                calls = {part.id: part for part in message.parts if isinstance(part, ToolCall)}

    def _render_results(self, message: Message, calls: dict[str, ToolCall], values: dict[str, Any]) -> Message:
        """Results as the dialect writes them; they are the user's to say."""
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        told = [self._build_result(result, calls.get(result.call_id)) for result in results]
        images = [image for result in results for image in result.images]
        others = [part for part in message.parts if not isinstance(part, ToolResult)]
        return Message("user", (Text(self._templates.render_text("results", results=told, **values)), *images, *others))

    def _build_result(self, result: ToolResult, call: ToolCall | None) -> dict[str, str]:
        content = format_result(result, call) if self._settings.show_results else result.content
        return {
            "id": result.call_id,
            "name": result.name,
            "arguments": call.arguments if call else "",
            "status": "error" if is_failed_result(result) else "success",
            "content": result.content,
            "text": self._dialect.render_result(msgspec.structs.replace(result, content=content)),
        }


def _convert_to_user(message: Message) -> Message:
    """Instructions that come late, for a backend that ignores system messages."""
    tag = find_free_tag(get_message_text(message))
    return Message("user", wrap_parts(message.parts, f"<{tag}>\n", f"\n</{tag}>"))


@lru_cache(64)
def _render_rules(templates: PromptTemplates, house_rules: str, final: str) -> str:
    return templates.render_text("rules", house_rules=house_rules, final_answer=final).strip()


def _join_results(messages: Sequence[Message]) -> Iterator[Message]:
    """Messages, those of results that follow each other as one."""
    for is_result, group in groupby(messages, key=lambda message: message.role == "tool"):
        if is_result:
            yield Message("tool", tuple(part for message in group for part in message.parts))
        else:
            yield from group
