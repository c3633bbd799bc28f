"""Measure the gateway: direct requests, nginx, LiteLLM and Callwright in one run, with one worker each.

    make bench-gateway                       # prints the table and writes it into docs/benchmarks.md
    python scripts/bench_gateway.py --quick --only direct,callwright

The model server is `bench_upstream.py`: 200 chunks of four characters with a call written as text. Callwright parses
every chunk with a dialect and sends the call as native deltas; the others forward bytes or objects. Figures are medians
of the rounds. The server, the gateway and the load share the cores, so only the ratios between rows are meaningful.
"""

from __future__ import annotations

import argparse
import asyncio
import compileall
import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvloop

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- bench-gateway:begin -->", "<!-- bench-gateway:end -->"
CHUNKS = 200
STARTS = 3
TICKS = os.sysconf("SC_CLK_TCK")
TOOL = {
    "type": "function",
    "function": {
        "name": "write_file",
        "description": "Write a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}},
    },
}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


# ── the load ─────────────────────────────────────────────────────────────────────────────────────


class Call(asyncio.Protocol):
    """Send one request on its own connection; return the times of its first and last event."""

    def __init__(self, request: bytes, last: bytes) -> None:
        self.request, self.last = request, last
        self.first = 0.0
        self.tail = b""
        self.done: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.began = time.perf_counter()
        transport.write(self.request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        if not self.first and (b"data: {" in data or b"{" in data):
            self.first = time.perf_counter() - self.began
        self.tail = self.tail[-64:] + data
        if self.last in self.tail and not self.done.done():
            self.done.set_result(time.perf_counter() - self.began)
            self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(ConnectionError(f"closed early, after {self.tail[-200:]!r}"))


def request(port: int, model: str, *, stream: bool) -> bytes:
    messages = [{"role": "user", "content": "Write the file."}]
    body = json.dumps({"model": model, "stream": stream, "messages": messages, "tools": [TOOL]}).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer sk-bench\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def call(port: int, data: bytes, last: bytes) -> Call:
    _, made = await asyncio.get_running_loop().create_connection(lambda: Call(data, last), "127.0.0.1", port)
    await asyncio.wait_for(made.done, 180)
    return made


async def together(port: int, data: bytes, last: bytes, at_once: int, count: int) -> list[Call]:
    """Send `count` requests, `at_once` of them concurrently."""
    todo = iter(range(count))
    out: list[Call] = []

    async def worker() -> None:
        for _ in todo:
            out.append(await call(port, data, last))

    await asyncio.gather(*(worker() for _ in range(at_once)))
    return out


async def first_under_load(port: int, data: bytes, last: bytes) -> float:
    """Return the 99th percentile of the time to the first byte, in milliseconds, while 128 paced streams run.

    Streams of 4 seconds begin evenly, 32 a second; those of the first 4 seconds only make the load.
    """
    running = []
    for _ in range(128 * 3):
        running.append(asyncio.ensure_future(call(port, data, last)))
        await asyncio.sleep(4 / 128)
    calls = (await asyncio.gather(*running))[128:]
    return sorted(each.first for each in calls)[int(len(calls) * 0.99)] * 1000


# ── what is measured ─────────────────────────────────────────────────────────────────────────────


def cpu(pid: int) -> float:
    """Return the CPU seconds of a process and its children."""
    return sum(
        (int(fields[11]) + int(fields[12])) / TICKS
        for each in family(pid)
        if (fields := Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split())
    )


def memory(pid: int) -> float:
    """Return the resident megabytes of a process and its children."""
    total = 0
    for each in family(pid):
        lines = Path(f"/proc/{each}/status").read_text().splitlines()
        total += next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    return total / 1024


def family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in family(int(child)))]


