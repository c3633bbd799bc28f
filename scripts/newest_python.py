"""Run the unit tests on the newest Python of this machine, in a separate environment: `make test-newest`.

The script looks for `python3.N` in PATH and in pyenv. It does nothing if none is newer than its own Python.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = ROOT / ".cache" / "newest"
TESTS = ("tests/unit", "tests/integration/store")
"""The unit tests, and the store, whose database is a part of Python."""
SUPPORTED = range(12, 14)
"""The minor versions after 3.11 in the classifiers of pyproject.toml."""


def find_interpreters() -> dict[int, Path]:
    """Return the interpreters by minor version: from PATH, otherwise from pyenv."""
    found: dict[int, Path] = {}
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for path in sorted(pyenv.glob("3.*/bin/python3.*")):
        if match := re.fullmatch(r"python3\.(\d+)", path.name):
            found[int(match[1])] = path
    for minor in SUPPORTED:
        if (path_found := shutil.which(f"python3.{minor}")) and works(Path(path_found), minor):
            found[minor] = Path(path_found)
    return {minor: path for minor, path in found.items() if minor in SUPPORTED}


def works(python: Path, minor: int) -> bool:
    """Return whether the interpreter starts: pyenv adds a command to PATH for every version, even a disabled one."""
    ran = subprocess.run([python, "-c", "import sys; print(sys.version_info[1])"], capture_output=True, check=False)
    return ran.returncode == 0 and ran.stdout.decode().strip() == str(minor)


def prepare(python: Path) -> Path:
    """Return the interpreter of an environment like that of `make setup`, recreated when the requirements change."""
    stamp, inner = ENVIRONMENT / ".stamp", ENVIRONMENT / "bin" / "python"
    wanted = "\n".join([str(python), *(path.read_text() for path in sorted((ROOT / "requirements").glob("*.txt")))])
    if stamp.is_file() and stamp.read_text() == wanted:
        return inner
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    subprocess.run([python, "-m", "venv", ENVIRONMENT], check=True)
    pip = [inner, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    subprocess.run([*pip, "--require-hashes", "-r", ROOT / "requirements" / "dev.txt"], check=True)
    subprocess.run([*pip, "--require-hashes", "--no-deps", "-r", ROOT / "requirements" / "local.txt"], check=True)
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "-e", ROOT], check=True)
    stamp.write_text(wanted)
    return inner


def main() -> int:
    found = find_interpreters()
    newest = max(found, default=0)
    if newest <= sys.version_info[1]:
        print(f"No Python newer than 3.{sys.version_info[1]} is here; there is nothing more to test.")
        return 0
    python = prepare(found[newest])
    jobs = os.environ.get("JOBS", "2")
    print(f"The unit tests on {found[newest]}:", flush=True)
    command = [python, "-m", "pytest", "-n", jobs, "--dist", "worksteal", "-q", "-p", "no:cacheprovider", *TESTS]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
