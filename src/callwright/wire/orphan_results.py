"""Tool results whose call is not in the conversation.

In a conversation with calls, such a result is stale or left over by a compaction: clients send those, and the history
is repaired. Without any call there is nothing to repair: the request is wrong and is refused (seed S0, 6.8.4).
"""

from __future__ import annotations

from collections.abc import Iterable

from callwright.errors import RequestError
from callwright.model import Message, ToolCall, ToolResult

__all__ = ["check_orphan_results"]


def check_orphan_results(messages: Iterable[Message], path: str) -> None:
    """Raise `RequestError` for results in a conversation without calls. `path` is that of the first one."""
    parts = [part for message in messages for part in message.parts]
    result = next((part for part in parts if isinstance(part, ToolResult)), None)
    if result is None or any(isinstance(part, ToolCall) for part in parts):
        return
    which = f"call {result.call_id!r}" if result.call_id else f"a call of {result.name!r}" if result.name else "a call"
    raise RequestError(
        f"{path} is wrong: no message before this result made {which}; send the answer that made it too", param=path
    )
