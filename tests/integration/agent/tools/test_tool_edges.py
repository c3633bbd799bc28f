"""What no case can be written down for: links, time, and the whole of a table."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from callwright.agent.tools import list_files, search_workspace
from callwright.agent.tools.base import ToolContext
from callwright.agent.workspace.workspace import Workspace

if TYPE_CHECKING:
    import pytest


def room(root: Path) -> ToolContext:
    return ToolContext(workspace=Workspace(root), report_progress=lambda words: None)


def test_a_link_that_leads_out_is_listed_as_such_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "nowhere").symlink_to("nothing")
    listed = asyncio.run(list_files.tool.read({"depth": 5}, room(root)))
    assert "out (a broken link, a link out of the workspace, or a device)" in listed
    assert "secret" not in listed
    found = asyncio.run(search_workspace.tool.read({"query": "secret"}, room(root)))
    assert found.startswith("No line has the text 'secret'; 0 files searched.")


def test_an_empty_folder_is_listed(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert asyncio.run(list_files.tool.read({}, room(tmp_path))) == "0 files in the workspace:\nempty/ (empty)"


def test_a_search_that_takes_too_long_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    monkeypatch.setattr(search_workspace, "_TIMEOUT_S", -1.0)
    said = asyncio.run(search_workspace.tool.read({"query": "x"}, room(tmp_path)))
    assert "the search was stopped after" in said