async def measure(port: int, pid: int | None, scale: float, idle: float, started: float) -> dict[str, float]:
    """Measure all figures of one target."""
    out = {"idle_mb": idle, "start": started}
    fast, paced, brief = (request(port, name, stream=True) for name in ("fast", "paced", "brief"))
    done = b"[DONE]"
    await together(port, fast, done, 4, 8)
    first = [(await call(port, brief, done)).first for _ in range(max(20, int(100 * scale)))]
    out["first_ms"] = statistics.median(first) * 1000
    for streams in (16, 128):
        count = max(streams, int(streams * (6 if streams == 16 else 2) * scale))
        rates, costs = [], []
        for _ in range(3):
            before, began = cpu(pid) if pid else 0.0, time.perf_counter()
            await together(port, fast, done, streams, count)
            rates.append(count * CHUNKS / (time.perf_counter() - began))
            costs.append(((cpu(pid) - before) if pid else 0.0) / (count * CHUNKS) * 1e6)
        out[f"chunks_{streams}"] = statistics.median(rates)
        out[f"cpu_{streams}"] = statistics.median(costs)
    whole = request(port, "fast", stream=False)
    rates = []
    for _ in range(3):
        count, began = max(32, int(400 * scale)), time.perf_counter()
        await together(port, whole, b'"usage"', 16, count)
        rates.append(count / (time.perf_counter() - began))
    out["whole"] = statistics.median(rates)
    out["first_128_p99_ms"] = await first_under_load(port, paced, done)
    running = asyncio.gather(*(call(port, paced, done) for _ in range(256)))
    await asyncio.sleep(2.5)
    out["streams_mb"] = memory(pid) if pid else 0.0
    await running
    return out


# ── the targets ──────────────────────────────────────────────────────────────────────────────────


def nginx(folder: Path, port: int, upstream: int) -> list[str]:
    (folder / "nginx.conf").write_text(
        f"""daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream up {{ server 127.0.0.1:{upstream}; keepalive 512; }}
  server {{ listen 127.0.0.1:{port} backlog=2048; location / {{ proxy_pass http://up; proxy_buffering off;
    proxy_http_version 1.1; proxy_set_header Connection ""; }} }} }}
"""
    )
    return ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]


def litellm(folder: Path, port: int, upstream: int) -> list[str]:
    place = {"api_base": f"http://127.0.0.1:{upstream}/v1", "api_key": "sk-x"}
    names = ("fast", "paced", "brief")
    models = [{"model_name": name, "litellm_params": {"model": f"openai/{name}", **place}} for name in names]
    (folder / "litellm.yaml").write_text(
        json.dumps({"model_list": models, "general_settings": {"dangerously_permit_weak_or_unset_master_key": True}})
    )
    program = os.environ.get("LITELLM", "litellm")
    return [program, "--config", str(folder / "litellm.yaml"), "--port", str(port), "--host", "127.0.0.1"]


def callwright(folder: Path, port: int, upstream: int) -> list[str]:
    (folder / "callwright.toml").write_text(
        f"""[server]
port = {port}
[[backends]]
name = "bench"
url = "http://127.0.0.1:{upstream}/v1"
[[models]]
name = "fast"
dialect = "hermes"
[[models]]
name = "paced"
dialect = "hermes"
[[models]]
name = "brief"
dialect = "hermes"
"""
    )
    program = ROOT / ".venv" / "bin" / "callwright"
    return [str(program), "serve", "--config", str(folder / "callwright.toml")]


Target = Callable[[Path, int, int], list[str]]
TARGETS: dict[str, Target | None] = {"direct": None, "nginx": nginx, "litellm": litellm, "callwright": callwright}


@contextmanager
def process(command: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "output").open("wb") as output:
        running = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder)
        try:
            yield running
        finally:
            running.terminate()
            try:
                running.wait(20)
            except subprocess.TimeoutExpired:
                running.kill()


async def until_answers(port: int, running: subprocess.Popen[bytes], folder: Path) -> float:
    """Return the seconds from the start to the first answer."""
    began = time.perf_counter()
    data = request(port, "fast", stream=False)
    while time.perf_counter() - began < 120:
        if running.poll() is not None:
            raise SystemExit(f"{running.args} ended:\n{(folder / 'output').read_text()[-2000:]}")
        try:
            await asyncio.wait_for(call(port, data, b'"usage"'), 30)
            return time.perf_counter() - began
        except (ConnectionError, OSError):
            await asyncio.sleep(0.01)
    raise SystemExit(f"{running.args} does not answer:\n{(folder / 'output').read_text()[-2000:]}")


