"""Where settings come from, and what is said when they are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from callwright.backends.settings import BackendSettings
from callwright.config import Config, get_state_folder, is_loopback, load_config, mask_config, read_config
from callwright.config.decode import describe_type
from callwright.config.settings import TABLES
from callwright.engine.settings import ModelSettings
from callwright.errors import ConfigError
from callwright.gateway.settings import KeySettings

SMALL = """
[server]
port = 9000
[[keys]]
name = "team"
key = "env:TEAM_KEY"
[[backends]]
name = "local"
url = "http://127.0.0.1:8000/v1"
key = "env:UPSTREAM_KEY"
headers = { X-Org = "env:ORG", X-Plain = "as it is" }
[[models]]
name = "coder"
backend = ["local"]
[models.rules]
tool_block_max = 3
[tools]
stop_after_tools = true
"""
SECRETS = {"TEAM_KEY": "t", "UPSTREAM_KEY": "u", "ORG": "o"}
BACKEND = '[[backends]]\nname = "a"\nurl = "http://h/v1"\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, so that messages have short names."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mistakes(text: str, environ: dict[str, str] | None = None, flags: Any = None, **options: Any) -> list[str]:
    path = Path("c.toml")
    path.write_text(text, encoding="utf-8")
    return [str(mistake) for mistake in read_config(path, environ or {}, flags, **options).mistakes]


def test_nothing_given_is_the_defaults() -> None:
    assert load_config(None, {}) == Config()


def test_a_whole_file() -> None:
    Path("callwright.toml").write_text(SMALL)
    config = load_config(None, SECRETS)
    assert config.server.port == 9000
    assert config.keys == (KeySettings(name="team", key="t"),)
    assert config.backends == (
        BackendSettings(
            name="local", url="http://127.0.0.1:8000/v1", key="u", headers={"X-Org": "o", "X-Plain": "as it is"}
        ),
    )
    assert config.models == (ModelSettings(name="coder", backend=("local",), rules={"tool_block_max": 3}),)
    assert config.tools.stop_after_tools


def test_flags_come_before_the_environment_and_that_before_the_file() -> None:
    Path("callwright.toml").write_text('[server]\nhost = "127.0.0.2"\nport = 1\nchoices = 2\n')
    environ = {"CALLWRIGHT_HOST": "127.0.0.3", "CALLWRIGHT_PORT": "2"}
    loaded = read_config(None, environ, {"server": {"port": "3", "host": None}})
    server = loaded.config.server
    assert (server.choices, server.host, server.port) == (2, "127.0.0.3", 3)
    (table,) = loaded.tables["server"]
    assert [str(table.get_origin(key)) for key in ("choices", "host", "port", "debug")] == [
        "callwright.toml:4",
        "CALLWRIGHT_HOST",
        "--port",
        "default",
    ]


def test_the_file_is_looked_for_in_order(folder: Path) -> None:
    def made(name: str, port: int) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"[server]\nport = {port}\n")
        return path

    home = {"HOME": str(folder / "home")}
    made("home/.config/callwright/config.toml", 1)
    assert load_config(None, home).server.port == 1
    assert load_config(None, {"USERPROFILE": str(folder / "home")}).server.port == 1
    assert load_config(None, {**home, "XDG_CONFIG_HOME": "relative"}).server.port == 1
    made("xdg/callwright/config.toml", 2)
    home["XDG_CONFIG_HOME"] = str(folder / "xdg")
    assert load_config(None, home).server.port == 2
    made("callwright.toml", 3)
    assert load_config(None, home).server.port == 3
    home["CALLWRIGHT_CONFIG"] = str(made("named.toml", 4))
    assert load_config(None, home).server.port == 4
    assert load_config(made("given.toml", 5), home).server.port == 5


@pytest.mark.parametrize("named", [True, False])
def test_a_file_that_is_named_must_exist(named: bool) -> None:
    Path("callwright.toml").write_text("[server]\nport = 3\n")
    path, environ = (Path("gone.toml"), {}) if named else (None, {"CALLWRIGHT_CONFIG": "gone.toml"})
    with pytest.raises(ConfigError, match=r"^gone\.toml: cannot be read: no such file .* config init gone\.toml$"):
        load_config(path, environ)


@pytest.mark.parametrize(
    ("variable", "value", "table", "key", "expected"),
    [
        ("CALLWRIGHT_HOST", "::1", "server", "host", "::1"),
        ("CALLWRIGHT_PORT", "80", "server", "port", 80),
        ("CALLWRIGHT_DEBUG", "on", "server", "debug", True),
        ("CALLWRIGHT_DEBUG", "False", "server", "debug", False),
        ("CALLWRIGHT_LOG_LEVEL", "DEBUG", "server", "debug", True),
        ("CALLWRIGHT_JOURNAL", "full", "store", "journal", "full"),
        ("CALLWRIGHT_STORE", "sqlite:///x.db", "store", "address", "sqlite:///x.db"),
        ("PROXY_STOP_AFTER_TOOLS", "1", "tools", "stop_after_tools", True),
        ("PROXY_STOP_AFTER_TOOLS_MODE", "first", "tools", "stop_after_tools_mode", "first"),
        ("PROXY_SUPPRESS_TAIL_AFTER_TOOLS", "YES", "tools", "suppress_tail_after_tools", True),
        ("PROXY_TOOL_BLOCK_MAX", "4", "tools", "tool_block_max", 4),
        ("PROXY_TOOL_BLOCK_DEDUP", "true", "tools", "tool_block_dedup", True),
        ("PROXY_TOOL_BLOCK_DELIMITER", "\n--\n", "tools", "tool_block_delimiter", "\n--\n"),
        ("PROXY_TOOL_BLOCK_DELIMITER", "1", "tools", "tool_block_delimiter", "1"),
        ("PROXY_ENABLE_PARALLEL_TOOL_CALLS", "off", "tools", "enable_parallel_tool_calls", False),
        ("PROXY_OUTPUT_MODE", "kilo-xml", "tools", "output_mode", "kilo-xml"),
    ],
)
def test_a_variable_sets_its_key(variable: str, value: str, table: str, key: str, expected: object) -> None:
    assert getattr(getattr(load_config(None, {variable: value}), table), key) == expected
    assert load_config(None, {variable: ""}) == Config()


@pytest.mark.parametrize(
    ("variable", "value", "remedy"),
    [
        ("CALLWRIGHT_PORT", "http", "it must be a whole number from 0 to 65535"),
        ("CALLWRIGHT_PORT", "65536", "it must be a whole number from 0 to 65535"),
        ("CALLWRIGHT_DEBUG", "maybe", "it must be true or false"),
        ("CALLWRIGHT_LOG_LEVEL", "warning", 'it must be "debug" or "info"'),
        ("CALLWRIGHT_JOURNAL", "ful", 'it must be "off", "meta" or "full"; did you mean "full"?'),
        ("PROXY_TOOL_BLOCK_MAX", "-1", "it must be a whole number of at least 0"),
        ("PROXY_STOP_AFTER_TOOLS_MODE", "brust", 'it must be "first" or "burst"; did you mean "burst"?'),
    ],
)
def test_a_bad_variable_is_named(variable: str, value: str, remedy: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(None, {variable: value})
    assert caught.value.mistakes == (f'{variable} is "{value}"; {remedy}',)


def test_the_debug_switch_comes_before_the_log_level() -> None:
    environ = {"CALLWRIGHT_LOG_LEVEL": "debug", "CALLWRIGHT_DEBUG": "0"}
    assert not load_config(None, environ).server.debug


def test_an_address_of_the_store_may_be_in_a_variable_and_is_not_shown() -> None:
    Path("callwright.toml").write_text("[store]\naddress = 'env:DATABASE'\n")
    loaded = read_config(None, {"DATABASE": "postgresql://me:s3cret@h/d"})
    assert loaded.config.store.secrets == ("s3cret",)
    assert mask_config(loaded.unresolved_config).store.address == "env:DATABASE"
    assert mask_config(loaded.config).store.address == "postgresql://***@h/d"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/callwright"),
        ({"XDG_STATE_HOME": "s", "HOME": "/h"}, "/h/.local/state/callwright"),
        ({"USERPROFILE": "/u"}, "/u/.local/state/callwright"),
        ({}, "callwright"),
    ],
)
def test_state_is_kept_where_the_machine_wants_it(environ: dict[str, str], expected: str) -> None:
    assert get_state_folder(environ) == Path(expected)


def test_the_key_of_the_environment_is_one_more() -> None:
    Path("callwright.toml").write_text(SMALL)
    keys = load_config(None, {**SECRETS, "CALLWRIGHT_API_KEY": "k"}).keys
    assert {key.name: key.key for key in keys} == {"environment": "k", "team": "t"}


def test_a_backend_of_the_command_line_is_the_first_or_changes_the_one_of_its_name() -> None:
    Path("callwright.toml").write_text(f"{BACKEND}retries = 7\n")
    flags = {"backends": [{"name": "b", "url": "http://b/v1"}, {"name": "a", "url": "http://a/v1"}]}
    first, second = load_config(None, {}, flags).backends
    assert (first.name, second.name, second.url, second.retries) == ("b", "a", "http://a/v1", 7)


def test_a_mistake_of_the_command_line_names_the_flag() -> None:
    flags = {"server": {"port": "x"}, "store": {"journal": "all"}, "backends": [{"name": "b", "url": "b"}]}
    assert mistakes("", flags=flags) == [
        '--port is "x"; it must be a whole number from 0 to 65535',
        '--journal is "all"; it must be "off", "meta" or "full"',
        "the url of --backend is not a server URL; it must look like http://127.0.0.1:8000/v1",
    ]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("[server]\nprot = 1", '2: [server] has no key "prot"; did you mean "port"?'),
        (
            "[server]\nheartbeat-seconds = 1",
            '2: [server] has no key "heartbeat-seconds"; did you mean "heartbeat_seconds"?',
        ),
        ("[server]\ndialect = 'x'", '2: [server] has no key "dialect"; it belongs under [[models]]'),
        ("port = 1", '1: unknown table or key "port"; it belongs under [server]'),
        ("\n[sever]", '2: unknown table or key "sever"; did you mean [server]?'),
        ("[x]", '1: unknown table or key "x"; known tables: [server], [[keys]], [[back'),
        (
            "[backends]\nname = 'a'",
            '1: "backends" must be an array of tables; write [[backends]] before each of them',
        ),
        (
            "[[server]]",
            '1: "server" must be a table; write [server] once',
        ),
        ("keys = [1]", '1: "keys" must be an array of tables; write [[keys]] before each of them'),
        (
            "server = 1",
            '1: "server" must be a table; write [server] once',
        ),
        ("[server]\nport = 65536", "2: [server] port is 65536; it must be a whole number from 0 to 65535"),
        ("[server]\nport = '80'", '2: [server] port is "80"; it must be a whole number from 0 to 65535'),
        ("[server]\nport = true", "2: [server] port is true; it must be a whole number from 0 to 65535"),
        ("server.port = -1", "1: [server] port is -1; it must be a whole number from 0 to 65535"),
        ("[server]\nhost = ''", '2: [server] host is ""; it must be a non-empty string'),
        ("[server]\norigins = 'x'", '2: [server] origins is "x"; it must be a list of strings'),
        ("[server]\norigins = [1]", "2: [server] origins is a list; it must be a list of strings"),
        (
            "[server]\nheartbeat_seconds = nan",
            "2: [server] heartbeat_seconds is nan; it must be a number of at least 0",
        ),
        (f"{BACKEND}idle_seconds = 0", '4: [[backends]] "a" idle_seconds is 0; it must be a number above 0'),
        (f"{BACKEND}idle_seconds = inf", '4: [[backends]] "a" idle_seconds is inf; it must be a number above 0'),
        (f"{BACKEND}key = 12", '4: [[backends]] "a" key is a number; it must be a string'),
        (f"{BACKEND}headers = 'Bearer x'", '4: [[backends]] "a" headers is a string; it must be a table of strings'),
        (
            f"{BACKEND}kind = 'olama'",
            '"harmony", "conversation", "codex", "scripted", "embedded" or "plugin"; did you mean "ollama"?',
        ),
        ("[[keys]]\nkey = 'x'", '1: [[keys]] number 1 has no "name"; add name = "…"'),
        ("[[keys]]\nname = 'x'", '1: [[keys]] "x" has no "key"; add key = "…"'),
        ("[[keys]]\nname = 'x'\nkey = ''", '3: [[keys]] "x" key is empty; it must be a non-empty string'),
        (
            f"{BACKEND}[[models]]\nname = 'm'\nrules = 1",
            '6: [[models]] "m" rules is 1; it must be a table of JSON values',
        ),
        (
            f"{BACKEND}[[models]]\nname = 'm'\nvision = 'no'",
            '6: [[models]] "m" vision is "no"; it must be true or false',
        ),
        (
            f"{BACKEND}[[models]]\nname = 'm'\n[models.rules]\nmax_retires = 1",
            '6: [[models]] "m" rules has no key "max_retires"; did you mean "max_retries"?',
        ),
        (
            f"{BACKEND}[[models]]\nname = 'm'\nrules = {{ truncated = 'x' }}",
            '6: [[models]] "m" rules truncated is "x"; it must be "partial", "drop" or "repair"',
        ),
        (
            f"{BACKEND}[[models]]\nname = 'm'\n[models.tool_limits]\nmax_tool = 8",
            '6: [[models]] "m" tool_limits has no key "max_tool"; did you mean "max_tools"?',
        ),
        (
            f"{BACKEND}[[models]]\nname = 'm'\nhistory = {{ roles = 'x' }}",
            '6: [[models]] "m" history roles is "x"; it must be "as-sent" or "strict"',
        ),
        (
            f"{BACKEND}[[models]]\nname = 'm'\n[[jobs]]\nname = 't'\nmodel = 'n'\nkeywords = ['title']",
            '8: [[jobs]] "t" model is "n", but no [[models]] table has that name; known names: m',
        ),
        (
            f"{BACKEND}[[models]]\nname = 'm'\n[[jobs]]\nname = 't'\nmodel = 'm'",
            '6: [[jobs]] "t" keywords is empty and max_tokens is not set, so the rule matches nothing',
        ),
        (
            f"{BACKEND}[[models]]\nname = 'm'\nrules = {{ dialect = 'x' }}",
            '6: [[models]] "m" rules has no key "dialect"; known keys: stop_after_tools, ',
        ),
        (
            f"{BACKEND}[[models]]\nname = 'm'\n[models.options]\nuntil = 2020-01-01",
            '6: [[models]] "m" options is a table; it must be a table of JSON values',
        ),
        ("[server]\nport = x", "2: invalid TOML: invalid value in column 8; put strings in quotes, "),
        ("[server", ": invalid TOML: "),
        (f"[server]\nport = {'1' * 5000}", ": invalid TOML: exceeds the limit"),
        ("[server]\nx", ": invalid TOML: "),
    ],
)
def test_what_a_type_forbids_is_a_sentence(text: str, mistake: str) -> None:
    (found,) = mistakes(text)
    assert found.startswith("c.toml:")
    assert mistake in found


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (
            BACKEND + BACKEND,
            '5: [[backends]] "a" name is "a", which [[backends]] "a" already uses (c.toml:1); choose',
        ),
        (
            f"{BACKEND}[[models]]\nname='m'\n[[models]]\nname='n'\naliases=['m']",
            '8: [[models]] "n" aliases is "m", which',
        ),
        ("[[keys]]\nname='a'\nkey='1'\n[[keys]]\nname='a'\nkey='2'", '5: [[keys]] "a" name is "a", which [[keys]] "a"'),
        (
            "[[keys]]\nname='a'\nkey='s3cret'\n[[keys]]\nname='b'\nkey='s3cret'",
            '6: [[keys]] "b" key is the same secret as that of [[keys]] "a"; use a different one for each key',
        ),
        (
            "[[models]]\nname='m'",
            '1: [[models]] "m" backend cannot be resolved: no backend is configured; add a [[backends]]',
        ),
        (f"{BACKEND}[[models]]\nname='m'\nbackend=[]", '6: [[models]] "m" backend is an empty list; name'),
        (f"{BACKEND}[[models]]\nname='m'\nbackend='A'", 'has that name; did you mean "a"?'),
        (
            f"{BACKEND}[[models]]\nname='m'\nbackend=['a', 'zzz']",
            '6: [[models]] "m" backend is "zzz", but no [[backends]] table has that name; known names: a',
        ),
        (
            f"{BACKEND}[[models]]\nname='m'\ndialect='hermse'",
            'is "hermse", which is not a dialect; did you mean "hermes"?',
        ),
        (f"{BACKEND}[[models]]\nname='m'\ndialect='zzz'", "is not a dialect; callwright dialects lists all dialects"),
        (
            f"{BACKEND}kind = 'harmony'\n[[models]]\nname='m'\ndialect='hermes'",
            'is "hermes", but models of backends with kind "harmony" write Harmony; remove it, or set',
        ),
        (f"{BACKEND}[[models]]\nname='m'\nprofile='copilt'", 'is not a client profile; did you mean "copilot"?'),
        (
            "[server]\nhost='0.0.0.0'",
            "2: [server] host is reachable from other machines, but no key is configured; add a [[keys]]",
        ),
        (
            "[store]\njournal='full'\naddress='s3cret'",
            "3: [store] address is not a database address; use sqlite:///file or",
        ),
        (
            "[store]\naddress='mysql://h/d'",
            "2: [store] address begins with 'mysql', which is not supported; use sqlite or",
        ),
        ("[store]\naddress='sqlite://a/b'", "2: [store] address does not name a database; use sqlite:///file or"),
        ("[store]\naddress='postgresql://h:x/b'", "2: [store] address is not a database address; use"),
        (
            "[store]\naddress='env:NONE'",
            "2: [store] address refers to the environment variable NONE, which is not set; set it",
        ),
        ("[store]\naddress='postgres://h/d?fast=1'", "2: [store] address sets fast; only sslmode, ssl, host, port are"),
        (
            "[store]\nredact=['(']",
            "2: [store] redact has '(', which is not a regular expression; correct it: missing )",
        ),
        ("[store]\nredact=['a*']", "2: [store] redact has 'a*', which matches empty text; match at least one"),
        (f"{BACKEND}script='x.toml'", '4: [[backends]] "a" script is set, but kind is "openai"; set kind ='),
    ],
)
def test_what_does_not_fit_together_is_a_sentence(text: str, mistake: str) -> None:
    (found,) = mistakes(text, profiles={"copilot", "cline"})
    assert mistake in found


@pytest.mark.parametrize(
    ("kind", "url", "what"),
    [
        ("openai", "", "is missing"),
        ("openai", "127.0.0.1:8000", "is not a server URL"),
        ("openai", "localhost:8000/v1", "is not a server URL"),
        ("openai", "ftp://h/v1", "is not a server URL"),
        ("openai", "http:///v1", "is not a server URL"),
        ("openai", "http://h:port/v1", "is not a server URL"),
        ("openai", "http://h:99999/v1", "is not a server URL"),
        ("openai", "http://[::1/v1", "is not a server URL"),
        ("openai", "http://h /v1", "is not a server URL"),
        ("openai", "http://h:8000", "the API of such servers is at http://h:8000/v1"),
        ("completions", "http://h:8000/", "the API of such servers is at http://h:8000/v1"),
        ("openai", "http://h/v1/chat/completions", "remove /chat/completions"),
        ("responses", "http://h/v1/responses/", "remove /responses"),
        ("completions", "http://h/v1/completions", "remove /completions"),
        ("anthropic", "http://h/v1/messages", "remove /messages"),
        ("anthropic", "https://h/v1", 'remove /v1: kind "anthropic" adds /v1 itself'),
        ("ollama", "http://h:11434/v1", 'remove /v1: kind "ollama" adds /api itself'),
        ("ollama", "http://h:11434/api/", 'remove /api: kind "ollama" adds /api itself'),
        ("openai", "http://h/v1?key=s3cret", "has a query or a fragment"),
        ("scripted", "http://h/v1", 'is set, but kind "scripted" has no server'),
        ("codex", "http://h/v1/responses", "remove /responses"),
        ("embedded", "http://h/v1", 'is set, but kind "embedded" has no server'),
        ("conversation", "http://h/api/conversations", "remove /conversations"),
    ],
)
def test_an_address_that_cannot_work_is_refused(kind: str, url: str, what: str) -> None:
    (found,) = mistakes(f'[[backends]]\nname = "b"\nkind = "{kind}"\nurl = "{url}"')
    assert found.startswith('c.toml:4: [[backends]] "b" url ')
    assert what in found
    assert "s3cret" not in found


@pytest.mark.parametrize(
    ("kind", "url"),
    [
        ("openai", "http://127.0.0.1:8000/v1"),
        ("openai", "http://[::1]:8000/v1/"),
        ("openai", "https://api.example.com"),
        ("openai", "https://api.example.com/openai/v1"),
        ("responses", "https://user:pass@api.example.com/v1"),
        ("anthropic", "https://api.example.com"),
        ("anthropic", "http://127.0.0.1:4000/anthropic"),
        ("ollama", "http://127.0.0.1:11434"),
        ("scripted", ""),
        ("embedded", ""),
        ("conversation", "http://127.0.0.1:9000"),
        ("codex", ""),
        ("codex", "http://127.0.0.1:8000/v1"),
    ],
)
def test_an_address_that_can_work_is_taken(kind: str, url: str) -> None:
    assert mistakes(f'[[backends]]\nname = "b"\nkind = "{kind}"\nurl = "{url}"') == []


@pytest.mark.parametrize(
    ("key", "kinds"), [("script", ["scripted"]), ("path", ["embedded", "codex"]), ("home", ["codex"])]
)
def test_a_file_belongs_to_its_kind(key: str, kinds: list[str]) -> None:
    (found,) = mistakes(f'[[backends]]\nname = "b"\nurl = "http://h/v1"\n{key} = "file"')
    remedy = " or ".join(f'kind = "{kind}"' for kind in kinds)
    assert found == f'c.toml:4: [[backends]] "b" {key} is set, but kind is "openai"; set {remedy}'
    for kind in kinds:
        assert mistakes(f'[[backends]]\nname = "b"\nkind = "{kind}"\n{key} = "file"') == []


def test_a_key_of_codex_needs_to_know_whose_it_is() -> None:
    (found,) = mistakes('[[backends]]\nname = "b"\nkind = "codex"\nkey = "k"')
    assert "url is missing; set the URL of the server" in found


BRIDGE = '[[backends]]\nname = "{}"\nkind = "conversation"\n'


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (BRIDGE.format("b"), '"b" key is the token of its web pages and must have at least 16 characters'),
        (
            BRIDGE.format("b") + 'key = "short"',
            '"b" key is the token of its web pages and must have at least 16 characters',
        ),
        (
            BRIDGE.format("b") + 'key = "0123456789abcdef"\norigins = ["chat.example"]',
            "\"b\" origins contains 'chat.example', which is not an origin",
        ),
        (
            BRIDGE.format("b") + 'url = "http://h/api"\norigins = ["https://chat.example"]',
            '"b" origins is set, but no pages connect to this backend',
        ),
    ],
)
def test_a_bridge_needs_a_token_and_origins_that_are_some(text: str, mistake: str) -> None:
    (found,) = mistakes(text)
    assert mistake in found
    assert "short" not in found


def test_two_bridges_have_two_tokens() -> None:
    key = 'key = "0123456789abcdef"\n'
    assert mistakes(BRIDGE.format("a") + key + 'origins = ["https://chat.example", "http://localhost:3000"]') == []
    found = mistakes(BRIDGE.format("a") + key + BRIDGE.format("b") + key)
    assert [each.partition("; ")[0] for each in found] == [
        "c.toml:4: [[backends]] \"a\" key is also the token of 'b'",
        "c.toml:8: [[backends]] \"b\" key is also the token of 'a'",
    ]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"])
def test_loopback_needs_no_key(host: str) -> None:
    assert is_loopback(host)
    assert mistakes(f'[server]\nhost = "{host}"') == []


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.com", "localhost.example.com"])
def test_any_other_address_needs_one(host: str) -> None:
    assert not is_loopback(host)
    assert len(mistakes(f'[server]\nhost = "{host}"')) == 1
    assert mistakes(f'[server]\nhost = "{host}"\n[[keys]]\nname = "a"\nkey = "k"') == []
    assert mistakes(f'[server]\nhost = "{host}"', {"CALLWRIGHT_API_KEY": "k"}) == []


def test_an_open_door_from_a_variable_is_blamed_on_it() -> None:
    (found,) = mistakes("", {"CALLWRIGHT_HOST": "0.0.0.0"})
    assert found.startswith("CALLWRIGHT_HOST is reachable from other machines")


@pytest.mark.parametrize(
    ("value", "environ", "what"),
    [
        (
            "env:TEAM_KEY",
            {},
            "refers to the environment variable TEAM_KEY, which is not set; set it: export TEAM_KEY=…",
        ),
        ("env:TEAM_KEY", {"TEAM_KEY": ""}, "refers to the environment variable TEAM_KEY, which is not set"),
        ("env:", {}, 'is "env:" without a name; write env: and the name of a variable'),
        ("env:TEAM_KEY", {"TEAM_KEY": "s3cret\n"}, "has surrounding whitespace"),
        (
            "$TEAM_KEY",
            {"TEAM_KEY": "s3cret"},
            'refers to a variable in shell syntax; write "env:TEAM_',
        ),
        ("${TEAM_KEY}", {"TEAM_KEY": "s3cret"}, 'write "env:TEAM_KEY"'),
    ],
)
@pytest.mark.parametrize(
    "table",
    [
        '[[keys]]\nname = "x"\nkey = "{}"',
        '[[backends]]\nname = "x"\nkey = "{}"\nurl = "http://h/v1"',
        '[[backends]]\nname = "x"\nheaders = {{ Authorization = "{}" }}\nurl = "http://h/v1"',
    ],
)
def test_a_secret_that_is_not_there_names_variable_and_table(
    table: str, value: str, environ: dict[str, str], what: str
) -> None:
    (found,) = mistakes(table.format(value), environ)
    assert found.startswith("c.toml:3: [[")
    assert what in found
    assert "s3cret" not in found


def test_all_mistakes_are_told_in_the_order_of_the_file() -> None:
    text = f'[server]\nport = -1\nprot = 1\n{BACKEND}key = "env:NOPE"\n[[models]]\nname = "m"\ndialect = "zzz"\n[tolls]'
    found = mistakes(text)
    assert [int(each.split(":")[1]) for each in found] == [2, 3, 7, 10, 11]
    with pytest.raises(ConfigError, match="the configuration has 5 mistakes") as caught:
        load_config(Path("c.toml"), {})
    assert list(caught.value.mistakes) == found


def test_a_misspelt_key_is_not_also_called_missing() -> None:
    assert len(mistakes('[[backends]]\nname = "a"\nulr = "http://h/v1"')) == 1
    assert len(mistakes('[[keys]]\nname = "a"\nkye = "x"')) == 1


def test_a_table_with_a_mistake_can_still_be_named() -> None:
    assert len(mistakes(f'{BACKEND}retries = -1\n[[models]]\nname = "m"\nbackend = "a"')) == 1
    assert len(mistakes('[server]\nhost = "0.0.0.0"\n[[keys]]\nname = "a"\nkey = 1')) == 1


def test_the_same_mistake_in_two_tables_is_two_mistakes() -> None:
    text = "".join(f'[[models]]\nname = "{name}"\nrules = {{ max_retries = -1 }}\n' for name in "mno")
    assert len(mistakes(BACKEND + text)) == 3


def test_lines_are_found_however_tables_are_written() -> None:
    text = """# a comment
