"""Where commands run: in bubblewrap where that works, so that a command can change the workspace and nothing else.

In the sandbox the workspace is as it is; the rest of the file system can be read and not written; the home folder,
`/tmp` and `/run` are the session's own, with nothing in them but the programs that the search path leads to. Protected
files of the workspace are empty there, or cannot be changed. Whether there is a sandbox is found out once, by running
something in it, and said in `note`: a command is never tried in a sandbox that does not work.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from callwright.agent.workspace.workspace import Workspace
from callwright.errors import ConfigError, ToolError

__all__ = ["NO_SANDBOX", "ProtectedPaths", "Sandbox", "SandboxSettings", "open_sandbox"]

_PROBE_TIMEOUT_S = 20
# Programs of these folders need more than their own folder, and must not take the rest of it with them: beside them
# lie the credentials of cargo, and of whatever keeps its data in ~/.local/share.
_HOME_PROGRAM_PATHS = {
    ".cargo": (".cargo/bin", ".rustup"),
    ".local": (
        ".local/bin",
        ".local/lib",
        ".local/pipx",
        *(f".local/share/{it}" for it in ("pipx", "uv", "mise", "pnpm")),
    ),
}
_PROGRAM_FOLDERS = frozenset({"bin", "sbin", "shims", "Scripts"})
_VENV_INTERPRETERS = (".venv/bin/python", "venv/bin/python")


class SandboxSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether commands run in a sandbox, and what they may do there."""

    mode: Literal["auto", "always", "never"] = "auto"
    """`auto`: where it works. `always`: not at all without one."""
    network: bool = True
    """Whether commands reach the network."""


class ProtectedPaths(msgspec.Struct, frozen=True, kw_only=True):
    """Files and folders of the workspace that commands may not have, by their paths from its root."""

    hidden: tuple[str, ...] = ()
    """Empty in the sandbox."""
    read_only: tuple[str, ...] = ()
    immovable: tuple[str, ...] = ()
    """Folders that can be changed, and neither moved nor replaced: what is protected in them stays where it is."""


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """How a command is started. `note` says to a person what protects them, in a sentence."""

    note: str
    arguments: tuple[str, ...] = ()
    """The program, and what is the same for every command; empty without a sandbox."""
    workspace: Workspace | None = None
    find_protected: Callable[[], ProtectedPaths] = ProtectedPaths
    scratch_folder: Path | None = None

    @property
    def is_enabled(self) -> bool:
        """Whether commands are confined."""
        return bool(self.arguments)

    def wrap_command(self, command: Sequence[str], folder: Path) -> list[str]:
        """The words to start a command with, in a folder."""
        if not self.is_enabled:
            return list(command)
        return [*self.arguments, *self._iter_mask_arguments(), "--chdir", str(folder), "--", *command]

    def close(self) -> None:
        """Delete what the session had for a home folder."""
        if self.scratch_folder is not None:
            shutil.rmtree(self.scratch_folder, ignore_errors=True)

    def _iter_mask_arguments(self) -> Iterator[str]:
        if self.workspace is None or self.scratch_folder is None:
            return
        protected = self.find_protected()
        for path in (*protected.immovable, *protected.read_only, *protected.hidden):
            try:
                kind, there = (
                    self.workspace.get_kind(path),
                    str(self.workspace.root / self.workspace.resolve_path(path)),
                )
            except ToolError:
                continue  # a symlink that leads out: read-only there, or not to be seen
            if kind == "missing":
                continue
            hides = path in protected.hidden
            nothing = self.scratch_folder / ("nothing" if kind == "folder" else "empty")
            bind = "--bind" if path in protected.immovable else "--ro-bind"
            yield from (bind, str(nothing) if hides else there, there)


NO_SANDBOX = Sandbox(note="Commands run without a sandbox: they can do what you can do.")


