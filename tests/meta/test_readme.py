"""What the README and the page of the aggregator show works: their Python runs, their links lead somewhere."""

from __future__ import annotations

import re

import pytest

from tests.meta.repository import ROOT, text_of

BLOCK = re.compile(r"(?m)^```python\n(.*?)^```", re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)|(?:src|srcset)=\"(?!https?:)([^\"]+)\"")
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/aggregator.md",
    "docs/configuration.md",
    "docs/glossary.md",
    "docs/library.md",
)


@pytest.mark.parametrize("name", ["README.md", "docs/aggregator.md"])
def test_the_python_of_a_page_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = BLOCK.findall(text_of(name))
    assert blocks
    scope: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, name, "exec"), scope)
    # A comment after a print says what it prints.
    expected = re.findall(r"(?m)^print\(.*\)  # (.+)$", "\n".join(blocks))
    assert capsys.readouterr().out.splitlines() == expected


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name: str) -> None:
    here = (ROOT / name).parent
    links = {first or second for first, second in LINK.findall(text_of(name))}
    assert not [link for link in links if not (here / link).exists()]
