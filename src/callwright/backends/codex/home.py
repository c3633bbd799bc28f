"""Writes the folder that Codex reads its configuration from.

The key and the values of headers are not written to it. They are passed in the child's environment, which contains
nothing else of this process.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import msgspec

from callwright.backends.settings import BackendSettings
from callwright.errors import PolicyError
from callwright.wire.framing import JSON_DECODE_ERRORS

__all__ = ["ModelCatalogue", "build_environment", "disable_log", "write_home"]

ModelCatalogue = list[dict[str, Any]]
"""The models that Codex knows, without their built-in tools."""

_KEY_VARIABLE = "CALLWRIGHT_KEY"
_HEADER_VARIABLE = "CALLWRIGHT_HEADER_{}"
_OWNER_COMMENT = "# Written by Callwright"
_IGNORE_LOG_ROWS = "CREATE TRIGGER IF NOT EXISTS callwright BEFORE INSERT ON logs BEGIN SELECT RAISE(IGNORE); END"
# `apply_patch`, the code mode and agents come with a model, and no feature disables them (measured with 0.166.0, one
# field at a time). With `use_responses_lite` tools go into an input item, which only OpenAI's own servers read.
_NO_TOOLS: dict[str, Any] = {
    "tool_mode": "direct",
    "multi_agent_version": None,
    "apply_patch_tool_type": None,
    "experimental_supported_tools": [],
    "supports_search_tool": False,
    "shell_type": "disabled",
    "default_verbosity": None,
}


def build_environment(folder: Path, settings: BackendSettings) -> dict[str, str]:
    """Build the whole environment of the child."""
    values = {"CODEX_HOME": str(folder), "HOME": str(folder), "RUST_LOG": "off"}
    values |= {_HEADER_VARIABLE.format(number): value for number, value in enumerate(settings.headers.values())}
    return values | ({_KEY_VARIABLE: settings.key} if settings.key else {})


async def write_home(folder: Path, binary: Path, settings: BackendSettings) -> ModelCatalogue:
    """Write the configuration and the catalogue. Raises `OSError`, and `PolicyError` when the folder is not ours."""
    file = folder / "config.toml"
    if file.exists() and not file.read_text(encoding="utf-8").startswith(_OWNER_COMMENT):
        raise PolicyError(f"{file} was not written by Callwright: set `home` to a separate folder")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / "work").mkdir(exist_ok=True)
    file.write_text(_build_config(settings), encoding="utf-8")
    catalogue = await _read_catalogue(binary, build_environment(folder, settings), lite=not settings.url)
    (folder / "catalog.json").write_bytes(msgspec.json.encode({"models": catalogue}))
    return catalogue


def disable_log(folder: Path) -> bool:
    """Disable Codex's log, and return whether that worked. Codex writes every step of every thread into a database
    (37 kB per turn with 0.166.0), and no setting stops it, so a trigger discards the rows."""
    try:
        with closing(sqlite3.connect(folder / "logs_2.sqlite", timeout=1.0)) as database:
            database.execute(_IGNORE_LOG_ROWS)
    except sqlite3.Error:
        return False
    return True


def _build_config(settings: BackendSettings) -> str:
    fixed = files("callwright.backends.codex").joinpath("config.toml").read_text(encoding="utf-8")
    provider: dict[str, Any] = {
        "name": "callwright",
        "wire_api": "responses",
        "requires_openai_auth": not settings.url,
        "supports_websockets": False,
        # Retries and timeouts are handled here: Codex would repeat the whole answer after a lost connection.
        "request_max_retries": 0,
        "stream_max_retries": 0,
        "stream_idle_timeout_ms": int(settings.total_seconds * 1000),
    }
    if settings.url:
        provider["base_url"] = settings.url
    if settings.key:
        provider["env_key"] = _KEY_VARIABLE
    if settings.headers:
        provider["env_http_headers"] = {name: _HEADER_VARIABLE.format(at) for at, name in enumerate(settings.headers)}
    lines = [f"{key} = {_format_toml_value(value)}" for key, value in provider.items()]
    return "\n".join([fixed, "[model_providers.callwright]", *lines, ""])


def _format_toml_value(value: Any) -> str:
    """Format a value as TOML, which equals JSON except for tables."""
    if isinstance(value, Mapping):
        return (
            "{ " + ", ".join(f"{json.dumps(name)} = {_format_toml_value(each)}" for name, each in value.items()) + " }"
        )
    return json.dumps(value)


async def _read_catalogue(binary: Path, environment: Mapping[str, str], *, lite: bool) -> ModelCatalogue:
    """Read the models that this version knows, and remove their built-in tools."""
    command = (str(binary), "debug", "models", "--bundled")
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=DEVNULL, env=environment)
    output, _ = await process.communicate()
    try:
        models = msgspec.json.decode(output, type=dict[str, ModelCatalogue]).get("models", [])
    except JSON_DECODE_ERRORS:
        raise PolicyError(f"{binary} does not list its models: is it codex?") from None
    return [
        model | _NO_TOOLS | {"use_responses_lite": lite and model.get("use_responses_lite", False)} for model in models
    ]
