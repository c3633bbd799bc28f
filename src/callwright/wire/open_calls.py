"""The calls of a conversation that wait for a result, for wires on which results need no id."""

from __future__ import annotations

from collections import defaultdict, deque

__all__ = ["OpenCalls"]


class OpenCalls:
    """Calls without a result so far, the oldest first. Every operation takes the same time, however many there are."""

    def __init__(self) -> None:
        self._count = 0
        self._ids: dict[int, str] = {}
        """The ids of the open calls, by number."""
        self._by_id: defaultdict[str, deque[int]] = defaultdict(deque)
        self._by_name: defaultdict[str, deque[int]] = defaultdict(deque)
        """The numbers of calls by name, and of all calls under an empty name. Closed calls are removed when met."""

    def add_call(self, call_id: str, name: str) -> None:
        """Add a call."""
        self._ids[self._count] = call_id
        self._by_id[call_id].append(self._count)
        self._by_name[""].append(self._count)
        self._by_name[name].append(self._count)
        self._count += 1

    def close_call(self, call_id: str) -> None:
        """Close the oldest open call with this id, if there is one."""
        self._close_oldest(self._by_id.get(call_id, deque()))

    def close_next(self, name: str) -> str:
        """Close the oldest open call of a tool, of any tool without a name, and return its id; empty if none is
        open."""
        return self._close_oldest(self._by_name.get(name, deque()))

    def _close_oldest(self, numbers: deque[int]) -> str:
        while numbers:
            number = numbers.popleft()
            if number in self._ids:
                return self._ids.pop(number)
        return ""
