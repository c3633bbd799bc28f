"""The messages of a task so far, and how they are shortened when the context window fills up. Pure.

A round is an answer of the model with the results of its calls; the two are never separated. The task itself and the
last rounds stay unchanged. Older rounds are shortened in two steps: long results become a note, then everything becomes
a summary that the model writes. If the last rounds alone are too long, their results are truncated.
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
    "The conversation is getting too long. Summarize it, so that you can continue without it: what was asked, "
    "what you found out, which files you changed and how, what is still to be done, and what failed. "
    "Only what matters, as a list. Call no tools."
)
_NO_SUMMARY = "(It could not be summarized. Look at the files to see what was done.)"
_RECENT_ROUNDS = 2
_LONG_RESULT_CHARS = 600
"""The length in characters from which a result is replaced by a note."""
_OMITTED_NOTE = "[{} characters were omitted here to save space. Call {} again if you need them.]"

_TRUNCATED_NOTE = "[{} more characters were omitted here to save space. Request less at a time.]"


def make_user_message(text: str) -> Message:
    """Build a message of the user, or of the loop on the user's behalf."""
    return Message("user", (Text(text),))


def make_result_message(call: ToolCall, content: str, *, is_error: bool) -> Message:
    """Build the message with the result of a call."""
    return Message("tool", (ToolResult(call.id, content, name=call.name, is_error=is_error),))


def make_answer_message(message: Message) -> Message:
    """Return the model's answer for the next request: servers reject the arguments of a truncated call, so they become
    {}.
    """
    return Message(
        message.role, tuple(_complete_call(part) if isinstance(part, ToolCall) else part for part in message.parts)
    )


def _complete_call(call: ToolCall) -> ToolCall:
    return call if call.complete else msgspec.structs.replace(call, arguments="{}", complete=True)


def _find_recent_rounds(messages: Sequence[Message], start: int) -> int:
    """Return the index at which the unchanged rounds begin."""
    answers = [index for index in range(start, len(messages)) if messages[index].role == "assistant"]
    return answers[-_RECENT_ROUNDS] if len(answers) > _RECENT_ROUNDS else start


def shorten_old_results(messages: Sequence[Message], task: int) -> list[Message]:
    """Replace the long results of older rounds with notes. `task` is the index of the task's own message."""
    end = _find_recent_rounds(messages, task + 1)
    return [_shorten_message(message) if index < end else message for index, message in enumerate(messages)]


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


def truncate_results(messages: Sequence[Message], max_chars: int) -> list[Message]:
    """Truncate all results to a number of characters: the last resort, for results that fill a window alone."""
    return [
        Message(message.role, tuple(_truncate_result(part, max_chars) for part in message.parts))
        for message in messages
    ]


def _truncate_result(part: Part, max_chars: int) -> Part:
    if not isinstance(part, ToolResult) or len(part.content) <= max_chars:
        return part
    note = _TRUNCATED_NOTE.format(len(part.content) - max_chars)
    return ToolResult(part.call_id, f"{part.content[:max_chars]}\n{note}", name=part.name, is_error=part.is_error)


def has_older_messages(messages: Sequence[Message], task: int) -> bool:
    """Return whether there is anything but the first message, the task and the last rounds."""
    return len(drop_oldest_messages(messages, task, len(messages))) < len(messages)


def drop_oldest_messages(messages: Sequence[Message], task: int, drop: int) -> list[Message]:
    """Drop the `drop` oldest messages, but never the first one, the task or the last rounds.

    Rounds are dropped as a whole.
    """
    end = _find_recent_rounds(messages, task + 1)
    removable = [index for index in range(1, end) if index != task]
    dropped = set(removable[:drop])
    while drop < len(removable) and messages[removable[drop]].role == "tool":  # a result is useless without its call
        dropped.add(removable[drop])
        drop += 1
    return [message for index, message in enumerate(messages) if index not in dropped]


def replace_with_summary(messages: Sequence[Message], task: int, answer: Message) -> tuple[list[Message], int]:
    """Replace everything older than the last rounds with the model's summary.

    Returns the messages and the new index of the task.
    """
    text = "".join(part.text for part in answer.parts if isinstance(part, Text)).strip()
    end = _find_recent_rounds(messages, task + 1)
    head = [message for message in messages[:task] if message.role == "system"]
    summary = make_user_message(
        f"Your own summary of the conversation so far:\n\n{text or _NO_SUMMARY}\n\nThe task that you are working on:"
    )
    return [*head, summary, messages[task], *messages[end:]], len(head) + 1