[[models]]  # one
name = "m"
"rules".max_retries = -1
[[ models ]]
name = "n"
[models."rules"]
x = 1
"""
    lines = [each.split(":")[1] for each in mistakes(BACKEND + text)]
    assert lines == ["7", "10"]


@pytest.mark.parametrize(
    ("raw", "what"), [(b"\xff", "c.toml: is not UTF-8 (byte 0xff)"), (b"\xef\xbb\xbf[server]\nport = 5\n", None)]
)
def test_bytes_that_are_no_text_are_told_and_a_byte_order_mark_is_none(raw: bytes, what: str | None) -> None:
    path = Path("c.toml")
    path.write_bytes(raw)
    found = [str(mistake) for mistake in read_config(path, {}).mistakes]
    assert found[0].startswith(what) if what else not found


def test_a_folder_is_no_file(folder: Path) -> None:
    (found,) = read_config(folder, {}).mistakes
    assert "cannot be read: is a directory" in str(found)


@pytest.mark.parametrize(
    ("kind", "words"), [(int, "a whole number"), (float, "a number"), (bool | None, "true or false")]
)
def test_what_is_expected_is_said_without_bounds_too(kind: Any, words: str) -> None:
    assert describe_type(kind) == words


def test_every_field_of_the_configuration_is_a_table() -> None:
    assert tuple(TABLES) == Config.__struct_fields__
    for name, kind in TABLES.items():
        assert kind.is_array == isinstance(getattr(Config(), name), tuple)
