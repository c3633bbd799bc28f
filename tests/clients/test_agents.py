"""The data file of the coding agents is whole: what it names exists, and every placeholder has a value."""

from __future__ import annotations

import re
from string import Template

import msgspec
import pytest

from callwright.dialects import REGISTRY
from tests.clients.agents import DATA, Agent, agents, filled, runs
from tests.clients.sandbox import ADDED, CONTENT
from tests.clients.script import script

GIVEN = {"base", "model", "task", "home", "work", "content", "added"}
SCRIPTED = {"result", "last_user"}
"""Placeholders that the scripted backend fills in."""

AGENTS = agents()
PAGE = DATA.parents[1] / "docs" / "clients.md"


@pytest.mark.parametrize("name", AGENTS)
def test_versions_are_exact(name: str) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", AGENTS[name].version)


@pytest.mark.parametrize("name", AGENTS)
def test_dialects_exist(name: str) -> None:
    assert set(AGENTS[name].dialects) <= set(REGISTRY)


@pytest.mark.parametrize("name", AGENTS)
def test_every_placeholder_has_a_value_on_every_wire(name: str) -> None:
    agent = AGENTS[name]
    parts = {field: getattr(agent, field) for field in Agent.__struct_fields__ if field != "wires"}
    asked = set(Template(msgspec.json.encode(parts).decode()).get_identifiers())
    for wire, values in agent.wires.items():
        assert asked - GIVEN - SCRIPTED == set(values), wire


@pytest.mark.parametrize("name", AGENTS)
def test_every_wire_and_every_dialect_is_run(name: str) -> None:
    agent = AGENTS[name]
    planned = list(runs(name, agent))
    assert {run.wire for run in planned} == set(agent.wires)
    assert {run.dialect for run in planned} == set(agent.dialects)


def test_the_page_lists_every_run() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][2:]
    listed = [tuple(cell.strip(" `") for cell in row.split("|")[1:5]) for row in rows]
    planned = [run for name, agent in AGENTS.items() for run in runs(name, agent)]
    assert listed == [(run.name, run.agent.version, run.wire, run.dialect) for run in planned], "make clients"


@pytest.mark.parametrize("name", AGENTS)
def test_the_model_writes_the_content_as_it_is(name: str) -> None:
    run = next(runs(name, filled(AGENTS[name], {"content": CONTENT, "added": ADDED, "work": "/scratch"})))
    written = msgspec.json.Decoder().decode_lines(script(run))
    assert any(CONTENT in str(argument).replace("\n+", "\n") for argument in _arguments(written))


def _arguments(turns: list[dict[str, object]]) -> list[object]:
    steps = [step for turn in turns for step in turn["steps"]]  # type: ignore[attr-defined]
    return [value for step in steps if "say" in step for value in step["say"]["arguments"].values()]
