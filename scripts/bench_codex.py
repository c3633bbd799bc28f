"""Measure `kind = "codex"`: the memory of the child process, and the time that it adds to a turn.

    make bench-codex                         # prints the table and writes it into docs/backends.md

The provider is `tests/support/upstream.py`, which answers at once, so nearly all of the time is spent in Codex. The
comparison is the same turn over `kind = "responses"`.
"""

from __future__ import annotations

import asyncio
import os
import platform
import re
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from callwright.backends import open_backend
from callwright.backends.base import Backend
from callwright.backends.codex import CodexBackend
from callwright.backends.codex.binary import VERSION
from callwright.backends.settings import BackendKind, BackendSettings
from callwright.model import Message, Request, Text
from tests.support.codex import PROGRAM, responded, text
from tests.support.upstream import Upstream

PAGE = ROOT / "docs" / "backends.md"
TABLE = re.compile(r"(?<=<!-- bench-codex:begin -->\n).*(?=<!-- bench-codex:end -->)", re.DOTALL)
REQUEST = Request("m", (Message("user", (Text("Hi"),)),))
TURNS = 100
AT_ONCE = 20


def megabytes(pid: int) -> tuple[int, int]:
    """Return the memory of a process, and the part that is not shared."""
    status = dict(re.findall(r"(VmRSS|RssAnon):\s+(\d+)", Path(f"/proc/{pid}/status").read_text()))
    return round(int(status["VmRSS"]) / 1024), round(int(status["RssAnon"]) / 1024)


async def turn(backend: Backend) -> tuple[float, float]:
    """Run a turn; return the milliseconds to the first event and to the end."""
    begun, first = time.perf_counter(), 0.0
    async for _ in backend.stream_response(REQUEST, {}):
        first = first or time.perf_counter() - begun
    return first * 1000, (time.perf_counter() - begun) * 1000


def opened(kind: BackendKind, provider: Upstream, path: str = "") -> Backend:
    return open_backend(BackendSettings(name=kind, kind=kind, url=f"{provider.url}/v1", path=path, retries=0))


async def latency(backend: Backend) -> str:
    times = [await turn(backend) for _ in range(TURNS)]
    first, whole = (statistics.median(column) for column in zip(*times, strict=True))
    return f"{first:.1f} ms, {whole:.1f} ms"


async def measured() -> dict[str, str]:
    with Upstream(responded(*text("Yes."))) as provider:
        plain = opened("responses", provider)
        codex = opened("codex", provider, str(PROGRAM))
        assert isinstance(codex, CodexBackend)
        begun = time.perf_counter()
        await codex.child.wait_until_ready()
        rows = {"from nothing to ready": f"{(time.perf_counter() - begun) * 1000:.0f} ms"}
        await asyncio.sleep(1)
        rows["memory when idle (of it its own)"] = "{} MB ({} MB)".format(*megabytes(codex.child.pid))
        await turn(codex)
        rows["a turn: first word, end"] = await latency(codex)
        rows['the same over `kind = "responses"`'] = await latency(plain)
        rows[f"memory after {TURNS} turns"] = "{} MB ({} MB)".format(*megabytes(codex.child.pid))
        begun = time.perf_counter()
        await asyncio.gather(*(turn(codex) for _ in range(AT_ONCE)))
        rows[f"{AT_ONCE} turns at once, all of them"] = f"{(time.perf_counter() - begun) * 1000:.0f} ms"
        rows["memory after that"] = "{} MB ({} MB)".format(*megabytes(codex.child.pid))
        await plain.close()
        await codex.close()
    return rows


def main() -> int:
    rows = asyncio.run(measured())
    machine = f"codex {VERSION}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    table = "\n".join([f"| {machine} | |", "|---|--:|", *(f"| {what} | {value} |" for what, value in rows.items())])
    print(table)
    page, found = TABLE.subn(lambda _: f"\n{table}\n\n", PAGE.read_text(encoding="utf-8"))
    if found != 1:
        print(f"{PAGE.name}: expected one pair of markers, found {found}", file=sys.stderr)
        return 1
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
