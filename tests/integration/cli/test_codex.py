"""`callwright codex`: what is fetched is the program that was meant, and an account goes where it is looked for."""

from __future__ import annotations

import hashlib
import io
import os
import sys
import tarfile
from base64 import b64encode
from pathlib import Path

import pytest

from callwright.backends.codex import binary
from callwright.cli import codex, main

PROGRAM = f"""#!{sys.executable}
import os, sys
open(os.path.join(os.environ["CODEX_HOME"], "said"), "w").write(" ".join(sys.argv[1:]))
sys.exit(7)
""".encode()


def package(name: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, content in (("package/vendor/x/codex-path/rg", b"rg"), (name, PROGRAM)):
            member = tarfile.TarInfo(path)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


NPM = f"""#!{sys.executable}
import os, shutil, sys
here = os.path.dirname(__file__)
open(os.path.join(here, "asked"), "a").write(sys.argv[-3] + "\\n")
if not os.path.exists(os.path.join(here, "packed")):
    sys.exit("npm error 404")
shutil.copy(os.path.join(here, "packed"), os.path.join(sys.argv[-1], "openai-codex.tgz"))
"""


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an npm that gives what lies there as `packed`, and notes what it is asked for."""
    folder = tmp_path / "npm"
    folder.mkdir()
    (folder / "npm").write_text(NPM)
    (folder / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(codex, "_detect_platform", lambda: "linux-x64")
    return folder


def offer(npm: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> bytes:
    packed = package(name)
    (npm / "packed").write_bytes(packed)
    monkeypatch.setitem(codex._CHECKSUMS, "linux-x64", b64encode(hashlib.sha512(packed).digest()).decode())
    return packed


def test_the_program_is_fetched_once_and_can_be_run(
    npm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    offer(npm, monkeypatch, "package/vendor/x/bin/codex")
    for _ in range(2):
        assert main(["codex", "install", "--folder", str(tmp_path)]) == 0
    program = binary.get_install_path(tmp_path)
    assert capsys.readouterr().out.split() == [str(program)] * 2
    assert program.read_bytes() == PROGRAM
    assert os.access(program, os.X_OK)
    assert (npm / "asked").read_text() == "@openai/codex@0.166.0-linux-x64\n"
    assert list(program.parent.iterdir()) == [program]


def test_what_is_not_the_pinned_program_is_not_installed(
    npm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(words: str) -> None:
        assert main(["codex", "install", "--folder", str(tmp_path)]) == 2
        assert words in capsys.readouterr().err
        assert not binary.get_install_path(tmp_path).exists()

    fails("npm could not download @openai/codex@0.166.0-linux-x64: npm error 404")
    (npm / "packed").write_bytes(offer(npm, monkeypatch, "package/vendor/x/bin/codex") + b"\0")
    fails("has the wrong checksum")
    offer(npm, monkeypatch, "package/other")
    fails("has no bin/codex")
    monkeypatch.setenv("PATH", "")
    fails("installing codex needs npm")


def test_a_machine_without_a_program_is_told_which_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "s390x")
    with pytest.raises(codex.BackendError, match=r"does not support \w+-s390x; supported platforms: linux-x64, "):
        codex._detect_platform()
    monkeypatch.setattr("platform.machine", lambda: "AMD64")
    monkeypatch.setattr(sys, "platform", "win32")
    assert codex._detect_platform() == "win32-x64"


def test_a_login_is_codex_s_own_in_the_home_of_the_backend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(binary, "INSTALL_FOLDER", tmp_path)
    monkeypatch.setenv("PATH", "")
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "some" / "home"
    arguments = ["codex", "login", "--home", str(home), "--with-api-key"]
    assert main(arguments) == 2
    assert "callwright codex install" in capsys.readouterr().err
    program = binary.get_install_path(tmp_path)
    program.parent.mkdir()
    program.write_bytes(PROGRAM)
    program.chmod(0o755)
    assert main(arguments) == 7
    assert (home / "said").read_text() == 'login -c cli_auth_credentials_store="file" --with-api-key'
    assert home.stat().st_mode & 0o777 == 0o700
