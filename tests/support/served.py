"""A gateway in a process of its own, as a user starts it: `callwright serve` with a configuration file.

    with Served(folder, configuration) as gateway:
        ...                       # gateway.url is its address
        gateway.turns()           # how many turns it served to whom

What it logs goes to `gateway.log`, a file in the folder: it says what happened when a test fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import IO, Any

from tests.support.upstream import closed_port

START_SECONDS = 20.0


class Served:
    """The gateway; `configuration` is TOML without its `[server]` table, `server` the lines of that."""

    def __init__(self, folder: Path, configuration: str, server: str = "") -> None:
        self.port = closed_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "gateway.log"
        self._file = folder / "callwright.toml"
        self._file.write_text(f"[server]\nport = {self.port}\n{server}\n{configuration}", encoding="utf-8")
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None

    def __enter__(self) -> Served:
        self._output = self.log.open("wb")
        command = [sys.executable, "-m", "callwright", "serve", "--config", str(self._file)]
        # Variables of the person who runs the tests must not change what the file says.
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("CALLWRIGHT", "PROXY"))
        }
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self._output, env=environment)
        try:
            self._wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process
        assert self._output
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=10) as response:
            return json.load(response)

    def turns(self) -> Counter[str]:
        """How many turns it served to which client, whatever became of them."""
        return Counter({row["client"]: row["requests"] for row in self.get("/v1/usage?by=client")["data"]})

    def _wait(self) -> None:
        assert self._process
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                self.get("/health")
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
            else:
                return
        raise AssertionError(f"the gateway did not start:\n{self.log.read_text(encoding='utf-8')}")
