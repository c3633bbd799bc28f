"""What clients are told about models, by what each of them reads."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.asgi import Answer, call
from tests.unit.gateway.stubs import gateway


def get(path: str, body: bytes = b"") -> Answer:
    return asyncio.run(call(gateway()[0], "POST" if body else "GET", path, body=body))


def test_the_list_has_openais_fields_and_anthropics_and_the_aliases() -> None:
    listed = get("/v1/models").json
    assert listed["object"] == "list"
    assert [each["id"] for each in listed["data"]] == ["coder", "gpt-4o", "org/small"]
    assert (listed["first_id"], listed["last_id"], listed["has_more"]) == ("coder", "org/small", False)
    for each in listed["data"]:
        assert (each["object"], each["owned_by"], each["type"]) == ("model", "callwright", "model")
        assert isinstance(each["created"], int)
        assert each["display_name"]
        assert each["created_at"]
    assert listed["data"][0]["context_length"] == 65536


@pytest.mark.parametrize("name", ["coder", "gpt-4o", "org/small"])
def test_one_model_is_found_by_any_name_with_slashes_too(name: str) -> None:
    assert get(f"/v1/models/{name}").json["id"] == name


def test_an_unknown_model_is_404_and_names_the_known() -> None:
    answer = get("/v1/models/nobody")
    assert (answer.status, answer.json["error"]["code"]) == (404, "model_not_found")
    assert "coder, gpt-4o, org/small" in answer.json["error"]["message"]


def test_the_version_is_new_enough_for_copilot_chat() -> None:
    version = get("/api/version").json["version"]
    assert [int(part) for part in version.split(".")] >= [0, 6, 4]


def test_tags_have_what_each_ollama_client_reads() -> None:
    for each in get("/api/tags").json["models"]:
        assert each["name"] == each["model"]
        assert len(each["digest"]) == 64
        assert each["details"]["families"]
        assert each["size"] == 0
        assert "tools" in each["capabilities"]


@pytest.mark.parametrize(
    "body", [b'{"model": "coder"}', b'{"name": "coder"}', b'{"model": "coder:latest"}', b'{"model": "coder@copilot"}']
)
def test_show_makes_a_model_fit_for_copilots_agent_mode(body: bytes) -> None:
    shown = get("/api/show", body).json
    architecture = shown["model_info"]["general.architecture"]
    assert shown["model_info"][f"{architecture}.context_length"] == 65536
    assert shown["capabilities"] == ["completion", "tools", "vision", "thinking"]
    assert "general.basename" not in shown["model_info"]


def test_show_of_a_model_nobody_knows_much_about_still_offers_tools_and_room() -> None:
    shown = get("/api/show", b'{"model": "org/small"}').json
    assert shown["capabilities"] == ["completion", "tools"]
    assert shown["model_info"]["callwright.context_length"] >= 65536


def test_show_of_no_model_is_an_error_in_ollamas_shape() -> None:
    for body, status in (
        (b'{"model": "nobody"}', 404),
        (b"{}", 400),
        (b'{"model": []}', 400),
        (b'{"model": "\xff"}', 400),
    ):
        answer = get("/api/show", body)
        assert (answer.status, answer.json["wire"]) == (status, "ollama")


def test_running_models_tell_their_window() -> None:
    # The Ollama extension 0.0.8 warns below 65536.
    assert all(each["context_length"] >= 65536 for each in get("/api/ps").json["models"])


def test_the_ollama_sdk_reads_all_of_it() -> None:
    ollama = pytest.importorskip("ollama")
    assert ollama.ListResponse(**get("/api/tags").json).models[0].model == "coder"
    assert ollama.ProcessResponse(**get("/api/ps").json).models[0].context_length == 65536
    shown = ollama.ShowResponse(**get("/api/show", b'{"model": "coder"}').json)
    assert "tools" in shown.capabilities
