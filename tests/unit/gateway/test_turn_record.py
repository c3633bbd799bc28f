"""One record of a turn, and everybody who is told of it: metrics, usage, log and client."""

from __future__ import annotations

import asyncio
import io
import json
import logging

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.gateway.json_logging import JsonLogFormatter, configure_logging
from callwright.gateway.turn_record import TurnRecord
from callwright.model import Usage
from callwright.redaction import MASK, Redactor
from callwright.store.usage_records import USAGE_COLUMNS
from tests.support.asgi import call
from tests.unit.gateway.stubs import TEAM, gateway

RECORD = TurnRecord(
    request_id="req_1",
    wire="openai_chat",
    model="coder",
    key="team",
    client="copilot",
    profile_reason="its user agent",
    usage=Usage(prompt_tokens=10, completion_tokens=4),
    tool_call_names=("read_file", "read_file"),
    dialect="hermes",
    repairs=("unclosed", "unclosed", "renamed"),
    first_byte_seconds=0.2,
)


# Telemetry for the client (the seed's names)


def test_the_comment_and_the_headers_say_the_same() -> None:
    assert json.loads(RECORD.build_comment()) == {
        "tool_call_count": 2,
        "tool_call_truncated": False,
        "stop_after_tools_mode": "burst",
    }
    assert RECORD.build_headers() == {
        "x-codex-tool-call-count": "2",
        "x-codex-tool-call-truncated": "false",
        "x-codex-stop-after-tools-mode": "burst",
    }


def test_the_logs_line_has_what_an_operator_looks_for() -> None:
    fields = RECORD.to_log_fields()
    assert fields["has_tool_calls"] is True
    assert fields["tool_call_count"] == 2
    assert list(fields["tool_call_names"]) == ["read_file", "read_file"]
    assert fields["output_mode"] == "openai-json"
    quiet = msgspec.structs.replace(RECORD, tool_call_names=(), fault="", error="").to_log_fields()
    assert (quiet["has_tool_calls"], quiet["tool_call_count"]) == (False, 0)
    assert "fault" not in quiet


# Metrics


def test_a_turn_is_counted_once_everywhere() -> None:
    _, service = gateway()
    service.finish_turn(RECORD)
    value = service.metrics.registry.get_sample_value
    labels = {"wire": "openai_chat", "model": "coder", "client": "copilot", "status": "200"}
    assert value("callwright_requests_total", labels) == 1
    assert value("callwright_tool_calls_total", {"dialect": "hermes"}) == 2
    assert value("callwright_repairs_total", {"kind": "unclosed"}) == 2
    assert value("callwright_tokens_total", {"kind": "prompt", "model": "coder"}) == 10
    assert value("callwright_first_byte_seconds_count", {"wire": "openai_chat", "model": "coder"}) == 1


def test_no_flood_of_model_names_fills_the_memory() -> None:
    _, service = gateway()
    for number in range(1000):
        service.metrics.count_turn(msgspec.structs.replace(RECORD, model=f"made-up-{number}"))
    service.metrics.count_turn(msgspec.structs.replace(RECORD, model=""))
    named = [
        line for line in service.metrics.render_text().decode().splitlines() if "callwright_requests_total{" in line
    ]
    assert len(named) == 201
    assert [line.rpartition(" ")[2] for line in named if 'model="other"' in line] == ["801.0"]


def test_failures_are_counted_by_who_failed() -> None:
    app, service = gateway(TEAM)
    asyncio.run(call(app, "POST", "/v1/chat/completions"))
    service.finish_turn(msgspec.structs.replace(RECORD, fault="backend", error="timeout_error"))
    value = service.metrics.registry.get_sample_value
    assert value("callwright_errors_total", {"fault": "client", "kind": "authentication_error"}) == 1
    assert value("callwright_errors_total", {"fault": "backend", "kind": "timeout_error"}) == 1


def test_prometheus_finds_the_page() -> None:
    app, service = gateway()
    service.finish_turn(RECORD)
    answer = asyncio.run(call(app, "GET", "/metrics"))
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert b"callwright_requests_total{" in answer.body
    assert b"_created" not in answer.body


# Usage


