"""Requests made from the gateway's own description, valid and not: each is answered as described, none with a 5xx."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from tests.integration.hosted import Hosted, backend, model
from tests.support.sampling import FULL
from tests.support.upstream import Upstream, whole

EXAMPLES = 20 if FULL else 4
CHECKS = (not_a_server_error, content_type_conformance, response_schema_conformance)

# An answer to everything: a turn in one piece, and lists of models in OpenAI's form and in Ollama's.
HELLO = {"choices": [{"message": {"content": "Hello."}, "finish_reason": "stop"}], "data": [], "models": []}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    # Every name is a model, so that what is well formed gets as far as asking one.
    with Upstream(whole(json.dumps(HELLO).encode())) as server:
        ollama = backend("local", server.url, kind="ollama").replace("/v1", "")
        tables = backend("main", server.url) + ollama + model("*", ["main", "local"])
        with Hosted(tmp_path_factory.mktemp("gateway"), tables) as gateway:
            yield gateway


@pytest.fixture(scope="module")
def described(gateway: Hosted) -> Any:
    config = schemathesis.Config.from_dict({"seed": 1})
    return schemathesis.openapi.from_url(f"{gateway.url}/openapi.json", config=config)


schema = schemathesis.pytest.from_fixture("described")


@schema.parametrize()
@settings(max_examples=EXAMPLES, derandomize=True, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_every_request_is_answered_as_described(case: Any) -> None:
    response = case.call_and_validate(checks=CHECKS)
    assert response.status_code not in (402, 422)
