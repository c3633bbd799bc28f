"""Every tool, by the cases in `tests/vectors/tools`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.tool_cases import build, cases, load, outcome, room_for, tree


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.parent.name}/{case.name}")
def test_a_call_does_what_its_case_says(case: Path, tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    build(case, root)
    before = tree(root)
    result = outcome(case, room_for(case, root, tmp_path / "bin"))
    expected = load(case, "result.json")
    holds = {name: text.encode() for name, text in expected.pop("after", {}).items()}
    for name in [name for name in expected if name.endswith("_like")]:
        pattern = expected.pop(name)
        found = result.pop(name.removesuffix("_like"))
        assert re.fullmatch(pattern, found, re.DOTALL), found
    assert result == expected
    after = tree(case / "expected") if (case / "expected").is_dir() else before
    assert tree(root) == {**after, **holds}
