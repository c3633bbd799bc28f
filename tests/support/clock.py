"""An event loop whose clock a test puts forward, so that nobody waits for a time limit and none expires by itself.

    with asyncio.Runner(loop_factory=ClockLoop) as runner: ...
        await pass_time(120)

Limits in the code under test stay as long as they are for users. A test makes what it wants to happen, and then lets
the time pass: that is the same on a busy machine.
"""

from __future__ import annotations

import asyncio

_TURNS = 50
"""How often the loop goes round before time passes: what was sent has been read then, and what follows is done."""


class ClockLoop(asyncio.SelectorEventLoop):
    """Its time is the machine's, and what a test adds to it."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead = 0.0

    def time(self) -> float:
        return super().time() + self._ahead

    def advance(self, seconds: float) -> None:
        """Put the clock forward; what is due then is done when the loop goes round next."""
        self._ahead += seconds


async def pass_time(*seconds: float) -> None:
    """Let everything happen that can happen now, then put the clock of the running loop forward, and so on."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ClockLoop), "the clock of this loop cannot be put forward"
    for each in seconds:
        await settle()
        loop.advance(each)
    await settle()


async def settle() -> None:
    """Let everything happen that needs no time."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)
