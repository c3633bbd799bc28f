"""Build the prompt of a request whose history is repaired.

The order is fixed: first the opening instructions, then the conversation, and last the lines that change from request
to request and the requirement for the next answer. The form of a message depends on the messages before it and on the
system messages, never on later answers: a conversation that grows keeps its beginning, byte for byte, and with it the
backend's prompt cache. (A backend that keeps the conversation gets only the newest messages.)
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
    """The request to send, and warnings."""

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
    """Prepare a request for its backend. `is_first_turn` says that the conversation has no answer yet.

    Raises `RequestError` if the tool rounds are used up.
    """
    check_tool_rounds(request.messages, settings.max_rounds)
    writer = _PromptWriter(request, settings, dialect, templates, tools_as_text=strategy in _TEXT_STRATEGIES)
    if writer.is_unchanged:
        return PreparedRequest(request, ())
    messages, last = move_volatile_lines_last(request.messages, settings.volatile)
    notes: tuple[Repair, ...] = ()
    if settings.system == "fold_first" and not is_first_turn:
        messages = tuple(writer.iter_newest(messages))
    else:
        messages, notes = writer.add_opening(messages)
        messages = tuple(writer.iter_conversation(messages))
    if writer.tools_as_text:
        last = "\n\n".join(filter(None, (last, format_call_demand(request.tool_choice) if request.tools else "")))
        request = msgspec.structs.replace(request, tools=(), tool_choice="auto")
    messages = append_text(messages, last) if last else messages
    return PreparedRequest(msgspec.structs.replace(request, messages=messages), notes)


class _PromptWriter:
    """Writes what the prompt contains besides the conversation."""

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
        """Whether the prompt is the client's request unchanged."""
        settings = self._settings
        return not (self.tools_as_text or self._rules or settings.volatile) and settings.system == "native"

    def _render_tools(self, *, repeated: bool) -> str:
        return render_tool_prompt(self._tools, self._dialect, get_teach_form(self._settings, repeated=repeated))

    # ── the beginning ──────────────────────────────────────────────────────────────────────────

    def add_opening(self, messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[Repair, ...]]:
        """Add the opening instructions to the conversation. Return it with warnings."""
        if self._settings.system == "native":
            return self._extend_system(messages), ()
        return self._fold_system(messages)

    def _extend_system(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Add the instructions to the first system message, after the client's own text."""
        words = "\n\n".join(filter(None, (self._render_tools(repeated=False), self._rules)))
        if not words:
            return tuple(messages)
        if messages and messages[0].role in ("system", "developer"):
            first = messages[0]
            return (Message(first.role, wrap_parts(first.parts, after=f"\n\n{words}")), *messages[1:])
        return (Message("system", (Text(words),)), *messages)

    def _fold_system(self, messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[Repair, ...]]:
        """Add the instructions to the first user message, before the client's own text."""
        system, sections, other_parts, rest = split_system(messages)
        taught = self._render_tools(repeated=False)
        if not (sections or other_parts or taught or self._rules):
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
        opening = self._templates.render_message(name, (*other_parts, *user.parts), **values)
        redundant = (
            (Message("system", (Text(REDUNDANT_SYSTEM_TEXT.format(tag=tag)),)),)
            if self._settings.redundant_system
            else ()
        )
        size, limit = len(get_message_text(opening)) - len(get_message_text(user)), self._settings.fold_warn_characters
        warnings = (Repair("large_system", f"{size} characters of instructions were folded into the user's message"),)
        folded = (*redundant, *rest[:position], opening, *rest[position + 1 :])
        return folded, warnings if limit and size > limit else ()

    # ── the conversation ───────────────────────────────────────────────────────────────────────

    def iter_conversation(self, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield every message, with the tools repeated where that is due."""
        for message, calls, due in self._iter_rounds(messages):
            yield self._render_message(message, calls, {"tools": self._render_tools(repeated=True)} if due else {})

    def iter_newest(self, messages: Sequence[Message]) -> Iterator[Message]:
        """Yield the messages since the last answer, for a backend that has the others; the first has what it needs."""
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
                values = {"tools": self._render_tools(repeated=not due), "rules": self._rules, **tags._asdict()}
            yield self._render_message(message, calls, values)

    def _render_message(self, message: Message, calls: dict[str, ToolCall], values: dict[str, Any]) -> Message:
        """Render a message with the text around it."""
        if message.role == "tool":
            return self._render_results(message, calls, values) if self.tools_as_text else message
        if values:
            return self._templates.render_message("continuing" if self._has_tools else "plain", message.parts, **values)
        return render_calls_as_text(message, self._dialect) if self.tools_as_text else message

    def _iter_rounds(self, messages: Sequence[Message]) -> Iterator[tuple[Message, dict[str, ToolCall], bool]]:
        """Yield every message with the calls that it may answer, and whether the tools are due again. Consecutive
        results are one message where tools are described as text."""
        calls: dict[str, ToolCall] = {}
        since = 0
        for message in _join_results(messages) if self.tools_as_text else messages:
            due = 0 < self._settings.reteach_after <= since and message.role in ("user", "tool") and bool(self._tools)
            since = 0 if due else since + 1
            yield message, calls, due
            if message.role == "assistant":
                calls = {part.id: part for part in message.parts if isinstance(part, ToolCall)}

    def _render_results(self, message: Message, calls: dict[str, ToolCall], values: dict[str, Any]) -> Message:
        """Render results in the dialect's form, as a user message."""
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        rendered = [self._build_result(result, calls.get(result.call_id)) for result in results]
        images = [image for result in results for image in result.images]
        other_parts = [part for part in message.parts if not isinstance(part, ToolResult)]
        return Message(
            "user", (Text(self._templates.render_text("results", results=rendered, **values)), *images, *other_parts)
        )

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
    """Convert late instructions to a user message, for a backend that ignores system messages."""
    tag = find_free_tag(get_message_text(message))
    return Message("user", wrap_parts(message.parts, f"<{tag}>\n", f"\n</{tag}>"))


@lru_cache(64)
def _render_rules(templates: PromptTemplates, house_rules: str, final: str) -> str:
    return templates.render_text("rules", house_rules=house_rules, final_answer=final).strip()


def _join_results(messages: Sequence[Message]) -> Iterator[Message]:
    """Join consecutive messages of results."""
    for is_result, group in groupby(messages, key=lambda message: message.role == "tool"):
        if is_result:
            yield Message("tool", tuple(part for message in group for part in message.parts))
        else:
            yield from group
