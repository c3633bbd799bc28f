"""The process of Codex: killed, without an account, in a folder that is not its own; and as the document says it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE

import pytest

from callwright.backends.codex import binary
from tests.integration.codexes import CATALOGUED, child, heard, problem
from tests.integration.hosted import Hosted, backend, model, opened
from tests.integration.wires import CHAT, QUESTION, RESPONSES, TOOLS, Call, Heard, Wire
from tests.support.codex import CACHE, CREATED, NEEDED, PROGRAM, call, responded, text
from tests.support.sampling import FULL
from tests.support.upstream import HANG, Upstream, answer, closed_port, whole

pytestmark = [NEEDED, pytest.mark.timeout(300)]


@pytest.fixture
def lone(tmp_path: Path, upstream: Upstream) -> Iterator[Hosted]:
    """A gateway whose child may be killed."""
    tables = backend("codex", upstream.url, kind="codex", path=str(PROGRAM), retries=2, backoff_seconds=0.01)
    with Hosted(tmp_path, tables + model("m", "codex")) as gateway:
        yield gateway


@pytest.mark.parametrize("wire", [CHAT, RESPONSES], ids=lambda wire: wire.name)
def test_a_child_that_is_killed_ends_its_turns_well_and_the_next_one_works(
    lone: Hosted, upstream: Upstream, wire: Wire
) -> None:
    for _ in range(2 if FULL else 1):
        upstream.play(answer(CREATED, *text("One moment")[:2], HANG))
        with opened(lone.url, wire.path, wire.body("m", stream=True)) as coming:
            coming.until(b"One moment")
            pid = child(lone).child.pid
            os.kill(pid, signal.SIGKILL)
            turn = wire.streamed(coming.rest())
        assert (turn.text, turn.finish) == ("One moment", "")
        assert "lost its process" in turn.error
        upstream.play(responded(*text("Back.")))
        assert heard(lone, wire).text == "Back."
        assert child(lone).child.pid not in (0, pid)


def test_a_kill_before_the_first_word_is_not_noticed(lone: Hosted, upstream: Upstream) -> None:
    upstream.play(answer(CREATED, HANG), responded(*text("Here.")))
    before = len(upstream.requests)
    said: list[Heard] = []
    asking = threading.Thread(target=lambda: said.append(heard(lone, CHAT)))
    asking.start()
    while len(upstream.requests) == before:
        time.sleep(0.01)
    os.kill(child(lone).child.pid, signal.SIGKILL)
    asking.join(60)
    assert [each.text for each in said] == ["Here."]


def test_readiness_is_the_child_s_and_its_provider_s(tmp_path: Path, upstream: Upstream) -> None:
    upstream.play(whole(b'{"data": [{"id": "m"}]}'))
    missing = str(tmp_path / "nowhere")
    for name, path, url, ready in [
        ("all", str(PROGRAM), upstream.url, True),
        ("program", missing, upstream.url, False),
        ("provider", str(PROGRAM), f"http://127.0.0.1:{closed_port()}", False),
    ]:
        (tmp_path / name).mkdir()
        with Hosted(tmp_path / name, backend("codex", url, kind="codex", path=path) + model("m", "codex")) as gateway:
            reply = gateway.get("/readyz")
        assert (reply.status, reply.json["backends"]) == (200 if ready else 503, {"codex": ready})


def test_a_folder_of_its_own_goes_with_the_gateway(tmp_path: Path, upstream: Upstream) -> None:
    upstream.play(responded(*text("Yes.")))
    tables = backend("codex", upstream.url, kind="codex", path=str(PROGRAM)) + model("m", "codex")
    with Hosted(tmp_path, tables) as gateway:
        heard(gateway, CHAT)
        folder, pid = child(gateway).child.folder, child(gateway).child.pid
        assert "key-of" not in (folder / "config.toml").read_text()
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_no_model_of_the_catalogue_brings_tools_or_words_of_its_own(tmp_path: Path, upstream: Upstream) -> None:
    said = subprocess.run(
        [PROGRAM, "debug", "models", "--bundled"], env={"HOME": str(tmp_path)}, stdout=PIPE, check=True
    )
    names = [each["slug"] for each in json.loads(said.stdout)["models"]]
    assert CATALOGUED in names
    upstream.play(responded(*text("Yes.")))
    tables = backend("codex", upstream.url, kind="codex", path=str(PROGRAM))
    with Hosted(tmp_path, tables + "".join(model(name, "codex") for name in names)) as gateway:
        for name in names:
            heard(gateway, CHAT, name=name)
            asked = upstream.requests[-1].json
            assert [tool["name"] for tool in asked["tools"]] == list(TOOLS), name
            assert [part["text"] for item in asked["input"] for part in item["content"]] == [QUESTION], name
            assert "instructions" not in asked


def test_a_home_that_holds_another_configuration_is_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('model = "mine"\n')
    tables = backend("codex", "http://127.0.0.1:9", kind="codex", path=str(PROGRAM), home=str(home))
    with Hosted(tmp_path, tables + model("m", "codex")) as gateway:
        assert "was not written by Callwright" in problem(gateway)[1]
    assert (home / "config.toml").read_text() == 'model = "mine"\n'


def test_without_an_account_the_client_is_told_how_to_get_one(tmp_path: Path) -> None:
    table = f'[[backends]]\nname = "codex"\nkind = "codex"\npath = "{PROGRAM}"\nhome = "{tmp_path / "home"}"\n'
    with Hosted(tmp_path, table + model("m", "codex")) as gateway:
        status, message, code = problem(gateway)
        assert (status, code) == (401, "login_needed")
        assert "callwright codex login" in message
        assert CATALOGUED in {info.name for info in gateway.wait(child(gateway).list_models())}


def test_the_configuration_of_the_document_works(
    tmp_path: Path, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binary, "INSTALL_FOLDER", CACHE)
    page = (Path(__file__).parents[2] / "docs" / "backends.md").read_text(encoding="utf-8")
    example = page.partition('## `kind = "codex"`')[2].partition("```toml\n")[2].partition("```")[0]
    assert "env:PROVIDER_KEY" in example
    upstream.play(responded(*call("call_1", "ping", "{}")))
    tables = example.replace("http://127.0.0.1:8000", upstream.url).replace("env:PROVIDER_KEY", "a-key")
    with Hosted(tmp_path, tables) as gateway:
        assert heard(gateway, CHAT, name="coder").calls == (Call("ping", {}),)
    assert upstream.requests[-1].headers["authorization"] == "Bearer a-key"
