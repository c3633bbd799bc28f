"""What the model is told of a task so far, and how it is shortened when the window fills. Pure.

A round is an answer of the model with the results of its calls; the two are never parted. The task itself and the last
rounds stay as they are. What is older is shortened in two steps: long results become a note, then all of it becomes a
summary that the model writes. Should the last rounds alone be too much, their results are cut.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from callwright.model import Message, Part, Text, ToolCall, ToolResult

__all__ = [
    "SUMMARY_PROMPT",
    "drop_oldest_messages",
    "has_older_messages",
    "make_answer_message",
    "make_result_message",
    "make_user_message",
    "replace_with_summary",
    "shorten_old_results",
    "truncate_results",
]

SUMMARY_PROMPT = (
    "The conversation is getting too long. Sum it up for yourself, so that you can go on without it: what was asked, "
    "what you found out, which files you changed and how, what is still to be done, and what failed. "
    "Only what matters, as a list. Call no tools."
)
_NO_SUMMARY = "(Nothing could be kept of it. Look at the files to see what was done.)"
_RECENT_ROUNDS = 2
_LONG_RESULT_CHARS = 600
"""Characters of a result that are worth a note instead."""
_OMITTED_NOTE = "[{} characters were left out here to save space. Call {} again if you need them.]"

_TRUNCATED_NOTE = "[{} more characters were left out here to save space. Ask for less at a time.]"


def make_user_message(text: str) -> Message:
    """A message of the person, or of ours in their place."""
    return Message("user", (Text(text),))


def make_result_message(call: ToolCall, content: str, *, is_error: bool) -> Message:
    """What a call came to."""
    return Message("tool", (ToolResult(call.id, content, name=call.name, is_error=is_error),))


def make_answer_message(message: Message) -> Message:
    """The model's answer as it may be told again: a call that was cut off has no arguments that any server takes."""
    return Message(
        message.role, tuple(_complete_call(part) if isinstance(part, ToolCall) else part for part in message.parts)
    )


def _complete_call(call: ToolCall) -> ToolCall:
    return call if call.complete else msgspec.structs.replace(call, arguments="{}", complete=True)


def _find_recent_rounds(messages: Sequence[Message], start: int) -> int:
    """Where the rounds begin that stay as they are."""
    answers = [place for place in range(start, len(messages)) if messages[place].role == "assistant"]
    return answers[-_RECENT_ROUNDS] if len(answers) > _RECENT_ROUNDS else start


def shorten_old_results(messages: Sequence[Message], task: int) -> list[Message]:
    """The same with the long results of older rounds left out. `task` is the place of the task's own message."""
    end = _find_recent_rounds(messages, task + 1)
    return [_shorten_message(message) if place < end else message for place, message in enumerate(messages)]


def _shorten_message(message: Message) -> Message:
    if message.role != "tool":
        return message
    return Message(
        "tool", tuple(_shorten_result(part) if isinstance(part, ToolResult) else part for part in message.parts)
    )


def _shorten_result(part: ToolResult) -> ToolResult:
    if len(part.content) <= _LONG_RESULT_CHARS:
        return part
    note = _OMITTED_NOTE.format(len(part.content), part.name or "the tool")
    return ToolResult(part.call_id, note, name=part.name, is_error=part.is_error)


def truncate_results(messages: Sequence[Message], most: int) -> list[Message]:
    """The same with no result longer than so many characters: the last resort, for results that fill a window alone."""
    return [
        Message(message.role, tuple(_truncate_result(part, most) for part in message.parts)) for message in messages
    ]


def _truncate_result(part: Part, most: int) -> Part:
    if not isinstance(part, ToolResult) or len(part.content) <= most:
        return part
    left = _TRUNCATED_NOTE.format(len(part.content) - most)
    return ToolResult(part.call_id, f"{part.content[:most]}\n{left}", name=part.name, is_error=part.is_error)


def has_older_messages(messages: Sequence[Message], task: int) -> bool:
    """Whether there is anything but the first message, the task and the last rounds."""
    return len(drop_oldest_messages(messages, task, len(messages))) < len(messages)


def drop_oldest_messages(messages: Sequence[Message], task: int, drop: int) -> list[Message]:
    """The messages without the `drop` oldest that may go: all but the first, the task, and the last rounds. Rounds go
    whole."""
    end = _find_recent_rounds(messages, task + 1)
    may_go = [place for place in range(1, end) if place != task]
    gone = set(may_go[:drop])
    while drop < len(may_go) and messages[may_go[drop]].role == "tool":  # a result without its call says nothing
        gone.add(may_go[drop])
        drop += 1
    return [message for place, message in enumerate(messages) if place not in gone]


def replace_with_summary(messages: Sequence[Message], task: int, answer: Message) -> tuple[list[Message], int]:
    """The messages with the model's summary in place of all that is older than the last rounds; and where the task is
    now."""
    said = "".join(part.text for part in answer.parts if isinstance(part, Text)).strip()
    end = _find_recent_rounds(messages, task + 1)
    head = [message for message in messages[:task] if message.role == "system"]
    told = make_user_message(
        f"Your own summary of the conversation so far:\n\n{said or _NO_SUMMARY}\n\nThe task that you are working on:"
    )
    return [*head, told, messages[task], *messages[end:]], len(head) + 1
