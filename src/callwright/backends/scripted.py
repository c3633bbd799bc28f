"""A model that follows a script file, for demos and for tests of everything above it.

    [[turns]]
    when = { results = 0, user = "weather", offers = "get_weather" }
    steps = [
      { reasoning = "I should look." },
      { say = { name = "get_weather", arguments = { city = "Paris" } }, dialect = "hermes" },
    ]

    [[turns]]
    when = { results_from = 1 }
    steps = [{ text = "It is ${result}." }]

The file is TOML, or JSON lines with one turn per line. Without a file, `demo.toml` in this folder is played. The file
is read and checked once. docs/scripted.md describes it.
"""

from __future__ import annotations

import asyncio
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from callwright.backends.base import EventStream, ForwardedResponse, ModelInfo
from callwright.backends.script import ModelScript, play_turn
from callwright.backends.settings import BackendSettings
from callwright.errors import BackendError, PolicyError
from callwright.ids import make_call_id
from callwright.model import Request
from callwright.turn import IdFactory

__all__ = ["ScriptedBackend", "load_script", "parse_script"]


class ScriptedBackend:
    """Plays a script."""

    wire = "scripted"
    is_available = True
    flavour = None

    def __init__(self, settings: BackendSettings, *, ids: IdFactory = make_call_id) -> None:
        self.settings = settings
        self._script = load_script(settings.script)
        self._ids = ids

    async def stream_response(self, request: Request, extra: dict[str, Any]) -> EventStream:
        """Play the turn that matches."""
        for event in play_turn(self._script, request, self._ids):
            await asyncio.sleep(event if isinstance(event, float | int) else self._script.pace)
            if not isinstance(event, float | int):
                yield [event]

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """List the models of the script. They support tools, so that the script can see which are offered."""
        return tuple(ModelInfo(name=name, tools=True) for name in self._script.models)

    async def forward_request(self, path: str, body: bytes) -> ForwardedResponse:
        """Raise `BackendError`: a script has turns only."""
        message = f"the scripted backend {self.settings.name!r} does not support {path}"
        raise BackendError(message, kind="refused", status=501)

    async def close(self) -> None:
        """Do nothing: no resource is open."""


def load_script(path: str) -> ModelScript:
    """Load a script file; the built-in demo when the path is empty. Raises `PolicyError` when it is invalid."""
    if not path:
        return parse_script(files("callwright.backends").joinpath("demo.toml").read_text(encoding="utf-8"), "demo.toml")
    try:
        return parse_script(Path(path).read_text(encoding="utf-8"), path)
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"the script {path} cannot be read: {error}") from error


def parse_script(text: str, name: str) -> ModelScript:
    """Parse a script. The suffix of its name selects TOML or JSON lines."""
    try:
        if name.endswith(".jsonl"):
            return msgspec.convert({"turns": msgspec.json.Decoder().decode_lines(text)}, ModelScript)
        return msgspec.convert(tomllib.loads(text), ModelScript)
    except (tomllib.TOMLDecodeError, msgspec.MsgspecError) as error:
        raise PolicyError(f"{name}: {error}") from error
