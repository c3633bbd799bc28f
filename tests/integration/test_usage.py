"""The usage over HTTP: two gateways on one database, a restart, and a database that is not there."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from callwright import cli
from tests.integration.hosted import Hosted, backend, model
from tests.integration.turns import spoken
from tests.integration.wires import CHAT
from tests.support.upstream import Upstream, closed_port


def configuration(upstream: Upstream, address: str) -> str:
    store = f'[store]\naddress = "{address}"\n' if address else ""
    return store + backend("main", upstream.url) + model("m", "main")


def hosted(folder: Path, configuration: str) -> Hosted:
    folder.mkdir(exist_ok=True)
    return Hosted(folder, configuration)


def usage(gateway: Hosted, query: str = "by=model") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = gateway.get(f"/v1/usage?{query}").json["data"]
    return rows


def test_gateways_that_share_a_database_share_their_usage(tmp_path: Path, upstream: Upstream, address: str) -> None:
    upstream.play(spoken("Hello."))
    settings = configuration(upstream, address)
    with ExitStack() as stack:
        one = stack.enter_context(hosted(tmp_path / "one", settings))
        other = stack.enter_context(hosted(tmp_path / "other", settings))
        for gateway in (one, other, other):
            assert gateway.post(CHAT.path, CHAT.body("m", stream=True)).status == 200
        assert usage(other)[0]["requests"] >= 2, "what it served itself is there at once"
        usage(one)  # it has written its turn then
        assert usage(one) == usage(other)
        assert [(row["model"], row["requests"]) for row in usage(one)] == [("m", 3)]
        assert cli.main(["usage", "--url", one.url]) == 0
    with hosted(tmp_path / "later", settings) as later:
        assert usage(later)[0]["requests"] == 3, "nothing is lost with a gateway that stops"


def test_without_a_store_each_gateway_counts_for_itself(tmp_path: Path, upstream: Upstream) -> None:
    upstream.play(spoken("Hello."))
    for _ in range(2):
        with hosted(tmp_path, configuration(upstream, "")) as gateway:
            gateway.post(CHAT.path, CHAT.body("m", stream=True))
            assert usage(gateway)[0]["requests"] == 1


def test_a_database_that_is_not_there_fails_no_turn_and_is_named(tmp_path: Path, upstream: Upstream) -> None:
    upstream.play(spoken("Hello."))
    address = f"postgresql://user@127.0.0.1:{closed_port()}/none"
    with hosted(tmp_path, configuration(upstream, address)) as gateway:
        assert gateway.post(CHAT.path, CHAT.body("m", stream=True)).status == 200
        answer = gateway.get("/v1/usage")
    assert (answer.status, answer.json["error"]["code"]) == (503, "store_unavailable")
