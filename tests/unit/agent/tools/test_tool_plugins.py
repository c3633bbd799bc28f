"""Tools of other packages, as installed ones: a folder with metadata on the path."""

from __future__ import annotations

import asyncio
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from callwright.agent.tools import BUILTIN_TOOLS, load_plugins
from callwright.agent.tools.base import ExternalTool, ToolContext
from callwright.agent.tools.tool_plugins import ENTRY_POINT_GROUP
from callwright.agent.workspace.workspace import Workspace

NAMES = {tool.spec.name for tool in BUILTIN_TOOLS}
GOOD = """
from callwright.model import ToolSpec

class Weather:
    spec = ToolSpec("weather", "Tell the weather.", {"type": "object", "properties": {}})

    def describe_call(self, arguments):
        return "Weather"

    async def call(self, arguments, context):
        return "sunny"

class Clash(Weather):
    spec = ToolSpec("read_file", "")

class Odd(Weather):
    spec = ToolSpec("no spaces, please", "")

class Reads:
    spec = ToolSpec("reads", "")

    def describe_call(self, arguments):
        return "Reads"

    def list_paths(self, arguments):
        return ()

    async def read(self, arguments, context):
        return "read"

tool, clash, odd, reads, nothing = Weather(), Clash(), Odd(), Reads(), object()
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    metadata = tmp_path / "weather_tools-1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: weather-tools\nVersion: 1.2\n")
    monkeypatch.syspath_prepend(tmp_path)
    return metadata


def install(package: Path, name: str, module: str, points: str) -> None:
    (package.parent / f"{name}.py").write_text(module)
    (package / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\n{points}\n")


def test_a_tool_of_another_package_is_found_with_where_it_came_from(package: Path, tmp_path: Path) -> None:
    install(package, "weather_good", GOOD, "weather = weather_good:tool\nreads = weather_good:reads")
    plugins, warnings = load_plugins(NAMES)
    assert warnings == ()
    assert [(plugin.tool.spec.name, plugin.origin) for plugin in plugins] == [
        ("reads", "weather-tools 1.2"),
        ("weather", "weather-tools 1.2"),
    ]
    weather = plugins[1].tool
    assert isinstance(weather, ExternalTool)
    context = ToolContext(workspace=Workspace(tmp_path), report_progress=lambda words: None)
    assert asyncio.run(weather.call({}, context)) == "sunny"


@pytest.mark.parametrize(
    ("name", "module", "point", "why"),
    [
        ("weather_import", "import no_such_module_anywhere", "tool", "ModuleNotFoundError"),
        ("weather_syntax", "def f(:", "tool", "SyntaxError"),
        ("weather_raises", "class Own(Exception): pass\nraise Own('mine')", "tool", "Own: mine"),
        ("weather_exits", "import sys; sys.exit(1)", "tool", "SystemExit"),
        ("weather_lacks", GOOD, "absent", "AttributeError"),
        ("weather_nothing", GOOD, "nothing", "neither a ReadTool nor an ExternalTool"),
        ("weather_class", GOOD, "Weather.spec", "neither a ReadTool nor an ExternalTool"),
        ("weather_clash", GOOD, "clash", "read_file is a built-in tool"),
        ("weather_odd", GOOD, "odd", "no name of at most 64"),
    ],
)
def test_a_broken_one_is_a_warning_and_never_a_crash(
    package: Path, name: str, module: str, point: str, why: str
) -> None:
    install(package, name, module, f"bad = {name}:{point}")
    plugins, (warning,) = load_plugins(NAMES)
    assert plugins == ()
    assert "'bad' of weather-tools 1.2 was skipped: " in warning
    assert why in warning


def test_of_two_with_one_name_the_second_is_refused(package: Path) -> None:
    install(package, "weather_twice", GOOD, "a = weather_twice:tool\nb = weather_twice:tool")
    plugins, (warning,) = load_plugins(NAMES)
    assert len(plugins) == 1
    assert "weather is already defined by weather-tools 1.2" in warning


def test_without_such_packages_there_is_nothing_and_no_warning() -> None:
    assert not entry_points(group=ENTRY_POINT_GROUP)
    assert load_plugins(NAMES) == ((), ())
