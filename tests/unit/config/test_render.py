"""What is written about settings, as TOML, changes and documents: it can be read again and has no secret in it."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.backends.settings import BackendSettings
from callwright.config import Config, describe_changes, load_config, mask_config, read_config
from callwright.config.describe import build_json_schema, list_key_docs, render_markdown
from callwright.config.render import render_effective_config, render_example_config, render_starter_config, render_toml
from callwright.config.settings import TABLES
from callwright.engine.settings import ModelSettings, ToolRules
from callwright.gateway.settings import KeySettings, ServerSettings
from callwright.store.settings import StoreSettings

ROOT = Path(__file__).resolve().parents[3]
SECRETS = {"TEAM_KEY": "t", "UPSTREAM_KEY": "u"}

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PLAIN = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
ANY = PLAIN | st.dates() | st.just(float("inf")) | st.just(2**80)
KEYS = sorted({field for kind in TABLES.values() for field in kind.settings.__struct_fields__})
TREES = st.dictionaries(
    st.sampled_from([*TABLES, "port", "sever"]),
    st.dictionaries(st.sampled_from(KEYS), ANY, max_size=4)
    | st.lists(st.dictionaries(st.sampled_from(KEYS), ANY))
    | ANY,
)
NAMES = st.text("abc", min_size=1, max_size=3)
CONFIGS = st.builds(
    Config,
    server=st.builds(
        ServerSettings,
        port=st.integers(0, 65535),
        debug=st.booleans(),
        origins=st.lists(WORDS, max_size=2).map(tuple),
    ),
    backends=st.lists(
        st.builds(
            BackendSettings,
            name=NAMES,
            url=st.just("https://me:s3cret@h/v1"),
            key=st.sampled_from(["", "s3cret", "env:SET"]),
            headers=st.dictionaries(WORDS, st.sampled_from(["s3cret", "env:SET"]), max_size=2),
            retries=st.integers(0, 5),
        ),
        min_size=1,
        max_size=3,
        unique_by=lambda each: each.name,
    ).map(tuple),
    keys=st.lists(st.builds(KeySettings, name=NAMES, key=st.just("s3cret")), max_size=1).map(tuple),
    models=st.lists(
        st.builds(
            ModelSettings,
            name=NAMES,
            options=st.dictionaries(WORDS, PLAIN, max_size=2),
            vision=st.none() | st.booleans(),
        ),
        max_size=3,
        unique_by=lambda each: each.name,
    ).map(tuple),
    store=st.builds(
        StoreSettings,
        address=st.sampled_from(["", "postgresql://me:s3cret@h/db", "env:SET"]),
        journal=st.sampled_from(["off", "full"]),
        days=st.integers(0, 9),
        redact=st.sampled_from([(), (r"\d{4}", "a+")]),
    ),
    tools=st.builds(ToolRules, tool_block_delimiter=WORDS, output_mode=st.sampled_from(["openai-json", "kilo-xml"])),
)


def written_file(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8"))
    return path


def as_file(config: Config) -> str:
    """A configuration with its secrets, in the only other way to write one."""
    lines = []
    for name, kind in TABLES.items():
        found = getattr(config, name)
        for table in found if kind.is_array else [found]:
            lines.append(kind.header)
            lines += [f"{k} = {render_toml(v)}" for k, v in msgspec.to_builtins(table).items() if v is not None]
    return "\n".join(lines)


@given(PLAIN)
def test_law_a_value_comes_back_from_its_toml(value: Any) -> None:
    assert tomllib.loads(f"x = {render_toml(value)}")["x"] == value


@settings(deadline=None)
@given(tree=TREES)
def test_law_any_file_is_loaded_or_refused_in_sentences(tree: dict[str, Any], tmp_path_factory: Any) -> None:
    text = "\n".join(f"{name} = {render_toml(value)}" for name, value in tree.items())
    # Only people write dates; our own writer never has to.
    text = re.sub(
        r"datetime\.date\((\d+), (\d+), (\d+)\)", lambda d: "{:04}-{:02}-{:02}".format(*map(int, d.groups())), text
    )
    tomllib.loads(text)
    loaded = read_config(written_file(tmp_path_factory.getbasetemp() / "any.toml", text), {})
    for mistake in loaded.mistakes:
        assert re.fullmatch(r"[^\n]*any\.toml(:\d+)?: .+; .+", str(mistake), re.DOTALL), mistake


@settings(deadline=None)
@given(config=CONFIGS)
def test_law_what_is_shown_is_what_holds_without_secrets(config: Config, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.getbasetemp()
    loaded = read_config(written_file(folder / "a.toml", as_file(config)), {"SET": "sqlite:///s3cret"})
    assert not loaded.mistakes
    assert loaded.unresolved_config == config
    shown = render_effective_config(loaded.unresolved_config, loaded.tables)
    assert "s3cret" not in shown
    assert read_config(written_file(folder / "b.toml", shown), {"SET": "sqlite:///x"}).unresolved_config == mask_config(
        config
    )


@given(CONFIGS, CONFIGS)
def test_law_changes_tell_every_difference_and_no_secret(old: Config, new: Config) -> None:
    told = describe_changes(old, new)
    assert bool(told) == (old != new)
    assert "s3cret" not in "".join(told)
    assert len(set(told)) == len(told)


def test_changes_are_sentences() -> None:
    def backend(name: str, **options: Any) -> BackendSettings:
        return BackendSettings(name=name, url="http://h/v1", **options)

    old = Config(backends=(backend("a", key="one"), backend("b"), backend("gone")))
    new = Config(
        server=ServerSettings(port=1, choices=2),
        backends=(backend("new"), backend("b", retries=9), backend("a", key="two")),
        tools=ToolRules(max_retries=0),
    )
    assert describe_changes(old, new) == (
        "[server] port changed from 8787 to 1; restart the server to apply it",
        "[server] choices changed from 8 to 2",
        '[[backends]] "gone" was removed',
        '[[backends]] "new" was added',
        '[[backends]] "b" retries changed from 2 to 9',
        '[[backends]] "a" key changed',
        "[[backends]] tables were reordered",
        "[tools] max_retries changed from 2 to 0",
    )


def test_a_key_is_not_in_its_repr() -> None:
    assert "s3cret" not in repr(Config(keys=(KeySettings(name="a", key="s3cret"),)))


def test_the_example_loads_and_sets_what_it_shows() -> None:
    config = load_config(ROOT / "callwright.example.toml", SECRETS)
    assert [key.key for key in config.keys] == ["t"]
    assert [backend.key for backend in config.backends] == ["u"]
    assert [model.name for model in config.models] == ["coder"]
    assert config.server == ServerSettings()
    assert config.tools == ToolRules()


def test_the_example_has_every_key_of_every_table_at_its_default(tmp_path: Path) -> None:
    text = (ROOT / "callwright.example.toml").read_text(encoding="utf-8")
    live = re.sub(r"(?m)^#(?=[a-z_]+ = )", "", text)
    data = tomllib.loads(live)
    for name, kind in TABLES.items():
        table = data[name][0] if kind.is_array else data[name]
        assert set(table) == set(kind.settings.__struct_fields__), name
    loaded = load_config(written_file(tmp_path / "live.toml", live), SECRETS)
    assert (
        msgspec.structs.replace(loaded.models[0], vision=None)
        == load_config(ROOT / "callwright.example.toml", SECRETS).models[0]
    )


def test_the_example_is_current_and_names_its_schema() -> None:
    text = (ROOT / "callwright.example.toml").read_text(encoding="utf-8")
    assert text == render_example_config(), "out of date: make readme"
    named = re.match(r"#:schema (\S+)\n", text)
    assert named
    assert (ROOT / named[1]).is_file()


def test_the_schema_is_current() -> None:
    stored = json.loads((ROOT / "docs" / "callwright.schema.json").read_text(encoding="utf-8"))
    assert stored == json.loads(json.dumps(build_json_schema())), "out of date: make readme"


def test_the_tables_of_the_document_are_current() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- settings:begin -->\n(.*)<!-- settings:end -->", text, re.DOTALL)
    assert found
    assert found[1].strip() == render_markdown().strip(), "out of date: make readme"


def test_the_toml_of_the_document_loads(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    for block in re.findall(r"(?m)^```toml\n(.*?)^```", text, re.DOTALL):
        assert not read_config(written_file(tmp_path / "x.toml", block), {"CLOUD_KEY": "x"}).mistakes


@pytest.mark.parametrize("kind", TABLES.values(), ids=lambda kind: kind.name)
def test_every_key_says_what_it_is_for(kind: Any) -> None:
    assert not [key.name for key in list_key_docs(kind.settings) if not key.meaning.endswith(".")]


def test_the_schema_refuses_what_the_loader_refuses() -> None:
    definitions = build_json_schema()["$defs"]
    assert build_json_schema()["additionalProperties"] is False
    assert all(each["additionalProperties"] is False for each in definitions.values())
    assert definitions["ServerSettings"]["properties"]["port"]["maximum"] == 65535
    assert definitions["ModelSettings"]["properties"]["rules"]["$ref"] == "#/$defs/ToolRules"
    assert definitions["KeySettings"]["required"] == ["name", "key"]


@pytest.mark.parametrize("found", [(), (BackendSettings(name="ollama", kind="ollama", url="http://127.0.0.1:11434"),)])
def test_a_starting_file_loads_without_an_environment(found: tuple[BackendSettings, ...], tmp_path: Path) -> None:
    models = tuple(ModelSettings(name=name, backend="ollama") for name in ("a", "b") if found)
    config = load_config(written_file(tmp_path / "s.toml", render_starter_config(found, models)), {})
    assert config.backends == (found or config.backends)
    assert len(config.backends) == 1
    assert [model.name for model in config.models] == (["a", "b"] if found else ["coder"])
    assert render_starter_config(found, models).count("# The name that clients use.") == 1
