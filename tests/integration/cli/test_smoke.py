"""`callwright smoke` passes a good gateway and says of a bad one what is wrong, where."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from callwright import cli
from tests.integration.cli.gateway import KEY, Break, gateway, pages, serving

CHAT, RESPONSES, MESSAGES, OLLAMA = "/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat"


def report(capsys: pytest.CaptureFixture[str], change: Break) -> tuple[int, dict[str, Any]]:
    with serving(gateway(change)) as url:
        code = cli.main(["smoke", url, "--json"])
    return code, json.loads(capsys.readouterr().out)


def failures(found: dict[str, Any]) -> dict[tuple[str, str], str]:
    return {(each["wire"], each["trial"]): each["reason"] for each in found["trials"] if not each["ok"]}


def test_a_good_gateway_passes_everything(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = report(capsys, lambda _path, _stream, body: body)
    assert (code, failures(found)) == (0, {})
    assert found["ok"]
    assert found["model"] == "m"
    assert len(found["trials"]) == 24
    assert {each["wire"] for each in found["trials"]} == {"chat", "responses", "messages", "ollama"}


def swap(path: str, old: bytes, new: bytes, *, stream: bool = True) -> Break:
    return lambda at, streamed, body: body.replace(old, new) if (at, streamed) == (path, stream) else body


ROUNDS = "tool call, two rounds, streamed"
XML = "tool call as XML text, streamed"
LISTED = "models are listed"
BREAKS: list[tuple[str, Break, tuple[str, str], str]] = [
    ("no role", swap(CHAT, b'"role"', b'"r"'), ("chat", "text, streamed"), "no role"),
    ("no [DONE]", swap(CHAT, b"data: [DONE]\n\n", b""), ("chat", "text, streamed"), "[DONE]"),
    ("an empty answer", swap(CHAT, b"Rain.", b" "), ("chat", "text, streamed"), "answer is empty"),
    ("a foreign tool", swap(CHAT, b"get_weather", b"rm"), ("chat", ROUNDS), "rm, which was not offered"),
    ("other arguments", swap(CHAT, b"city", b"town"), ("chat", ROUNDS), "no city"),
    ("no terminal event", swap(RESPONSES, b"response.completed", b"response.x"), ("responses", ROUNDS), "response.x"),
    ("no stop", swap(MESSAGES, b"message_stop", b"ping"), ("messages", ROUNDS), "without message_stop"),
    ("never done", swap(OLLAMA, b'"done": true', b'"done": false'), ("ollama", ROUNDS), "done is false"),
    ("no usage", swap(MESSAGES, b'"usage"', b'"u"', stream=False), ("messages", "text"), "no usage"),
    ("an old Ollama", swap("/api/version", b"0.13.0", b"0.5.9", stream=False), ("ollama", LISTED), "0.6.4"),
    ("no tools", swap("/api/show", b'"tools"', b'"t"', stream=False), ("ollama", LISTED), "does not list tools"),
    ("no owner", swap("/v1/models", b"owned_by", b"o", stream=False), ("chat", LISTED), "no owned_by"),
    ("XML of other calls", swap(CHAT, b"<city>Oslo", b"<city>Rome"), ("chat", XML), "Rome"),
]


@pytest.mark.parametrize(("change", "where", "reason"), [each[1:] for each in BREAKS], ids=[each[0] for each in BREAKS])
def test_a_bad_gateway_is_caught(
    capsys: pytest.CaptureFixture[str], change: Break, where: tuple[str, str], reason: str
) -> None:
    code, found = report(capsys, change)
    assert code == 1
    assert not found["ok"]
    assert reason in failures(found)[where]
    assert len({wire for wire, _ in failures(found)}) == 1, "the other wires are not blamed"


def test_a_call_that_leaks_into_the_text_is_caught(capsys: pytest.CaptureFixture[str]) -> None:
    leak = b'<tool_call>{\\"name\\": \\"get_weather\\", \\"arguments\\": {\\"city\\": \\"Oslo\\"}}</tool_call>'
    _, found = report(capsys, swap(CHAT, b'"content": null', b'"content": "%b"' % leak, stream=False))
    assert "the text contains a call" in failures(found)["chat", "tool call, two rounds"]


def test_the_report_for_a_person_names_what_failed(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(gateway(swap(CHAT, b"data: [DONE]\n\n", b""))) as url:
        assert cli.main(["smoke", url]) == 1
    out = capsys.readouterr().out
    assert "✗ chat: text, streamed" in out
    assert "21 of 24 passed" in out
    assert "✓" in out


def test_a_gateway_with_keys_wants_one(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(gateway(key=KEY)) as url:
        assert cli.main(["smoke", url]) == 2
        assert "requires a key; pass --key" in capsys.readouterr().err
        assert cli.main(["smoke", f"{url}/v1/", "--key", KEY]) == 0


@pytest.mark.parametrize(
    ("replies", "sentence"),
    [({}, "is this the URL of a gateway?"), ({"/v1/models": {"data": []}}, "has no models")],
)
def test_what_is_no_gateway_is_told(capsys: pytest.CaptureFixture[str], replies: dict[str, Any], sentence: str) -> None:
    with serving(pages(replies)) as url:
        assert cli.main(["smoke", url]) == 2
    assert sentence in capsys.readouterr().err


def test_no_gateway_at_all_says_how_to_start_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["smoke", "127.0.0.1:9"]) == 2
    assert capsys.readouterr().err == (
        "callwright: cannot connect to http://127.0.0.1:9; start a gateway with: callwright serve\n"
    )


def test_an_address_that_is_none_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["smoke", "http://"]) == 2
    assert "is not a URL" in capsys.readouterr().err


def test_a_gateway_that_takes_too_long_is_given_up(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert cli.main(["smoke", f"127.0.0.1:{silent.getsockname()[1]}", "--timeout", "0.2"]) == 2
    assert "did not finish within 0.2 s" in capsys.readouterr().err
