"""Run a command while busy loops occupy the processor: `make test-loaded`. The loops always end with the command.

    python scripts/loaded.py [--loops 4] COMMAND …

A busy loop also ends by itself when this process dies.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys

LOOP = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loops", type=int, default=4, help="number of loops (default: %(default)s)")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="command to run")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    loops = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(given.loops)]
    try:
        return subprocess.run(given.command, check=False).returncode
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


if __name__ == "__main__":
    sys.exit(main())
