"""Whether the sandbox can be tested here: bubblewrap must be there, and the kernel must allow what it does.

Without bubblewrap its tests are skipped; in continuous integration (CI is set) that is a failure. Where the kernel
allows nobody a user namespace they are skipped everywhere, and say so.
"""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

MISSING = "bubblewrap is not installed (apt-get install bubblewrap)"


def needed() -> None:
    """Skip or fail unless a sandbox can be made here."""
    if shutil.which("bwrap") is None:
        if os.environ.get("CI"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    tried = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "true"], capture_output=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"user namespaces are not allowed on this machine: {tried.stderr.decode().strip()}")
