"""Plugins: what other packages bring is registered once; what is broken is named and skipped."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from callwright import Parser, collect, dialect_plugins, dialects, get_dialect
from callwright.backends import _plugin_factories, list_backend_plugins, open_backend
from callwright.backends.settings import BackendSettings
from callwright.dialects.hermes import HERMES
from callwright.dialects.tagged_json import TaggedJson
from callwright.errors import ConfigError, MisuseError
from callwright.gateway import profiles
from callwright.gateway.profiles import ClientEvidence, Profile, choose_profile
from callwright.plugins import load_plugins

ACME = TaggedJson(
    name="acme", shape="J1", models="Acme", source="a test", opens=("<|acme|>",), closes=("<|/acme|>",),
    parsers=("acme_parser",), patterns=("*acme-*",),
)  # fmt: skip
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


class Mute(TaggedJson):
    """Renders nothing that it could read."""

    def render_call(self, *calls: Any) -> str:
        return "nothing"


class Raising(TaggedJson):
    """Fails while it reads."""

    def read_calls(self, *_: Any) -> Any:
        raise SystemExit("gone")


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """Every registry as it was."""
    kept = [
        (where, dict(where))
        for where in (
            dialects._dialects,
            dialects._dialects_by_parser,
            profiles.PROFILES,
            _plugin_factories,
            dialect_plugins._loaded,
        )
    ]
    yield
    for where, content in kept:
        where.clear()
        where.update(content)
    profiles._evidence_index.rebuild(profiles.PROFILES.values())


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("acme_package")
    monkeypatch.setitem(sys.modules, "acme_package", module)
    return module


def point(group: str, attribute: str, name: str = "acme") -> EntryPoint:
    return EntryPoint(name, f"acme_package:{attribute}", f"callwright.{group}")


def test_a_dialect_is_found_by_id_parser_and_model_and_heard_by_auto(package: types.ModuleType) -> None:
    package.dialect = ACME
    report = load_plugins([point("dialects", "dialect")])
    assert [plugin.name for plugin in report.plugins] == ["acme"]
    assert not report.warnings
    assert get_dialect("acme") is get_dialect("acme_parser") is get_dialect("acme-large") is ACME
    parser = Parser(get_dialect("auto"), [TOOL])
    turn = collect([*parser.feed('Hi<|acme|>{"name": "f", "arguments": {"a": 1}}<|/acme|>'), *parser.close()])
    assert [call.arguments for call in turn.tool_calls] == ['{"a": 1}']
    assert next(reversed(dialects.REGISTRY)) == "auto"


def test_plugins_are_loaded_once(package: types.ModuleType) -> None:
    package.dialect = ACME
    points = [point("dialects", "dialect")]
    assert load_plugins(points) == load_plugins(points)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (object(), "it is a object, not a Dialect"),
        (HERMES, "'hermes' is taken"),
        (replace(ACME, parsers=("hermes",)), "'hermes' is taken"),
        (replace(ACME, name="No Spaces"), "is not 1 to 40 lower-case letters"),
        (Mute(**vars(ACME)), "it does not read back the call that it renders: 'nothing'"),
        (Raising(**vars(ACME)), "its grammar failed on a call that it rendered: SystemExit: gone"),
    ],
)
def test_a_dialect_that_is_no_use_is_named_and_skipped(package: types.ModuleType, value: object, why: str) -> None:
    package.dialect = value
    before = dict(dialects.REGISTRY)
    report = load_plugins([point("dialects", "dialect")])
    assert not report.plugins
    assert why in report.warnings[0]
    assert report.warnings[0].startswith("the dialect 'acme' of acme_package:dialect was skipped: ")
    assert dict(dialects.REGISTRY) == before


@pytest.mark.parametrize("group", ["dialects", "backends", "profiles"])
def test_a_module_that_cannot_be_imported_is_named_and_skipped(group: str) -> None:
    (warning,) = load_plugins([EntryPoint("x", "no_such_module_here:x", f"callwright.{group}")]).warnings
    assert "ModuleNotFoundError: No module named 'no_such_module_here'" in warning


def test_a_good_plugin_loads_beside_a_broken_one(package: types.ModuleType) -> None:
    package.dialect = ACME
    report = load_plugins(
        [EntryPoint("a", "no_such_module_here:x", "callwright.dialects"), point("dialects", "dialect")]
    )
    assert len(report.plugins) == len(report.warnings) == 1


def test_a_backend_is_opened_by_its_name(package: types.ModuleType) -> None:
    package.factory = lambda settings: settings.plugin_options
    load_plugins([point("backends", "factory")])
    assert list_backend_plugins() == ("acme",)
    settings = BackendSettings(name="b", kind="plugin", plugin="acme", plugin_options={"a": "b"})
    assert open_backend(settings) == {"a": "b"}


def test_a_backend_that_nobody_brings_is_a_clear_error() -> None:
    with pytest.raises(ConfigError, match="there is no backend plugin 'gone'; known: none is installed"):
        open_backend(BackendSettings(name="b", kind="plugin", plugin="gone"))


def test_what_cannot_make_a_backend_is_named(package: types.ModuleType) -> None:
    package.factory = 7
    assert "it is a int, not a function" in load_plugins([point("backends", "factory")]).warnings[0]


def test_a_profile_is_found_by_evidence_before_the_others(package: types.ModuleType) -> None:
    package.profile = Profile(name="acme-notes", description="", user_agents=("acme-cline/",))
    load_plugins([point("profiles", "profile")])
    evidence = ClientEvidence(headers={"user-agent": "acme-cline/1 cline/3"})
    assert choose_profile(evidence)[0].name == "acme-notes"
    assert choose_profile(ClientEvidence(headers={"user-agent": "cline/3"}))[0].name == "cline"


@pytest.mark.parametrize(
    ("value", "why"),
    [(Profile(name="cline", description=""), "the name is taken"), ("x", "it is a str, not a Profile")],
)
def test_a_profile_that_is_no_use_is_named(package: types.ModuleType, value: object, why: str) -> None:
    package.profile = [value]
    assert why in load_plugins([point("profiles", "profile")]).warnings[0]


def test_a_name_that_is_taken_cannot_be_registered_directly() -> None:
    with pytest.raises(MisuseError, match="'hermes' is taken"):
        dialects.register_dialect(HERMES)
