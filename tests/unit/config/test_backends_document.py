"""docs/backends.md has a section for every kind of backend, and each configuration in it is one that loads."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from callwright import backends
from callwright.backends.scripted import ScriptedBackend
from callwright.backends.settings import BackendKind
from callwright.config import load_config
from callwright.gateway.profiles import PROFILES

DOCUMENT = Path(__file__).parents[3] / "docs" / "backends.md"
SECTIONS = re.split(r"(?m)^## ", DOCUMENT.read_text(encoding="utf-8"))[1:]
BLOCKS = [
    (section.split("\n", 1)[0], block)
    for section in SECTIONS
    for block in re.findall(r"(?s)```toml\n(.*?)```", section)
]


def test_every_kind_has_its_section() -> None:
    titles = [section.split("\n", 1)[0] for section in SECTIONS]
    assert sorted(titles) == sorted(f'`kind = "{kind}"`' for kind in get_args(BackendKind))


@pytest.mark.parametrize(("title", "block"), BLOCKS, ids=[title for title, _ in BLOCKS])
def test_every_configuration_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, title: str, block: str) -> None:
    monkeypatch.setitem(backends._plugin_factories, "acme", ScriptedBackend)
    file = tmp_path / "callwright.toml"
    file.write_text(block, encoding="utf-8")
    config = load_config(
        file, dict.fromkeys(re.findall(r"env:(\w+)", block), "a-secret-of-some-length"), profiles=PROFILES
    )
    assert config.backends
    (kind,) = re.findall('"(.+)"', title)
    named = {table.get("kind", "openai") for table in tomllib.loads(block)["backends"]}
    assert kind in named or "dialect" in block, "it shows what its section is about"
