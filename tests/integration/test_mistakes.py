"""A client gets it wrong in every way it can: each mistake is the client's, in its own form, and never ours (W-21)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.faults import documented
from tests.integration.hosted import Hosted, Reply, ask, backend, model
from tests.integration.mistakes import HARMLESS, MISTAKES, Sent
from tests.integration.turns import spoken
from tests.integration.wires import WIRES, Wire
from tests.support.upstream import Upstream

ENDINGS = documented("When the request is wrong")


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with Upstream(spoken("Hello.")) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, server: Upstream) -> Iterator[Hosted]:
    with Hosted(tmp_path_factory.mktemp("gateway"), backend("main", server.url) + model("m", "main")) as gateway:
        yield gateway


def send(gateway: Hosted, wire: Wire, sent: Sent) -> Reply:
    headers = {"content-type": sent.content_type} if sent.content_type else {}
    return ask(gateway.url, sent.path or wire.path, sent.body, headers, sent.method)


def test_the_document_has_every_mistake() -> None:
    assert list(ENDINGS) == list(MISTAKES)


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_a_mistake_is_refused_as_documented(gateway: Hosted, server: Upstream, wire: Wire, mistake: str) -> None:
    before = len(server.requests)
    reply = send(gateway, wire, MISTAKES[mistake](wire))
    assert len(server.requests) == before, "no model was asked"
    if reply.status == 200:
        assert wire.whole(reply.body).said == ("", "", (), "stop")
        assert ENDINGS[mistake][wire.name] == "an empty turn"
        return
    message, name = wire.problem(reply.json)
    assert message.startswith("The request cannot be served: ")
    assert len(message) < 300
    assert (f"{reply.status} `{name}`" if name else str(reply.status)) == ENDINGS[mistake][wire.name]
    assert reply.status not in (402, 422)
    assert reply.status < 500


@pytest.mark.parametrize("case", HARMLESS)
@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_what_is_unusual_is_served(gateway: Hosted, wire: Wire, case: str) -> None:
    reply = send(gateway, wire, HARMLESS[case](wire))
    assert (reply.status, wire.whole(reply.body).text) == (200, "Hello.")


def test_a_connection_goes_on_after_a_body_that_was_too_large(gateway: Hosted) -> None:
    with gateway.connect() as connection:
        head = b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 40000000\r\n\r\n"
        connection.sendall(head)
        answer = connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 413 "), "refused before the body was sent"
        connection.sendall(b" " * 40_000_000 + b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
