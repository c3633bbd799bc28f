"""What a browser sees: preflights before keys, the origin on everything, nothing for strangers."""

from __future__ import annotations

import asyncio

import pytest

from callwright.errors import BackendError
from tests.support.asgi import Answer, call
from tests.unit.gateway.stubs import TEAM, gateway

OBSIDIAN = "app://obsidian.md"
# Seen in Chromium 147 with @langchain/openai 1.5.6.
ASKED = (
    "authorization,content-type,x-stainless-arch,x-stainless-lang,x-stainless-os,x-stainless-package-version,"
    "x-stainless-retry-count,x-stainless-runtime,x-stainless-runtime-version"
)


def ask(app, method: str, path: str = "/v1/chat/completions", **headers: str) -> Answer:
    return asyncio.run(
        call(app, method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    )


def preflight(app, origin: str, **more: str) -> Answer:
    return ask(
        app,
        "OPTIONS",
        origin=origin,
        access_control_request_method="POST",
        access_control_request_headers=ASKED,
        **more,
    )


@pytest.mark.parametrize("origin", [OBSIDIAN, "capacitor://localhost", "http://localhost"])
@pytest.mark.parametrize("keys", [(), (TEAM,)])
def test_a_preflight_needs_no_key_and_reflects_every_header(origin: str, keys: tuple) -> None:
    answer = preflight(gateway(*keys)[0], origin)
    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == origin
    assert answer.headers["access-control-allow-headers"] == ASKED
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert "Origin" in answer.headers["vary"]
    assert "access-control-allow-private-network" not in answer.headers


def test_a_private_network_is_allowed_when_asked_for() -> None:
    answer = preflight(gateway()[0], OBSIDIAN, access_control_request_private_network="true")
    assert answer.headers["access-control-allow-private-network"] == "true"


@pytest.mark.parametrize("keys", [(), (TEAM,)])
def test_a_preflight_of_a_stranger_is_refused_without_an_origin(keys: tuple) -> None:
    answer = preflight(gateway(*keys)[0], "https://evil.example")
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers
    assert "origins" in answer.json["error"]["message"]


def test_streams_and_errors_carry_the_origin() -> None:
    async def broken(scope, receive, send) -> None:
        raise BackendError("gone", kind="unavailable")

    for answer, status in (
        (ask(gateway()[0], "POST", origin=OBSIDIAN), 200),
        (ask(gateway(turn=broken)[0], "POST", origin=OBSIDIAN), 503),
        (ask(gateway(TEAM)[0], "POST", origin=OBSIDIAN), 401),
        (ask(gateway()[0], "POST", "/nowhere", origin=OBSIDIAN), 404),
        (ask(gateway(body_bytes=1)[0], "POST", origin=OBSIDIAN, content_length="9"), 413),
    ):
        assert answer.status == status
        assert answer.headers["access-control-allow-origin"] == OBSIDIAN
        assert "x-request-id" in answer.headers["access-control-expose-headers"]
        assert "x-codex-tool-call-count" in answer.headers["access-control-expose-headers"]


def test_a_strangers_page_cannot_spend_an_open_gateways_model() -> None:
    app, _ = gateway()
    answer = ask(app, "POST", origin="https://evil.example", content_type="text/plain")
    assert (answer.status, answer.json["error"]["code"]) == (403, "origin_not_allowed")
    assert ask(app, "POST", origin="null").status == 403


def test_with_a_key_an_origin_is_no_reason_to_refuse_what_is_no_browser() -> None:
    answer = ask(gateway(TEAM)[0], "POST", origin="tauri://localhost", x_api_key=TEAM.key)
    assert answer.status == 200
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["vary"] == "Origin"


def test_our_own_pages_are_no_strangers() -> None:
    assert ask(gateway()[0], "POST", origin="http://127.0.0.1:8787").status == 200


def test_any_origin_may_be_allowed_by_setting() -> None:
    answer = preflight(gateway(origins=("*",))[0], "https://chat.example")
    assert answer.headers["access-control-allow-origin"] == "https://chat.example"


def test_who_sends_no_origin_gets_no_cors_headers() -> None:
    assert not [name for name in ask(gateway()[0], "POST").headers if name.startswith("access-control")]


def test_an_options_that_is_no_preflight_is_not_asked_for_a_key() -> None:
    assert ask(gateway(TEAM)[0], "OPTIONS").status == 405
