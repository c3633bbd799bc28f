"""Registry, vectors and README agree: a dialect is not there until all three have it."""

from __future__ import annotations

import importlib
import json
import re
from typing import Any

from tests.meta.repository import VECTORS, text_of

VECTORS_EACH = 10
BY_HAND_EACH = 3
TABLE = re.compile(r"<!-- dialects:begin -->\n(.*?)<!-- dialects:end -->", re.DOTALL)


def registered() -> set[str]:
    """Every id of the registry, and `auto`."""
    return set(importlib.import_module("callwright.dialects").REGISTRY) | {"auto"}


def readme_table() -> str:
    found = TABLE.search(text_of("README.md"))
    assert found, "README.md has lost the markers around the table of dialects"
    return found[1].strip()


def vectors(name: str) -> list[dict[str, Any]]:
    lines = (VECTORS / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]


def test_every_dialect_has_vectors_and_every_vector_file_a_dialect() -> None:
    files = {path.name.removesuffix(".jsonl") for path in VECTORS.glob("*.jsonl")}
    assert files == registered()


def test_every_dialect_has_enough_vectors() -> None:
    counts = {name: len(vectors(name)) for name in sorted(registered()) if (VECTORS / f"{name}.jsonl").is_file()}
    assert counts, f"no vectors under {VECTORS}"
    assert not {name: count for name, count in counts.items() if count < VECTORS_EACH}


def test_every_dialect_has_vectors_written_by_hand() -> None:
    by_hand = {
        name: sum(vector.get("hand") is True for vector in vectors(name))
        for name in sorted(registered())
        if (VECTORS / f"{name}.jsonl").is_file()
    }
    assert by_hand, f"no vectors under {VECTORS}"
    assert not {name: count for name, count in by_hand.items() if count < BY_HAND_EACH}


def test_a_vector_is_named_once() -> None:
    for path in sorted(VECTORS.glob("*.jsonl")):
        names = [vector["id"] for vector in vectors(path.name.removesuffix(".jsonl"))]
        assert len(names) == len(set(names)), path.name


def test_the_readme_lists_every_dialect() -> None:
    rows = [line for line in readme_table().split("\n") if line.startswith("|")]
    listed = [found[1] for row in rows if (found := re.match(r"\|\s*`([a-z0-9_]+)`", row))]
    assert len(listed) == len(set(listed))
    assert {*listed, "auto"} == registered()


def test_the_readme_table_is_current() -> None:
    table = importlib.import_module("callwright.cli.dialects").render_markdown_table()
    assert readme_table() == table.strip(), "out of date: make readme"