def test_usage_is_asked_for_over_http() -> None:
    async def main() -> None:
        app, service = gateway()
        service.finish_turn(RECORD)
        service.finish_turn(msgspec.structs.replace(RECORD, status=503, fault="backend"))
        answer = await call(app, "GET", "/v1/usage?by=model,client&since=2020-01-01")
        assert answer.json["data"] == [
            {"model": "coder", "client": "copilot", "requests": 1, "prompt_tokens": 10, "completion_tokens": 4}
        ]
        assert set((await call(app, "GET", "/v1/usage")).json["data"][0]) >= set(USAGE_COLUMNS)
        assert (await call(app, "GET", "/v1/usage?by=")).json["data"][0]["requests"] == 1
        assert (await call(app, "GET", "/v1/usage?by=x")).status == 400
        assert (await call(app, "GET", "/v1/usage?since=yesterday")).status == 400
        await service.close()

    asyncio.run(main())


# The log


def line(message: str, secrets: tuple[str, ...] = (), **fields: object) -> str:
    record = logging.LogRecord("callwright.test", logging.INFO, "", 0, message, (), None)
    record.fields = fields
    return JsonLogFormatter(Redactor(secrets)).format(record)


HIDDEN = "qX9-zzTop_77.secret"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {HIDDEN}",
        f"authorization: {HIDDEN}",
        f"{{'authorization': 'Bearer {HIDDEN}'}}",
        f'{{"x-api-key": "{HIDDEN}"}}',
        f'{{\\"api_key\\": \\"{HIDDEN}\\"}}',
        f"X-Api-Key={HIDDEN}",
        f"https://host/v1?api_key={HIDDEN}&model=x",
        f"https://user:{HIDDEN}@host/v1",
        f"password = {HIDDEN}",
        f"headers [(b'api-key', b'x')] api-key: {HIDDEN}",
        "the key sk-proj-abcdefghij0123456789 was refused",
    ],
)
def test_what_looks_like_a_credential_is_masked_wherever_it_stands(text: str) -> None:
    for written in (line(text), line("x", body=text), line("x", nested={"deep": [text]})):
        assert HIDDEN not in written
        assert "abcdefghij0123456789" not in written
        assert MASK in written
        json.loads(written)


def test_the_rest_of_a_line_with_a_credential_stays_readable() -> None:
    written = line("https://host/v1?api_key=abcd1234&model=coder")
    assert "model=coder" in written
    assert "https://host/v1" in written
    assert line("tokens: 5, max_tokens=100, a basic idea, bearer of news").count(MASK) <= 1


@given(st.text(min_size=4, max_size=30).filter(lambda text: text.strip("*") and len(text.strip()) >= 4))
def test_a_known_secret_is_masked_whatever_it_looks_like(secret: str) -> None:
    secret = "k" + secret + "§y"
    written = line(f"key {secret} used", (secret,), body={"key": f"x{secret}x"})
    encoded = json.dumps(secret, ensure_ascii=False)[1:-1]
    assert secret not in written
    assert encoded not in written
    json.loads(written)


def test_a_traceback_is_masked_too() -> None:
    stream = io.StringIO()
    configure_logging(stream, Redactor(("hunter2-hunter2",)))
    try:
        try:
            int("hunter2-hunter2")
        except ValueError:
            logging.getLogger("callwright.x").exception("failed with Bearer abcdefgh")
    finally:
        for name in ("callwright", "uvicorn"):
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [], True
            logger.setLevel(logging.NOTSET)
    written = json.loads(stream.getvalue())
    assert "ValueError" in written["traceback"]
    assert "hunter2" not in stream.getvalue()
    assert "abcdefgh" not in stream.getvalue()
    assert (written["level"], written["logger"]) == ("error", "callwright.x")


def test_keys_never_reach_the_log_by_any_road(caplog: pytest.LogCaptureFixture) -> None:
    app, service = gateway(TEAM)
    caplog.set_level(logging.DEBUG)
    for headers in ({"authorization": "Bearer " + TEAM.key + "x"}, {"x-api-key": TEAM.key}):
        asyncio.run(call(app, "GET", f"/nowhere?key={TEAM.key}", headers=headers))
        asyncio.run(call(app, "POST", f"/{TEAM.key}", headers=headers, body=TEAM.key.encode()))
    formatter = JsonLogFormatter(service.redactor)
    written = "\n".join(formatter.format(record) for record in caplog.records)
    assert "refused" in written
    assert TEAM.key not in written