async def run(name: str, target: Target | None, upstream: int, scale: float) -> dict[str, float]:
    if target is None:
        return await measure(upstream, None, scale, 0.0, 0.0)
    folder, port = Path(tempfile.mkdtemp()), free_port()
    starts = []
    try:
        for _ in range(STARTS):
            with process(target(folder, port, upstream), folder) as running:
                starts.append(await until_answers(port, running, folder))
                if len(starts) < STARTS:
                    continue
                await asyncio.sleep(0.5)
                # LiteLLM is slower by orders of magnitude: fewer requests give the same median.
                fewer = scale * (0.2 if name == "litellm" else 1)
                return await measure(port, running.pid, fewer, memory(running.pid), statistics.median(starts))
        raise AssertionError
    finally:
        shutil.rmtree(folder, ignore_errors=True)


COLUMNS = {
    "whole": ("requests/s, whole, 16 at once", "{:,.0f}"),
    "chunks_16": ("chunks/s, 16 streams", "{:,.0f}"),
    "chunks_128": ("chunks/s, 128 streams", "{:,.0f}"),
    "cpu_16": ("CPU µs a chunk", "{:.1f}"),
    "first_ms": ("first byte p50, one paced stream, ms", "{:.2f}"),
    "first_128_p99_ms": ("first byte p99, 128 paced streams, ms", "{:.1f}"),
    "idle_mb": ("idle MB", "{:.0f}"),
    "streams_mb": ("MB at 256 paced streams", "{:.0f}"),
    "start": ("start to first answer, s", "{:.2f}"),
}


def table(results: dict[str, dict[str, float]]) -> str:
    lines = ["| | " + " | ".join(title for title, _ in COLUMNS.values()) + " |", "|---|" + "--:|" * len(COLUMNS)]
    for name, result in results.items():
        cells = ["–" if not result[key] else form.format(result[key]) for key, (_, form) in COLUMNS.items()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def ratios(results: dict[str, dict[str, float]]) -> str:
    """Return the figures that have a target value."""
    ours, lines = results.get("callwright"), []
    if ours and (other := results.get("litellm")):
        few, many = (ours[key] / other[key] for key in ("chunks_16", "chunks_128"))
        lines.append(f"Chunk rate: {few:.0f} times LiteLLM's at 16 streams, {many:.0f} times at 128 (target: 25).")
    if ours and (other := results.get("nginx")):
        few, many = (ours[key] / other[key] for key in ("chunks_16", "chunks_128"))
        added = ours["first_ms"] - other["first_ms"]
        lines.append(f"Chunk rate: {few:.0%} of nginx's at 16 streams, {many:.0%} at 128 (target: 40 %).")
        lines.append(f"First byte: {added:.2f} ms after nginx's (target: under 1).")
    return "\n".join(lines)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="send fewer requests, and write no file")
    parser.add_argument("--only", default=",".join(TARGETS), help="targets, separated by commas (default: %(default)s)")
    options = parser.parse_args()
    # An installed package is compiled, and so are the others here; a checkout that was edited is not.
    compileall.compile_dir(ROOT / "src", quiet=1)
    upstream = free_port()
    folder = Path(tempfile.mkdtemp())
    results: dict[str, dict[str, float]] = {}
    with process([sys.executable, str(ROOT / "scripts" / "bench_upstream.py"), str(upstream)], folder) as running:
        await until_answers(upstream, running, folder)
        for name in options.only.split(","):
            print(f"… {name}", file=sys.stderr, flush=True)
            results[name] = await run(name, TARGETS[name], upstream, 0.3 if options.quick else 1.0)
    machine = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores."
    report = f"{machine}\n\n{table(results)}\n\n{ratios(results)}\n"
    print(report)
    if not options.quick and set(results) == set(TARGETS):
        path = ROOT / "docs" / "benchmarks.md"
        before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
        path.write_text(f"{before}{BEGIN}\n{report}{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    uvloop.run(main())
