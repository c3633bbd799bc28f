"""The files around the code: no trace of one machine, pinned requirements, documents that keep their form."""

from __future__ import annotations

import re

import pytest

from tests.meta.repository import ROOT, committed_files, project, text_of

# Written in pieces, so that this file does not hold what it looks for.
REGISTRY_HOSTS = (
    *("pypi" + ".org", "pypi.python" + ".org", "python" + "hosted", "npm" + "js.", "debian" + ".org/"),
    "index" + "-url",  # what an address would stand behind
)
MACHINE_PATHS = ("work", "root", "opt/pypi")
MACHINE_PATH = re.compile(r"(?<![\w./<-])/(?:" + "|".join(MACHINE_PATHS) + r")/")
INDEX_OPTION = re.compile(r"(?m)^\s*(?:-i|--(?:extra-)?index" + r"-url|--find-links|-f|--trusted-host)\b")
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
PIN = re.compile(r"(?m)^([a-z0-9][a-z0-9._-]*)==([^\s;]+)(.*)$")


def committed_text() -> dict[str, str]:
    texts = {}
    for path in committed_files():
        raw = path.read_bytes()
        if b"\0" not in raw:
            texts[path.relative_to(ROOT).as_posix()] = raw.decode("utf-8")
    return texts


def pins(name: str) -> dict[str, str]:
    return {found[1]: found[2] for found in PIN.finditer(text_of(f"requirements/{name}.txt"))}


def targets() -> set[str]:
    return set(re.findall(r"(?m)^([a-z][a-z-]*):", text_of("Makefile")))


def test_no_file_names_a_package_registry() -> None:
    hits = {name: host for name, text in committed_text().items() for host in REGISTRY_HOSTS if host in text}
    assert not hits


def test_no_file_names_a_path_of_one_machine() -> None:
    hits = {
        f"{name}:{text.count(chr(10), 0, found.start()) + 1}"
        for name, text in committed_text().items()
        if (found := MACHINE_PATH.search(text))
    }
    assert not hits


@pytest.mark.parametrize("name", ["base", "dev", "bench", "local"])
def test_requirements_are_pinned_with_hashes_and_name_no_index(name: str) -> None:
    text = text_of(f"requirements/{name}.txt")
    entries = [line for line in text.split("\n") if line and not line.startswith((" ", "#"))]
    assert entries
    assert not [line for line in entries if not PIN.match(line)]
    assert not [found[1] for found in PIN.finditer(text) if "--hash=" not in text[found.end() : found.end() + 40]]
    assert not INDEX_OPTION.search(text)


def test_the_requirements_agree() -> None:
    base, dev, bench = pins("base"), pins("dev"), pins("bench")
    assert base.items() <= dev.items()
    assert not [name for name in dev.keys() & bench.keys() if dev[name] != bench[name]]


def test_every_dependency_has_a_decision() -> None:
    decided = " ".join(path.read_text(encoding="utf-8") for path in DECISIONS).lower()
    names = [re.split(r"[<>=!~\[; ]", entry)[0].lower() for entry in project()["project"]["dependencies"]]
    assert not [name for name in names if not re.search(rf"\b{re.escape(name)}\b", decided)]


def test_decisions_are_numbered_without_gaps() -> None:
    assert [path.name[:5] for path in DECISIONS] == [f"{number:04}-" for number in range(1, len(DECISIONS) + 1)]


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_says_what_would_change_our_mind(path: object) -> None:
    text = (ROOT / str(path)).read_text(encoding="utf-8")
    headings = re.findall(r"(?m)^## (.+)$", text)
    assert headings == ["Situation", "Decision", "Consequences", "What would change our mind"]


def test_the_changelog_has_room_for_the_next_change() -> None:
    headings = re.findall(r"(?m)^## (.+)$", text_of("CHANGELOG.md"))
    assert headings
    assert headings[0] == "Unreleased"


def test_every_make_target_has_a_line_of_help() -> None:
    explained = set(re.findall(r"(?m)^([a-z][a-z-]*):.*## \S", text_of("Makefile")))
    assert targets() == explained


def test_documents_name_only_make_targets_that_exist() -> None:
    for name in ("README.md", "CONTRIBUTING.md", ".ci/run"):
        asked = set(re.findall(r"(?m)(?:^|`)make ([a-z][a-z-]*)", text_of(name)))
        assert asked, name
        assert asked <= targets(), name


def test_every_script_that_make_runs_exists() -> None:
    scripts = set(re.findall(r"scripts/[a-z_]+\.py", text_of("Makefile")))
    assert not [name for name in sorted(scripts) if not (ROOT / name).is_file()]
