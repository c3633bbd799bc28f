"""A backend for tests of what stands above backends: it says what it is told to, event by event."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from callwright.backends.base import EventStream, ModelInfo
from callwright.backends.settings import BackendSettings
from callwright.errors import BackendError
from callwright.events import Event
from callwright.model import Request
from callwright.wire.constraint import ConstraintFlavour


class Fake:
    """A backend that gives its answers one after the other; the last one again and again."""

    def __init__(
        self,
        *answers: Sequence[Event] | BackendError,
        name: str = "one",
        wire: str = "openai_chat",
        flavour: ConstraintFlavour | None = None,
    ) -> None:
        self.settings = BackendSettings(name=name)
        self.wire = wire
        self.is_available = True
        self.flavour = flavour
        self.asked: list[Request] = []
        self.extras: list[dict[str, Any]] = []
        self.closed_early = 0
        self._answers = list(answers)

    async def stream_response(self, request: Request, extra: dict[str, Any]) -> EventStream:
        self.asked.append(request)
        self.extras.append(extra)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, BackendError):
            raise answer
        try:
            for event in answer:
                await asyncio.sleep(0)
                yield [event]
        except GeneratorExit:
            self.closed_early += 1
            raise

    async def list_models(self) -> tuple[ModelInfo, ...]:
        return (ModelInfo(name="found", context=4096),)

    async def close(self) -> None:
        pass
