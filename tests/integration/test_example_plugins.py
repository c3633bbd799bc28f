"""The packages of examples/plugins, installed as a person would, and used by real commands."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = sorted((ROOT / "examples" / "plugins").iterdir())
CALL = 'Sure.<|acme_call|>{"name": "f", "arguments": {"x": 1}}<|/acme_call|>'
CONFIG = """
[[backends]]
name = "echo"
kind = "plugin"
plugin = "acme"
plugin_options = { prefix = "You said: " }
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all four packages, built and installed by pip without any network."""
    base = tmp_path_factory.mktemp("plugins")
    sources = [shutil.copytree(package, base / package.name) for package in PACKAGES]
    target = base / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--target", str(target), *map(str, sources)], check=True, capture_output=True)
    return target


def run(installed: Path, *words: str, text: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(installed), str(ROOT / "src")])
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "200"}
    command = [sys.executable, "-m", "callwright", *words]
    return subprocess.run(command, input=text, env=environment, cwd=cwd, capture_output=True, text=True, check=False)


def test_all_four_are_listed(installed: Path) -> None:
    done = run(installed, "plugins", "--json")
    assert done.returncode == 0, done.stderr
    listed = {(plugin["group"], plugin["name"]) for plugin in json.loads(done.stdout)["plugins"]}
    assert listed == {
        ("callwright.dialects", "acme"),
        ("callwright.backends", "acme"),
        ("callwright.profiles", "acme_notes"),
        ("callwright.tools", "word_count"),
    }


def test_the_dialect_reads_calls(installed: Path) -> None:
    done = run(installed, "parse", "--dialect", "acme", "--json", text=CALL)
    assert done.returncode == 0, done.stderr
    assert '"x": 1' in done.stdout.replace('\\"', '"')
    assert '"acme"' in run(installed, "dialects", "--json").stdout


def test_the_backend_serves_a_model(installed: Path, tmp_path: Path) -> None:
    config = tmp_path / "callwright.toml"
    config.write_text(CONFIG)
    done = run(installed, "models", "--config", str(config), "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [row["name"] for row in json.loads(done.stdout)] == ["acme-echo"]


def test_a_backend_that_is_not_installed_is_a_mistake_with_its_line(tmp_path: Path) -> None:
    config = tmp_path / "callwright.toml"
    config.write_text(CONFIG)
    done = run(tmp_path, "config", "check", str(config), cwd=tmp_path)
    assert done.returncode != 0
    assert "no installed package has a backend of that name" in done.stdout + done.stderr


def test_a_broken_package_is_named_and_the_others_work(installed: Path, tmp_path: Path) -> None:
    site = shutil.copytree(installed, tmp_path / "site")
    (site / "callwright_acme_profile.py").write_text("raise RuntimeError('broken on purpose')\n")
    done = run(site, "plugins")
    assert done.returncode == 1
    assert "the profile 'acme_notes' of callwright-acme-profile 0.1.0 was skipped" in done.stdout
    assert "RuntimeError: broken on purpose" in done.stdout
    assert "word_count" in done.stdout
