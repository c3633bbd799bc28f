"""`callwright codex`: the program that `kind = "codex"` runs, and the account that it asks with.

The program is fetched by npm, from whatever registry npm is set to, and checked against the sums that are written here.
Only the program itself is kept of the package: it needs neither Node nor anything else.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from base64 import b64encode
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from callwright.errors import BackendError

__all__ = ["add_command", "install_codex"]

# `dist.integrity` of @openai/codex 0.166.0 for each platform, as the registry has it.
_CHECKSUMS = {
    "linux-x64": "CxDm3+D1cpbGJeHrdzINoG+3wn9BVncP4qpZaaNYkxe8iPtRJOYyCJnnPoVjWRIBvI9vPKbRoifsMSA5xDaUpw==",
    "linux-arm64": "w0ScAsBr9aZKtIFrh6HN6KU2yjKKeSCzYfbb7DB0Ccj4BYPzeZtUeQprbycLCwuX3AFQdbdjapmLho2iot74jQ==",
    "darwin-x64": "Vj5wXJPizKmrzNtnRNQf9PP6FJkG3iJU/UO3NE4WvkENZGoQfmImdwf4MVRI5NgwjSuC6LT0HbBRHPVVnwGHuw==",
    "darwin-arm64": "5fWH6qqUInACcRADIewjlnRxDb4QLe0uriwehiZz0+viuAAB8I+WWefqw4xwHvyKaxeiGX4uK56+vrgfvFk3FQ==",
    "win32-x64": "NS8Ps5oG5r19pCrMCUXwUqOui6odnUIoBlQkrjCJ+h1k6KiwCzC/+mI9d3nSZCqFoVONPBTmqyq8NYq3YaFGyA==",
    "win32-arm64": "LWO1cyGlxbKgeUM7QJ1a6QMSsJi++3PqgIi6BmIUBoj/kzZqRIR69UDMQgeU/9izzJFYMSbwt++lHnUFyjQXlA==",
}
_ARCHITECTURES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


def add_command(commands: Any) -> None:
    """Add the command to the command line."""
    from callwright.backends.codex.binary import INSTALL_FOLDER, VERSION

    parser = commands.add_parser(
        "codex",
        help='the program and the account of kind = "codex"',
        description='Install the program that a backend of kind = "codex" runs, and log in to its account.',
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    fetching = actions.add_parser("install", help=f"fetch codex {VERSION} (172 MB) with npm")
    fetching.add_argument("--folder", type=Path, default=INSTALL_FOLDER, help="where to; default: %(default)s")
    fetching.set_defaults(run=_run_install)
    account = actions.add_parser("login", help="log in, for a backend without a url")
    account.add_argument(
        "--home", type=Path, default=INSTALL_FOLDER / "home", help="that backend's home; default: %(default)s"
    )
    account.add_argument("--with-api-key", action="store_true", help="read an API key from standard input")
    account.add_argument("--device-auth", action="store_true", help="log in with a browser on another machine")
    account.set_defaults(run=_run_login)


def _run_install(arguments: argparse.Namespace) -> int:
    print(install_codex(arguments.folder))
    return 0


def _run_login(arguments: argparse.Namespace) -> int:
    from callwright.backends.codex.binary import find_binary

    program = find_binary("")
    if program is None:
        raise BackendError("codex is not installed; run: callwright codex install")
    home = arguments.home.expanduser()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    options = [f"--{name.replace('_', '-')}" for name in ("with_api_key", "device_auth") if getattr(arguments, name)]
    # Where the gateway's child looks for it, and not in the keyring of whoever is at the screen.
    command = [str(program), "login", "-c", 'cli_auth_credentials_store="file"', *options]
    environment = {**os.environ, "CODEX_HOME": str(home)}
    return subprocess.run(command, env=environment, check=False).returncode  # noqa: S603 - our own words


def install_codex(folder: Path) -> Path:
    """Fetch the program into a folder, unless it is there. Raises `BackendError` and `OSError`."""
    from callwright.backends.codex.binary import VERSION, get_install_path

    program = get_install_path(folder)
    if program.is_file():
        return program
    name = _detect_platform()
    packed = _fetch_package(f"@openai/codex@{VERSION}-{name}")
    if b64encode(hashlib.sha512(packed).digest()).decode() != _CHECKSUMS[name]:
        raise BackendError(f"what npm gave for codex {VERSION} is something else; look at the registry that it uses")
    program.parent.mkdir(parents=True, exist_ok=True)
    partial = program.with_suffix(".part")
    partial.write_bytes(_extract_program(packed, program.name))
    partial.chmod(0o755)
    partial.replace(program)
    return program


def _fetch_package(package: str) -> bytes:
    """The archive of a package, from the registry that npm is set to."""
    npm = shutil.which("npm")
    if npm is None:
        raise BackendError("npm is needed to fetch codex; install Node, or set the backend's path to a codex")
    with TemporaryDirectory() as folder:
        command = [npm, "pack", "--silent", package, "--pack-destination", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
        if done.returncode:
            raise BackendError(f"npm cannot fetch {package}: {done.stderr.strip() or 'it does not say why'}")
        (archive,) = Path(folder).iterdir()
        return archive.read_bytes()


def _detect_platform() -> str:
    name = f"{sys.platform}-{_ARCHITECTURES.get(platform.machine().lower(), platform.machine())}"
    if name not in _CHECKSUMS:
        raise BackendError(f"there is no codex for {name}; it runs on {', '.join(_CHECKSUMS)}")
    return name


def _extract_program(package: bytes, name: str) -> bytes:
    with tarfile.open(fileobj=BytesIO(package), mode="r:gz") as archive:
        for member in archive:
            if member.name.endswith(f"/bin/{name}") and (file := archive.extractfile(member)):
                return file.read()
    raise BackendError(f"the package of codex has no bin/{name}")
