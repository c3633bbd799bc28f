"""A model behind the real `codex app-server`, with its agent features switched off.

The child process talks to the provider, with the account of `callwright codex login` or at a configured URL; the
gateway talks JSON-RPC with the child. All tools of Codex are off: the model sees only the client's tools and
instructions. A turn is a temporary thread. A turn that ends in calls is interrupted when all of them have arrived, and
the client's next request brings the results with the whole history. Timeouts, retries and the circuit breaker are those
of `HttpBackend`.
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

from callwright.backends.base import EventStream, ForwardedResponse, ModelInfo
from callwright.backends.child_process import ChildProcess, start_process
from callwright.backends.codex.binary import INSTALL_FOLDER, VERSION, find_binary
from callwright.backends.codex.failures import build_login_error
from callwright.backends.codex.home import ModelCatalogue, build_environment, disable_log, write_home
from callwright.backends.codex.request import alias_reserved_tools, build_codex_request, describe_unsent_options
from callwright.backends.codex.rpc_client import MAX_LINE_BYTES, RpcClient, log
from callwright.backends.codex.thread import CodexThread
from callwright.backends.codex.turn_reader import CodexClientCodec, find_first_failure
from callwright.backends.http import HttpBackend, StartedResponse
from callwright.backends.settings import BackendSettings
from callwright.errors import BackendError, PolicyError
from callwright.events import Event, Finish
from callwright.guard.restore_names import RestoreToolNames
from callwright.model import Repair, Request
from callwright.prompt.tool_aliases import rename_tools

__all__ = ["CodexBackend"]

DEFAULT_SLOTS = 32
"""Default maximum number of turns at a time. Each uses 2 to 3 MB of the child's memory."""
HANDSHAKE_SECONDS = 60.0
_UNSENT_OPTIONS = "unsent_options"
_NOT_INSTALLED = "codex is not installed: run `callwright codex install`, or set `path`"


class CodexBackend(HttpBackend):
    """Runs turns through Codex. The child is started when a model is first used or listed."""

    def __init__(self, settings: BackendSettings) -> None:
        super().__init__(settings, CodexClientCodec())
        self.child = _CodexProcess(settings)
        self._slots = asyncio.Semaphore(settings.slots or DEFAULT_SLOTS)

    @property
    def flavour(self) -> None:
        """None: Codex does not support grammars."""

    async def stream_response(self, request: Request, extra: dict[str, Any]) -> EventStream:
        """Stream the model's answer, once a slot is free."""
        names = alias_reserved_tools(request)
        restore_names = RestoreToolNames({alias: name for name, alias in names.items()})
        unsent_options = describe_unsent_options(request)
        async with self._slots, aclosing(super().stream_response(rename_tools(request, names), extra)) as answer:
            async for events in answer:
                restored = restore_names.feed(events)
                yield _report_unsent_options(restored, unsent_options) if unsent_options else restored

    async def send_request(self, request: Request, extra: dict[str, Any]) -> StartedResponse:
        """Start a turn and wait for the first part of its answer."""
        rpc = await self.child.wait_until_ready()
        if self.child.needs_login:
            raise self._errors.reported(build_login_error())
        thread = CodexThread(rpc, *build_codex_request(request, str(self.child.folder / "work")))
        data = b""
        try:
            await thread.wait_until_started()
            data = await thread.read()
            if failed := find_first_failure(data):
                data = b""
                raise failed
        except BackendError as problem:
            expired = problem.kind == "auth" and not self.settings.url
            raise self._errors.reported(build_login_error() if expired else problem) from None
        finally:
            if not data:
                thread.close()
        return thread, data

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """List the models of the provider at the URL, or without one those that Codex lists."""
        await self.child.wait_until_ready()
        return await super().list_models() if self.settings.url else tuple(_list_visible_models(self.child.catalogue))

    async def forward_request(self, path: str, body: bytes) -> ForwardedResponse:
        """Forward a request to the provider. Raises `BackendError` without a URL."""
        if not self.settings.url:
            message = f"the backend {self.settings.name!r} does not support {path}"
            raise BackendError(message, kind="refused", status=501)
        return await super().forward_request(path, body)

    async def close(self) -> None:
        """Stop the child."""
        await super().close()
        await self.child.close()


class _CodexProcess(ChildProcess[RpcClient]):
    """The Codex process, with a folder of its own."""

    def __init__(self, settings: BackendSettings) -> None:
        super().__init__(subject=f"the process of the backend {settings.name!r}", seconds=HANDSHAKE_SECONDS)
        self._settings = settings
        self._temporary_home: TemporaryDirectory[str] | None = None
        self.folder = Path()
        self.catalogue: ModelCatalogue = []
        self.needs_login = False

    async def close(self) -> None:
        await super().close()
        if self._temporary_home is not None:
            self._temporary_home.cleanup()

    async def _start_process(self) -> Process:
        settings = self._settings
        binary = find_binary(settings.path)
        if binary is None:
            raise FileNotFoundError(errno.ENOENT, _NOT_INSTALLED)
        if settings.home or not settings.url:
            self.folder = (Path(settings.home) if settings.home else INSTALL_FOLDER / "home").expanduser()
        elif self._temporary_home is None:
            self._temporary_home = TemporaryDirectory(prefix="callwright-codex-", ignore_cleanup_errors=True)
            self.folder = Path(self._temporary_home.name)
        try:
            self.catalogue = await write_home(self.folder, binary, settings)
        except PolicyError as problem:
            raise OSError(errno.EINVAL, str(problem)) from None
        command = (str(binary), "app-server", "--strict-config")
        return await start_process(
            command,
            environment=build_environment(self.folder, settings),
            folder=str(self.folder / "work"),
            line_limit=MAX_LINE_BYTES,
        )

    async def _perform_handshake(self, process: Process) -> RpcClient | None:
        rpc = RpcClient(process)
        try:
            client_info = {"name": "callwright", "version": VERSION}
            reply = await rpc.send_request("initialize", clientInfo=client_info, capabilities={"experimentalApi": True})
            rpc.notify("initialized")
            account = await rpc.send_request("account/read")
        except BackendError:
            rpc.close()
            return None
        if f"/{VERSION} " not in reply.get("userAgent", ""):
            log.warning("%s is not codex %s, the supported version: %s", self._subject, VERSION, reply.get("userAgent"))
        if not await asyncio.to_thread(disable_log, self.folder):
            log.warning("%s writes a log in %s that grows with every turn", self._subject, self.folder)
        self.needs_login = bool(account.get("requiresOpenaiAuth")) and account.get("account") is None
        return rpc


def _report_unsent_options(events: list[Event], options: str) -> list[Event]:
    """Add a repair to the `Finish` event, if it is among these events, that names the options which were not sent."""
    *before, last = events
    if not isinstance(last, Finish):
        return events
    repair = Repair(_UNSENT_OPTIONS, f"Codex does not support {options}")
    return [*before, msgspec.structs.replace(last, repairs=(*last.repairs, repair))]


def _list_visible_models(catalogue: ModelCatalogue) -> list[ModelInfo]:
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
