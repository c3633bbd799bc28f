"""`callwright codex`: install the program that `kind = "codex"` runs, and log in to its account.

npm downloads the package from its configured registry, and the checksums below verify it. Only the program is kept of
the package; it does not need Node.
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

from callwright.cli.subcommands import add_subcommand
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
        help='install Codex and log in, for backends with kind = "codex"',
        description='Install the program that backends with kind = "codex" run, and log in to its account.',
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    about = f"install Codex {VERSION} with npm (172 MB)"
    install = add_subcommand(actions, "install", about)
    install.add_argument(
        "--folder", type=Path, default=INSTALL_FOLDER, metavar="DIR", help="install folder (default: %(default)s)"
    )
    install.set_defaults(run=_run_install)
    about = "log in, for backends without a url"
    login = add_subcommand(actions, "login", about)
    login.add_argument(
        "--home",
        type=Path,
        default=INSTALL_FOLDER / "home",
        metavar="DIR",
        help="CODEX_HOME of the backend (default: %(default)s)",
    )
    login.add_argument("--with-api-key", action="store_true", help="read an API key from standard input")
    login.add_argument("--device-auth", action="store_true", help="log in with a browser on another machine")
    login.set_defaults(run=_run_login)


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
    # The gateway's child process reads the file; it cannot read the keyring of the user who logs in.
    command = [str(program), "login", "-c", 'cli_auth_credentials_store="file"', *options]
    environment = {**os.environ, "CODEX_HOME": str(home)}
    return subprocess.run(command, env=environment, check=False).returncode  # noqa: S603 - no input of others


def install_codex(folder: Path) -> Path:
    """Install the program into a folder unless it is already there. Raises `BackendError` and `OSError`."""
    from callwright.backends.codex.binary import VERSION, get_install_path

    program = get_install_path(folder)
    if program.is_file():
        return program
    name = _detect_platform()
    packed = _fetch_package(f"@openai/codex@{VERSION}-{name}")
    if b64encode(hashlib.sha512(packed).digest()).decode() != _CHECKSUMS[name]:
        raise BackendError(f"the package of codex {VERSION} has the wrong checksum; check which registry npm uses")
    program.parent.mkdir(parents=True, exist_ok=True)
    partial = program.with_suffix(".part")
    partial.write_bytes(_extract_program(packed, program.name))
    partial.chmod(0o755)
    partial.replace(program)
    return program


def _fetch_package(package: str) -> bytes:
    """Download a package from the registry that npm is configured with, and return its archive."""
    npm = shutil.which("npm")
    if npm is None:
        raise BackendError("installing codex needs npm; install Node.js, or set the backend's path to a codex program")
    with TemporaryDirectory() as folder:
        command = [npm, "pack", "--silent", package, "--pack-destination", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no input of others
        if done.returncode:
            raise BackendError(f"npm could not download {package}: {done.stderr.strip() or 'no error message'}")
        (archive,) = Path(folder).iterdir()
        return archive.read_bytes()


def _detect_platform() -> str:
    name = f"{sys.platform}-{_ARCHITECTURES.get(platform.machine().lower(), platform.machine())}"
    if name not in _CHECKSUMS:
        raise BackendError(f"codex does not support {name}; supported platforms: {', '.join(_CHECKSUMS)}")
    return name


def _extract_program(package: bytes, name: str) -> bytes:
    with tarfile.open(fileobj=BytesIO(package), mode="r:gz") as archive:
        for member in archive:
            if member.name.endswith(f"/bin/{name}") and (file := archive.extractfile(member)):
                return file.read()
    raise BackendError(f"the codex package has no bin/{name}")