def open_sandbox(
    workspace: Workspace,
    settings: SandboxSettings,
    *,
    environment: Mapping[str, str],
    find_protected: Callable[[], ProtectedPaths] = ProtectedPaths,
) -> Sandbox:
    """The sandbox for a session, or none, with the reason in its note. `ConfigError` when there must be one."""
    if settings.mode == "never":
        return Sandbox(note=f"{NO_SANDBOX.note} The settings say so.")
    program = shutil.which("bwrap", path=environment.get("PATH", os.defpath))
    if program is None:
        return _make_disabled("bubblewrap is not installed", settings)
    scratch = Path(tempfile.mkdtemp(prefix="callwright-sandbox-")).resolve()
    for folder in ("home", "tmp", "run", "nothing"):
        (scratch / folder).mkdir()
    (scratch / "empty").touch(mode=0o444)
    home = _find_hidden_home(workspace.root, environment)
    words = (program, *_iter_arguments(workspace.root, home, scratch, settings, environment))
    sandbox = Sandbox(
        note="", arguments=words, workspace=workspace, find_protected=find_protected, scratch_folder=scratch
    )
    if flaw := _probe_sandbox(sandbox, workspace.root):
        sandbox.close()
        return _make_disabled(f"bubblewrap does not work here ({flaw})", settings)
    seen = "see nothing of your home folder" if home else "your home folder is not hidden from them"
    network = "they reach the network" if settings.network else "they have no network"
    note = f"Commands run in a sandbox: they can change only the workspace, {seen}, and {network}."
    return Sandbox(
        note=note, arguments=words, workspace=workspace, find_protected=find_protected, scratch_folder=scratch
    )


def _make_disabled(why: str, settings: SandboxSettings) -> Sandbox:
    if settings.mode == "always":
        raise ConfigError([f"the settings want a sandbox for commands, and {why}"])
    return Sandbox(note=f"{NO_SANDBOX.note} The reason: {why}.")


def _probe_sandbox(sandbox: Sandbox, folder: Path) -> str:
    """Why nothing can be run in it; empty when something can."""
    command = sandbox.wrap_command(["true"], folder)
    try:
        done = subprocess.run(  # noqa: S603  # every word of it is ours
            command, capture_output=True, stdin=subprocess.DEVNULL, check=False, timeout=_PROBE_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = done.stderr.decode(errors="replace").strip().split("\n")[-1]
    return (said or f"exit code {done.returncode}") if done.returncode else ""


def _find_hidden_home(root: Path, environment: Mapping[str, str]) -> Path | None:
    """The home folder, where it can be hidden: not when it is in the workspace, or is the whole file system."""
    home = Path(environment.get("HOME") or Path.home()).resolve()
    return home if home.is_dir() and home.parent != home and not home.is_relative_to(root) else None


def _iter_arguments(
    root: Path, home: Path | None, scratch: Path, settings: SandboxSettings, environment: Mapping[str, str]
) -> Iterator[str]:
    yield from ("--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts")
    yield from ("--unshare-cgroup-try", "--cap-drop", "ALL")
    if not settings.network:
        yield "--unshare-net"
    yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    # A socket of a service, such as Docker's, can be used on a read-only file system too.
    own = {Path("/tmp").resolve(): "tmp", Path("/var/tmp").resolve(): "tmp", Path("/run").resolve(): "run"}  # noqa: S108
    if home is not None:
        own[home] = "home"
    for hidden, name in own.items():
        if hidden.is_dir():
            yield from ("--bind", str(scratch / name), str(hidden))
    yield from ("--setenv", "TMPDIR", "/tmp")  # noqa: S108
    for program in _iter_program_paths(root, home, list(own), environment):
        yield from ("--ro-bind", str(program), str(program))
    yield from ("--bind", str(root), str(root))


def _iter_program_paths(
    root: Path, home: Path | None, hidden: Sequence[Path], environment: Mapping[str, str]
) -> Iterator[Path]:
    """What must be seen of the hidden folders for the programs of the search path to run, and names to be resolved."""
    wanted = [Path("/etc/resolv.conf").resolve()]
    entries = [Path(entry) for entry in environment.get("PATH", "").split(os.pathsep)]
    # A virtual environment of the project runs an interpreter that is elsewhere. In a project of somebody else this may
    # be a link to anything: what is shown must be called like one, and be where programs are.
    interpreters = [(root / name).resolve() for name in _VENV_INTERPRETERS]
    entries += [
        real.parent for real in interpreters if real.parent.name == "bin" and real.name.startswith(("python", "pypy"))
    ]
    for folder in [entry.resolve() for entry in entries if entry.is_absolute()]:
        top = folder.relative_to(home).parts[0] if home and folder.is_relative_to(home) and folder != home else ""
        if home and top in _HOME_PROGRAM_PATHS:
            wanted += [home / part for part in _HOME_PROGRAM_PATHS[top]]
        elif folder.name in _PROGRAM_FOLDERS and folder.parent not in {home, *hidden}:
            wanted.append(folder.parent)
        else:
            wanted.append(folder)
    for each in sorted(set(wanted)):
        inside = any(each.is_relative_to(folder) and each != folder for folder in hidden)
        if inside and each.exists() and not each.is_relative_to(root) and not root.is_relative_to(each):
            yield each
