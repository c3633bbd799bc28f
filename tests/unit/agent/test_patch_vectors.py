"""Patches as folders: `input/`, `patch.txt`, and `expected/` or a part of the error in `error.txt`.

    tests/vectors/patches/NNN_name/

The data is for any language; a folder that is missing is empty.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from callwright.agent.changes.patch import apply_patch
from callwright.errors import ToolError

CASES = sorted((Path(__file__).parents[2] / "vectors" / "patches").iterdir())


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_patch_gives_the_expected_tree_or_error(case: Path) -> None:
    files, patch = tree(case / "input"), (case / "patch.txt").read_bytes().decode()
    if (error := case / "error.txt").exists():
        with pytest.raises(ToolError) as raised:
            apply_patch(patch, files.get)
        assert error.read_text().strip() in str(raised.value)
        return
    changes = apply_patch(patch, files.get)
    assert all(files.get(change.path) == change.before for change in changes)
    made = {**files, **{change.path: change.after for change in changes}}
    assert {path: data for path, data in made.items() if data is not None} == tree(case / "expected")


def test_the_cases_are_numbered_without_gaps_and_say_one_thing() -> None:
    assert [case.name[:4] for case in CASES] == [f"{number:03}_" for number in range(1, len(CASES) + 1)]
    assert all((case / "error.txt").exists() != (case / "expected").exists() for case in CASES)
    assert all((case / "error.txt").exists() == ("_error_" in case.name) for case in CASES)
