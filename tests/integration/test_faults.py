"""A model server fails in every way it can: each client gets the ending that docs/errors.md says, and no half call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from callwright.events import TextDelta
from callwright.gateway import profiles
from tests.integration.faults import FAULTS, WORDS, documented
from tests.integration.hosted import Hosted, Reply, backend, model
from tests.integration.turns import CALL_BEGUN, CALL_ENDED, said, spoken, text
from tests.integration.wires import CHAT, WIRES, Call, Wire
from tests.support.failures import FAILURES, begun
from tests.support.upstream import CLOSE, HANG, PASS, READ, SILENCE, Step, Upstream, answer, closed_port, refused, sse

ENDINGS = documented("When the model's server fails")
PATIENT = {"first_token_seconds": 600, "idle_seconds": 600, "backoff_seconds": 0}
"""Time passes when the server falls silent, and only then."""
KINDS = {
    "openai": "openai_chat",
    "responses": "openai_responses",
    "anthropic": "anthropic",
    "ollama": "ollama",
    "completions": "completions",
}
"""The kinds of backend, and what reads their answers."""
WEATHER = Call("get_weather", {"city": "Paris", "days": 3})


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with Upstream([]) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, server: Upstream) -> Iterator[Hosted]:
    gone = f"http://127.0.0.1:{closed_port()}"
    tables = backend("main", server.url, **PATIENT) + backend("gone", gone) + model("m", "main") + model("gone", "gone")
    tables += "".join(backend(kind, server.url, kind=kind, **PATIENT) + model(kind, kind) for kind in KINDS)
    with (
        pytest.MonkeyPatch.context() as patched,
        Hosted(tmp_path_factory.mktemp("gateway"), tables, clock=True) as gateway,
    ):
        # No client is given signs of life before the server's time is up.
        patched.setattr(profiles, "OPENAI", msgspec.structs.replace(profiles.OPENAI, first_byte_seconds=100_000))
        server.pass_time = lambda: gateway.pass_time(601)
        yield gateway


def test_the_document_has_every_fault_on_every_wire() -> None:
    assert list(ENDINGS) == list(FAULTS)
    assert all(list(row) == [*WIRES, "not streamed"] for row in ENDINGS.values())


def asked(gateway: Hosted, server: Upstream, wire: Wire, script: list[Step], *, stream: bool) -> Reply:
    """The answer to a turn that the server plays this in; without a script there is no server."""
    if script:
        server.play(script)
    return gateway.post(wire.path, wire.body("m" if script else "gone", stream=stream))


def ending(wire: Wire, reply: Reply, *, stream: bool) -> str:
    """What came, in the words of the document."""
    if reply.status != 200:
        message, name = wire.problem(reply.json)
        assert message.startswith("The backend failed: the backend "), message
        assert "127.0.0.1" in message, "it says which backend"
        return f"{reply.status} `{name}`" if name else str(reply.status)
    heard = wire.streamed(reply.body) if stream else wire.whole(reply.body)
    if heard.error:
        assert heard.error.startswith("The backend failed: the backend 'main'")
        assert (heard.text, heard.calls) == (WORDS, ())
        return heard.ending
    assert heard.said == (WORDS, "", (WEATHER,), "tool_calls")
    return "the turn"


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_a_stream_ends_as_documented(gateway: Hosted, server: Upstream, wire: Wire, fault: str) -> None:
    reply = asked(gateway, server, wire, FAULTS[fault], stream=True)
    assert ending(wire, reply, stream=True) == ENDINGS[fault][wire.name]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_an_answer_in_one_piece_is_whole_or_an_error(gateway: Hosted, server: Upstream, wire: Wire, fault: str) -> None:
    reply = asked(gateway, server, wire, FAULTS[fault], stream=False)
    came, expected = ending(wire, reply, stream=False), ENDINGS[fault]["not streamed"]
    # Anthropic's errors have other names, and Ollama's have none.
    same = wire.name in ("chat", "responses") or expected == "the turn"
    assert came == expected if same else came[:3] == expected[:3]
    assert reply.headers["content-type"] == "application/json"


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
@pytest.mark.parametrize(("kind", "failure"), [(kind, each) for kind in KINDS for each in FAILURES[KINDS[kind]]])
def test_words_in_one_read_with_a_failure_are_shown_whatever_the_server_speaks(
    gateway: Hosted, server: Upstream, wire: Wire, kind: str, failure: str
) -> None:
    name = KINDS[kind]
    server.play(answer(begun(name, [TextDelta(WORDS)]) + FAILURES[name][failure], HANG))
    heard = wire.streamed(gateway.post(wire.path, wire.body(kind, stream=True, tools=False)).body)
    assert heard.said == (WORDS, "", (), "")
    assert heard.error.startswith(f"The backend failed: the backend '{kind}'")
    assert "sent nothing in the middle of its answer" not in heard.error


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
@pytest.mark.parametrize("words", ["Half", "See <tool_c", "a < b and <function", "[TOOL", "```json\n{"])
def test_words_that_might_have_become_a_call_are_shown_when_a_stream_breaks_off(
    gateway: Hosted, server: Upstream, wire: Wire, words: str
) -> None:
    server.play(answer(sse(words), CLOSE))
    heard = wire.streamed(gateway.post(wire.path, wire.body("m", stream=True)).body)
    assert heard.said == (words, "", (), "")
    assert "closed the connection in the middle" in heard.error


@pytest.mark.parametrize(
    "half", ['<tool_call>{"name": "ping", "argu', '<tool_call>{"name": "get_weather", "arguments": {"c']
)
def test_half_a_call_is_no_words_when_a_stream_breaks_off(gateway: Hosted, server: Upstream, half: str) -> None:
    server.play(answer(sse(f"Well. {half}"), CLOSE))
    heard = CHAT.streamed(gateway.post(CHAT.path, CHAT.body("m", stream=True)).body)
    assert heard.said == ("Well. ", "", (), "")
    assert "closed the connection in the middle" in heard.error


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_a_long_time_to_come_back_is_passed_on(gateway: Hosted, server: Upstream, wire: Wire) -> None:
    reply = asked(gateway, server, wire, refused(429, "slow down", **{"retry-after": "77"}), stream=True)
    assert (reply.status, reply.headers["retry-after"]) == (429, "77")


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_a_call_quoted_in_an_error_is_a_call(gateway: Hosted, server: Upstream, wire: Wire) -> None:
    quoted = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}</tool_call>'
    reply = asked(gateway, server, wire, refused(500, f"Failed to parse input at pos 7: {quoted}"), stream=True)
    heard = wire.streamed(reply.body)
    assert (heard.calls, heard.finish) == ((WEATHER,), "tool_calls")


def test_half_a_call_quoted_in_an_error_is_asked_for_again(gateway: Hosted, server: Upstream) -> None:
    server.play(FAULTS["answers 500 and quotes half a call"], said(*text("Let me look."), *CALL_BEGUN, *CALL_ENDED))
    before = len(server.requests)
    reply = gateway.post(CHAT.path, CHAT.body("m", stream=True))
    assert CHAT.streamed(reply.body).calls == (WEATHER,)
    assert len(server.requests) - before == 2


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_a_failure_after_signs_of_life_is_one_in_the_stream(tmp_path: Path, upstream: Upstream, wire: Wire) -> None:
    first_byte = profiles.OPENAI.first_byte_seconds
    upstream.play([SILENCE])
    tables = backend("main", upstream.url, first_token_seconds=600) + model("m", "main", profile="openai")
    with Hosted(tmp_path, tables, clock=True) as gateway:
        upstream.pass_time = lambda: gateway.pass_time(first_byte + 1, 600)
        reply = gateway.post(wire.path, wire.body("m", stream=True))
    assert reply.status == 200
    heard = wire.streamed(reply.body)
    assert heard.said == ("", "", (), "")
    assert heard.ending == ENDINGS["falls silent in a call"][wire.name]


def test_copilot_gets_a_status_whose_message_it_shows(gateway: Hosted, server: Upstream) -> None:
    server.play(FAULTS["answers 503"])
    reply = gateway.post(CHAT.path, CHAT.body("m", stream=True), user_agent="GitHubCopilotChat/0.66.0")
    assert reply.status == 424
    assert "loading" in CHAT.problem(reply.json)[0]


def test_the_whole_time_of_an_answer_is_bounded(tmp_path: Path, upstream: Upstream) -> None:
    drops = [step for _ in range(5) for step in (*text("drip "), READ, PASS)]
    upstream.play(answer(*drops, HANG))
    tables = backend("main", upstream.url, total_seconds=600, idle_seconds=500) + model("m", "main")
    with Hosted(tmp_path, tables, clock=True) as gateway:
        upstream.pass_time = lambda: gateway.pass_time(200)
        heard = CHAT.streamed(gateway.post(CHAT.path, CHAT.body("m", stream=True)).body)
    assert "total_seconds" in heard.error
    assert heard.ending == ENDINGS["falls silent in a call"]["chat"]


def test_what_fails_before_the_first_byte_is_sent_again(tmp_path: Path, upstream: Upstream) -> None:
    upstream.play(refused(503, "loading"), FAULTS["closes the connection without an answer"], spoken("Here I am."))
    tables = backend("main", upstream.url, retries=2, backoff_seconds=0) + model("m", "main")
    with Hosted(tmp_path, tables) as gateway:
        heard = CHAT.streamed(gateway.post(CHAT.path, CHAT.body("m", stream=True)).body)
    assert heard.text == "Here I am."
    assert len(upstream.requests) == 3
