"""Scripted: a model that says what a file tells it to, for demos and tests of everything above it.

    [[turns]]
    when = { results = 0, user = "weather", offers = "get_weather" }
    steps = [
      { reasoning = "I should look." },
      { say = { name = "get_weather", arguments = { city = "Paris" } }, dialect = "hermes" },
    ]

    [[turns]]
    when = { results_from = 1 }
    steps = [{ text = "It is ${result}." }]

A file in TOML, or in JSON lines with one turn in each. Without a file it plays `demo.toml`, which lies beside this
module. The file is read once, and checked then. docs/scripted.md has every word of it.
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
    """Replays a script."""

    wire = "scripted"
    is_available = True
    flavour = None

    def __init__(self, settings: BackendSettings, *, ids: IdFactory = make_call_id) -> None:
        self.settings = settings
        self._script = load_script(settings.script)
        self._ids = ids

    async def stream_response(self, request: Request, extra: dict[str, Any]) -> EventStream:
        """Play the turn that fits."""
        for event in play_turn(self._script, request, self._ids):
            await asyncio.sleep(event if isinstance(event, float | int) else self._script.pace)
            if not isinstance(event, float | int):
                yield [event]

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """The models that the script names. They take tools, so that the script can see which are offered."""
        return tuple(ModelInfo(name=name, tools=True) for name in self._script.models)

    async def forward_request(self, path: str, body: bytes) -> ForwardedResponse:
        """A script has nothing else."""
        raise BackendError(f"the scripted backend {self.settings.name!r} has no {path}", kind="refused", status=501)

    async def close(self) -> None:
        """Nothing is held."""


def load_script(path: str) -> ModelScript:
    """The script of a file; the built-in demo's for none. `PolicyError` says what is wrong with it."""
    if not path:
        return parse_script(files("callwright.backends").joinpath("demo.toml").read_text(encoding="utf-8"), "demo.toml")
    try:
        return parse_script(Path(path).read_text(encoding="utf-8"), path)
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"the script {path} cannot be read: {error}") from error


def parse_script(text: str, name: str) -> ModelScript:
    """A script from its text; the ending of its name says whether that is TOML or JSON lines."""
    try:
        if name.endswith(".jsonl"):
            return msgspec.convert({"turns": msgspec.json.Decoder().decode_lines(text)}, ModelScript)
        return msgspec.convert(tomllib.loads(text), ModelScript)
    except (tomllib.TOMLDecodeError, msgspec.MsgspecError) as error:
        raise PolicyError(f"{name}: {error}") from error
