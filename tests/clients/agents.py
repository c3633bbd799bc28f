"""The coding agents of `scripts/clients.toml`: the data file as values, and the runs that it asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import cycle, islice
from pathlib import Path
from string import Template
from typing import Any, Literal, TypeVar

import msgspec

DATA = Path(__file__).resolve().parents[2] / "scripts" / "clients.toml"

Wire = Literal["chat", "responses", "messages"]
Value = TypeVar("Value")


class Tool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call of a tool as the client offers it."""

    name: str
    arguments: dict[str, Any]


class Agent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[client.NAME]` table; the data file says what each key means."""

    package: str
    version: str
    command: tuple[str, ...]
    write: Tool
    read: Tool
    wires: dict[Wire, dict[str, str]]
    dialects: tuple[str, ...]
    answer: Tool | None = None
    before: tuple[tuple[str, ...], ...] = ()
    environment: dict[str, str] = {}
    files: dict[str, str] = {}
    profile: str = ""
    quick: bool = False
    requests: int = 6


class Run(msgspec.Struct, frozen=True):
    """One client on one wire, with a model that writes its calls in one dialect."""

    name: str
    agent: Agent
    wire: Wire
    dialect: str

    def __str__(self) -> str:
        return f"{self.name} {self.agent.version}, {self.wire}, {self.dialect}"


class _File(msgspec.Struct, forbid_unknown_fields=True):
    client: dict[str, Agent]


def agents() -> dict[str, Agent]:
    """Every client, by name, in the order of the file."""
    return msgspec.toml.decode(DATA.read_bytes(), type=_File).client


def runs(name: str, agent: Agent) -> Iterator[Run]:
    """Every wire and every dialect at least once: the shorter list is gone through again."""
    count = max(len(agent.wires), len(agent.dialects))
    pairs = zip(islice(cycle(agent.wires), count), cycle(agent.dialects), strict=False)
    return (Run(name, agent, wire, dialect) for wire, dialect in pairs)


def filled(value: Value, names: Mapping[str, str]) -> Value:
    """The value with `${name}` replaced in every string; other placeholders are left to whoever knows them."""
    if isinstance(value, str):
        return Template(value).safe_substitute(names)  # type: ignore[return-value]
    if isinstance(value, list | tuple):
        return type(value)(filled(item, names) for item in value)  # type: ignore[return-value, call-arg]
    if isinstance(value, dict):
        return {key: filled(item, names) for key, item in value.items()}  # type: ignore[return-value]
    if isinstance(value, msgspec.Struct):
        changed = {name: filled(getattr(value, name), names) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **changed)
    return value
