"""A process that writes to a store, says what was acknowledged, and is killed at the moment of an acknowledgement.

    python -m tests.integration.store_child ADDRESS WRITERS COUNT

Each line on its output is a name: the row and the conversation of that name have been acknowledged. The others are in
the middle of a write when the end comes.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from collections.abc import Iterator

from callwright.store.identity import ConversationScope
from callwright.store.open import Store
from tests.integration.store.test_conversations import history
from tests.support.opened_store import entry, opened

SCOPE = ConversationScope("team", "big", "platform")


def conversation(name: str) -> str:
    """What was said in it, as `history` reads it: no two are alike."""
    return name.upper().replace("_", "") + "a"


async def _write(store: Store, names: Iterator[str], left: Iterator[int]) -> None:
    for name in names:
        await store.journal.append(entry(name, client_sent=name * 500))
        await store.conversations.remember(history(conversation(name)), SCOPE, name)
        # One write of a whole line: nothing of it waits in this process.
        os.write(1, f"{name}\n".encode())
        if not next(left):
            os.kill(os.getpid(), signal.SIGKILL)


async def _main(address: str, writers: int, count: int) -> None:
    names, left = (f"r_{number}" for number in itertools.count()), iter(range(count - 1, -1, -1))
    async with opened(address) as store:
        await asyncio.gather(*(_write(store, names, left) for _ in range(writers)))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
