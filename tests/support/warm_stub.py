"""`python -S -E warm_stub.py SOCKET SCRIPT …`: what `tests.support.warm` starts, for somebody who knows only commands.

It hands its environment, folder and open files over, and ends as the other process does.
"""

from __future__ import annotations

import json
import os
import socket
import sys

address, *words = sys.argv[1:]
order = json.dumps({"words": words, "cwd": os.getcwd(), "environment": dict(os.environ)}).encode()  # noqa: PTH109
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as ends:
    ends.connect(address)
    socket.send_fds(ends, [order], [0, 1, 2])
    ends.recv(100)
    for file in (0, 1, 2):
        os.close(file)
    os._exit(int(ends.recv(100)) & 255)
