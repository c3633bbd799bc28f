"""Codex: a model behind the real `codex app-server`, whose agent is told to keep its hands still.

The child speaks to the provider, with the account of `callwright codex login` or at an address of one's own; we speak
JSON-RPC with the child. Every tool of its own is off: the model sees the client's tools and instructions, nothing else.
A turn is a thread that is thrown away after it; one that ends in calls is interrupted when all of them are there, and
the client's next request brings the results with the whole history. Timers, tries and the breaker are `HttpBackend`'s.
"""

from __future__ import annotations

import asyncio
import errno
from asyncio.subprocess import Process
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from callwright.backends.base import Answer, Forwarded, ModelInfo
from callwright.backends.codex.binary import FOLDER, VERSION, find
from callwright.backends.codex.failures import login_needed
from callwright.backends.codex.home import Catalogue, environment, furnish, hush
from callwright.backends.codex.reader import CalledCodex, first_failure
from callwright.backends.codex.rpc import LONGEST_LINE, Rpc, log
from callwright.backends.codex.thread import Thread
from callwright.backends.codex.told import reserved, told, unsent
from callwright.backends.http import Begun, HttpBackend
from callwright.backends.settings import BackendSettings
from callwright.backends.supervisor import Keeper, started
from callwright.errors import BackendError, PolicyError
from callwright.events import Event, Finish
from callwright.guard.restore_names import RestoreToolNames
from callwright.model import Repair, Request
from callwright.prompt.tool_aliases import rename_tools

__all__ = ["CodexBackend"]

SLOTS = 32
"""Turns at once where the settings do not say: each is 2 to 3 MB of the child's memory."""
GREETING_SECONDS = 60.0
_UNSENT = "unsent_options"
_MISSING = "codex is not installed: run `callwright codex install`, or set its path"


class CodexBackend(HttpBackend):
    """Turns through Codex. The child is started when a model is first asked for, or listed."""

    def __init__(self, settings: BackendSettings) -> None:
        super().__init__(settings, CalledCodex())
        self.child = _Child(settings)
        self._slots = asyncio.Semaphore(settings.slots or SLOTS)

    @property
    def flavour(self) -> None:
        """Codex has no place for a grammar."""

    async def answer(self, request: Request, extra: dict[str, Any]) -> Answer:
        """Ask the model, when there is a place for one more turn."""
        names = reserved(request)
        unaliased = RestoreToolNames({alias: name for name, alias in names.items()})
        left_out = unsent(request)
        async with self._slots, aclosing(super().answer(rename_tools(request, names), extra)) as answer:
            async for events in answer:
                named = unaliased.feed(events)
                yield _noted(named, left_out) if left_out else named

    async def send(self, request: Request, extra: dict[str, Any]) -> Begun:
        """Begin a turn, and wait for the first of its answer."""
        rpc = await self.child.ready()
        if self.child.login_needed:
            raise self._faults.said(login_needed())
        thread = Thread(rpc, *told(request, str(self.child.folder / "work")))
        data = b""
        try:
            await thread.begin()
            data = await thread.read()
            if failed := first_failure(data):
                data = b""
                raise failed
        except BackendError as problem:
            expired = problem.kind == "auth" and not self.settings.url
            raise self._faults.said(login_needed() if expired else problem) from None
        finally:
            if not data:
                thread.close()
        return thread, data

    async def models(self) -> tuple[ModelInfo, ...]:
        """What the provider at the address has; without one, what Codex lists."""
        await self.child.ready()
        return await super().models() if self.settings.url else tuple(_listed(self.child.catalogue))

    async def forward(self, path: str, body: bytes) -> Forwarded:
        """Pass a request on to the provider, if there is an address of it."""
        if not self.settings.url:
            raise BackendError(f"the backend {self.settings.name!r} has no {path}", kind="refused", status=501)
        return await super().forward(path, body)

    async def close(self) -> None:
        """End the child."""
        await super().close()
        await self.child.close()


class _Child(Keeper[Rpc]):
    """The process, in a folder of its own."""

    def __init__(self, settings: BackendSettings) -> None:
        super().__init__(who=f"the process of the backend {settings.name!r}", seconds=GREETING_SECONDS)
        self._settings = settings
        self._scratch: TemporaryDirectory[str] | None = None
        self.folder = Path()
        self.catalogue: Catalogue = []
        self.login_needed = False

    async def close(self) -> None:
        await super().close()
        if self._scratch is not None:
            self._scratch.cleanup()

    async def _start(self) -> Process:
        settings = self._settings
        binary = find(settings.path)
        if binary is None:
            raise FileNotFoundError(errno.ENOENT, _MISSING)
        if settings.home or not settings.url:
            self.folder = (Path(settings.home) if settings.home else FOLDER / "home").expanduser()
        elif self._scratch is None:
            self._scratch = TemporaryDirectory(prefix="callwright-codex-", ignore_cleanup_errors=True)
            self.folder = Path(self._scratch.name)
        try:
            self.catalogue = await furnish(self.folder, binary, settings)
        except PolicyError as problem:
            raise OSError(errno.EINVAL, str(problem)) from None
        command = (str(binary), "app-server", "--strict-config")
        return await started(
            command,
            environment=environment(self.folder, settings),
            folder=str(self.folder / "work"),
            line=LONGEST_LINE,
        )

    async def _greet(self, process: Process) -> Rpc | None:
        rpc = Rpc(process)
        try:
            who = {"name": "callwright", "version": VERSION}
            said = await rpc.ask("initialize", clientInfo=who, capabilities={"experimentalApi": True})
            rpc.tell({"method": "initialized"})
            account = await rpc.ask("account/read")
        except BackendError:
            rpc.close()
            return None
        if f"/{VERSION} " not in said.get("userAgent", ""):
            log.warning("%s is not codex %s, which this was made for: %s", self._who, VERSION, said.get("userAgent"))
        if not await asyncio.to_thread(hush, self.folder):
            log.warning("%s keeps a log in %s that grows with every turn", self._who, self.folder)
        self.login_needed = bool(account.get("requiresOpenaiAuth")) and account.get("account") is None
        return rpc


def _noted(events: list[Event], options: str) -> list[Event]:
    """Events whose end, if it is among them, says what the model was not told."""
    *before, last = events
    if not isinstance(last, Finish):
        return events
    repair = Repair(_UNSENT, f"Codex has no place for {options}")
    return [*before, msgspec.structs.replace(last, repairs=(*last.repairs, repair))]


def _listed(catalogue: Catalogue) -> list[ModelInfo]:
    return [
        ModelInfo(
            name=model["slug"],
            context=model.get("context_window") or 0,
            tools=True,
            vision="image" in model.get("input_modalities", ()),
            reasoning=bool(model.get("supported_reasoning_levels")),
        )
        for model in catalogue
        if model.get("visibility") == "list"
    ]
