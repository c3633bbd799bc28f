"""States are swapped whole; what is in flight keeps its own."""

from __future__ import annotations

import asyncio

import pytest

from callwright.errors import MisuseError
from callwright.gateway.keys import Keyring, check_model_access, is_loopback_host
from callwright.gateway.request_context import get_request_context
from callwright.gateway.service import GatewayService
from tests.support.asgi import call
from tests.unit.gateway.stubs import GUEST, TEAM, StubEngine, gateway, state


def test_a_request_in_flight_keeps_its_state_and_the_old_engine_closes_after_it() -> None:
    async def main() -> None:
        begun, gate = asyncio.Event(), asyncio.Event()
        seen = []

        async def wait(scope, receive, send) -> None:
            begun.set()
            await gate.wait()
            seen.append(get_request_context(scope).state)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        old, new = StubEngine(), StubEngine()
        app, service = gateway(engine=old, turn=wait)
        flying = asyncio.create_task(call(app, "POST", "/v1/messages"))
        await begun.wait()
        service.replace_state(state(TEAM, engine=new))
        assert (await call(app, "GET", "/v1/models")).status == 401
        await asyncio.sleep(0)
        assert old.closed == 0
        gate.set()
        assert (await flying).status == 200
        await asyncio.sleep(0)
        assert seen[0].engine is old
        assert (old.closed, new.closed) == (1, 0)
        await service.close()
        assert (old.closed, new.closed) == (1, 1)

    asyncio.run(main())


def test_an_old_state_that_nobody_uses_is_closed_at_once() -> None:
    async def main() -> None:
        engines = [StubEngine() for _ in range(3)]
        service = GatewayService(state(engine=engines[0]))
        service.replace_state(state(engine=engines[1]))
        service.replace_state(state(engine=engines[2]))
        await service.close()
        assert [engine.closed for engine in engines] == [1, 1, 1]

    asyncio.run(main())


def test_a_reload_teaches_new_secrets_and_forgets_none() -> None:
    async def main() -> None:
        service = GatewayService(state(TEAM))
        for _ in range(3):
            service.replace_state(state(GUEST))
        assert service.redactor.redact(f"a {GUEST.key} b {TEAM.key} c") == "a *** b *** c"
        await service.close()

    asyncio.run(main())


def test_when_time_is_over_turns_are_cancelled_and_know_why() -> None:
    async def main() -> None:
        said = []

        async def endless(scope, receive, send) -> None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                said.append(service.is_cancelling)
                raise

        app, service = gateway(turn=endless)
        turn = asyncio.create_task(call(app, "POST", "/v1/messages"))
        await asyncio.sleep(0.01)
        service.cancel_turns()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert said == [True]

    asyncio.run(main())


def test_a_turn_outside_a_task_is_a_mistake_of_ours() -> None:
    loop = asyncio.new_event_loop()
    failures = []

    def outside() -> None:
        try:
            with GatewayService(state()).track_turn():
                pass
        except MisuseError as error:
            failures.append(error)
        loop.stop()

    loop.call_soon(outside)
    loop.run_forever()
    loop.close()
    assert failures


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("[::1]", True),
        ("LOCALHOST", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.1", False),
        ("localhost.example", False),
        ("", False),
    ],
)
def test_what_counts_as_this_machine(host: str, local: bool) -> None:
    assert is_loopback_host(host) == local


def test_a_key_is_found_whole_or_not_at_all() -> None:
    keyring = Keyring((TEAM, GUEST), "127.0.0.1")
    assert keyring.find_key(TEAM.key) is TEAM
    assert keyring.find_key(GUEST.key) is GUEST
    for wrong in ("", TEAM.key[:-1], TEAM.key + "x", TEAM.key.upper(), "\udcff"):
        assert keyring.find_key(wrong) is None
    assert not keyring.is_open


def test_every_key_is_compared_whatever_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    monkeypatch.setattr("hmac.compare_digest", lambda a, b: compared.append(a) or a == b)
    assert Keyring((TEAM, GUEST), "127.0.0.1").find_key(TEAM.key) is TEAM
    assert len(compared) == 2


def test_a_key_without_a_list_may_use_every_model() -> None:
    check_model_access(None, "x")
    check_model_access(TEAM, "x")
    check_model_access(GUEST, "coder")
