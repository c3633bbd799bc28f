"""Where models come from: the command line, the configuration, this machine, or the demo."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.backends.settings import BackendSettings
from callwright.cli import startup as starting
from callwright.cli.config import add_config_flags
from callwright.cli.discovery import ModelServer
from callwright.cli.startup import ConfigLoader, add_model_options, build_config_loader, build_config_tables
from callwright.errors import BackendError, ConfigError
from tests.integration.cli.gateway import KEY, gateway, pages, serving

OLLAMA = ModelServer(label="Ollama", kind="ollama", url="http://127.0.0.1:11434", models=("a", "b"))
VLLM = ModelServer(label="vLLM", kind="openai", url="http://127.0.0.1:8000/v1", models=("b",))
LISTING = {"object": "list", "data": [{"id": "q", "object": "model", "owned_by": "vllm"}]}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without a configuration and without model servers."""
    monkeypatch.chdir(tmp_path)
    for name in ("CALLWRIGHT_CONFIG", "CALLWRIGHT_API_KEY", "CALLWRIGHT_HOST", "CALLWRIGHT_PORT", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    find(monkeypatch)
    return tmp_path


def find(monkeypatch: pytest.MonkeyPatch, *found: ModelServer) -> None:
    async def discover() -> list[ModelServer]:
        return list(found)

    monkeypatch.setattr(starting, "discover_servers", discover)


def began(*words: str) -> ConfigLoader:
    parser = argparse.ArgumentParser()
    add_model_options(parser)
    add_config_flags(parser)
    return build_config_loader(parser.parse_args(words))


def backends(found: ConfigLoader) -> Sequence[BackendSettings]:
    return found.load().backends


def test_what_this_machine_has_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    find(monkeypatch, OLLAMA, VLLM)
    found = began("--port", "9000")
    assert [(each.name, each.kind, each.url) for each in backends(found)] == [
        ("ollama", "ollama", OLLAMA.url),
        ("vllm", "openai", VLLM.url),
    ]
    assert not found.load().models, "all that they have, also what they get later"
    assert found.load().server.port == 9000
    assert not found.stand_in


@pytest.mark.parametrize("found", [(), (ModelServer(label="Ollama", kind="ollama", url="http://x", models=()),)])
@pytest.mark.parametrize(("local", "expected"), [(True, ("embedded", "embedded")), (False, ("demo", "scripted"))])
def test_without_a_model_there_is_the_embedded_one_if_installed_or_the_demo(
    monkeypatch: pytest.MonkeyPatch, found: tuple[ModelServer, ...], local: bool, expected: tuple[str, str]
) -> None:
    find(monkeypatch, *found)
    monkeypatch.setattr(starting, "is_embedded_available", lambda: local)
    result = began()
    assert [(each.name, each.kind) for each in backends(result)] == [expected]
    assert result.stand_in == expected[0]
    assert result.servers == found


def test_a_configuration_with_backends_is_all_there_is(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find(monkeypatch, OLLAMA)
    (here / "callwright.toml").write_text('[[backends]]\nname = "mine"\nurl = "http://127.0.0.1:1/v1"\n')
    found = began()
    assert [each.name for each in backends(found)] == ["mine"]
    assert found.path == Path("callwright.toml")


def test_a_backend_of_the_command_line_comes_first(here: Path) -> None:
    (here / "callwright.toml").write_text(
        '[[backends]]\nname = "mine"\nurl = "http://127.0.0.1:1/v1"\n[[models]]\nname = "m"\nbackend = "mine"\n'
    )
    with serving(pages({"/v1/models": LISTING})) as url:
        config = began("--backend", url.removeprefix("http://")).load()
    assert [(each.name, each.url) for each in config.backends] == [
        ("vllm", f"{url}/v1"),
        ("mine", "http://127.0.0.1:1/v1"),
    ]
    assert {(each.name, each.backend) for each in config.models} == {("q", "vllm"), ("m", "mine")}


def test_its_kind_model_and_dialect_can_be_told() -> None:
    with serving(pages({"/v1/models": LISTING})) as url:
        config = began("--backend", f"{url}/v1", "--kind", "ollama", "--model", "x", "--dialect", "hermes").load()
    assert [(each.kind, each.url) for each in config.backends] == [("ollama", url)]
    assert [(each.name, each.dialect) for each in config.models] == [("x", "hermes")]


def test_a_server_that_lists_nothing_is_used_when_a_model_is_named() -> None:
    with serving(pages({"/v1/models": 500})) as url:
        config = began("--backend", url, "--model", "x").load()
        assert [(each.kind, each.url) for each in config.backends] == [("openai", f"{url}/v1")]
        assert [each.model for each in config.models] == ["x"]
        with pytest.raises(BackendError, match="--model"):
            began("--backend", url)


def test_its_key_may_come_from_a_variable_and_is_kept_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    app = gateway(lambda _path, _stream, body: body.replace(b"callwright", b"vllm"), key=KEY)
    with serving(app) as url:
        found = began("--backend", url, "--backend-key", "env:MY_KEY")
    assert found.flags["backends"][0]["key"] == "env:MY_KEY"
    assert backends(found)[0].key == KEY


MISTAKES: list[tuple[list[str], str]] = [
    (["--dialect", "hermes"], "--dialect needs --backend URL"),
    (["--host", "0.0.0.0"], "key"),
    (["--backend", "http://127.0.0.1:9"], "is the server running"),
    (["--backend", "http://127.0.0.1:9", "--model", "x"], "is the server running"),
]


@pytest.mark.parametrize(("words", "sentence"), MISTAKES)
def test_what_cannot_work_is_told(words: list[str], sentence: str) -> None:
    with pytest.raises((ConfigError, BackendError), match=sentence):
        began(*words)


def test_a_dialect_that_is_none_is_told() -> None:
    with (
        serving(pages({"/v1/models": LISTING})) as url,
        pytest.raises(ConfigError, match="hermes"),
    ):
        began("--backend", url, "--dialect", "herms").load()


def test_a_server_without_models_is_told() -> None:
    with (
        serving(pages({"/v1/models": {"data": []}})) as url,
        pytest.raises(BackendError, match="has no models; load one"),
    ):
        began("--backend", url)


servers = st.lists(
    st.builds(
        ModelServer,
        label=st.sampled_from(["Ollama", "vLLM", "LM Studio", "OpenAI-compatible server"]),
        kind=st.just("openai"),
        url=st.just("http://x/v1"),
        models=st.lists(st.sampled_from(["a", "b", "c/d"]), unique=True).map(tuple),
    ),
    max_size=4,
)


@given(servers)
def test_every_model_of_every_server_can_be_asked_for_by_a_name_of_its_own(found: list[ModelServer]) -> None:
    made: dict[str, Any] = build_config_tables(found, dialect="auto")
    names = [each["name"] for each in made["backends"]]
    assert len(set(names)) == len(names) == len(found)
    public = [each["name"] for each in made["models"]]
    assert len(set(public)) == len(public) == sum(len(each.models) for each in found)
    assert all(each["backend"] in names for each in made["models"])
