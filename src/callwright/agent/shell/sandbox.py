"""The sandbox of commands: bubblewrap, where it works, so that a command can change the workspace and nothing else.

In the sandbox the workspace is unchanged; the rest of the file system is read-only; the home folder, `/tmp` and `/run`
are private to the session and contain only the programs on the search path. Protected files of the workspace are empty
or read-only there. Whether the sandbox works is determined once, by running a program in it, and reported in `note`: no
command is ever run in a sandbox that does not work.
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
# Programs in these folders need more than their own folder, but must not expose the rest of it: the credentials of
# cargo are next to them, and those of programs with data in ~/.local/share.
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
    """`auto`: if it works. `always`: refuse to run commands without it."""
    network: bool = True
    """Whether commands can use the network."""


class ProtectedPaths(msgspec.Struct, frozen=True, kw_only=True):
    """Files and folders of the workspace that commands may not access, by their paths from its root."""

    hidden: tuple[str, ...] = ()
    """Empty in the sandbox."""
    read_only: tuple[str, ...] = ()
    immovable: tuple[str, ...] = ()
    """Folders that can be changed but neither moved nor replaced, so that protected files in them stay in place."""


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """Starts commands, in bubblewrap if possible. `note` tells the user which protection there is."""

    note: str
    arguments: tuple[str, ...] = ()
    """The program and the arguments that all commands share; empty without a sandbox."""
    workspace: Workspace | None = None
    find_protected: Callable[[], ProtectedPaths] = ProtectedPaths
    scratch_folder: Path | None = None

    @property
    def is_enabled(self) -> bool:
        """Whether commands are confined."""
        return bool(self.arguments)

    def wrap_command(self, command: Sequence[str], folder: Path) -> list[str]:
        """Return the argv that starts a command in a folder."""
        if not self.is_enabled:
            return list(command)
        return [*self.arguments, *self._iter_mask_arguments(), "--chdir", str(folder), "--", *command]

    def close(self) -> None:
        """Delete the session's private home folder."""
        if self.scratch_folder is not None:
            shutil.rmtree(self.scratch_folder, ignore_errors=True)

    def _iter_mask_arguments(self) -> Iterator[str]:
        if self.workspace is None or self.scratch_folder is None:
            return
        protected = self.find_protected()
        for path in (*protected.immovable, *protected.read_only, *protected.hidden):
            try:
                kind, target = (
                    self.workspace.get_kind(path),
                    str(self.workspace.root / self.workspace.resolve_path(path)),
                )
            except ToolError:
                continue  # a symlink out of the workspace: its target is read-only there, or invisible
            if kind == "missing":
                continue
            hides = path in protected.hidden
            nothing = self.scratch_folder / ("nothing" if kind == "folder" else "empty")
            bind = "--bind" if path in protected.immovable else "--ro-bind"
            yield from (bind, str(nothing) if hides else target, target)


NO_SANDBOX = Sandbox(note="Commands run without a sandbox, with your own permissions.")


def open_sandbox(
    workspace: Workspace,
    settings: SandboxSettings,
    *,
    environment: Mapping[str, str],
    find_protected: Callable[[], ProtectedPaths] = ProtectedPaths,
) -> Sandbox:
    """Open the sandbox for a session, or none with the reason in its note. Raises `ConfigError` if it is required."""
    if settings.mode == "never":
        return Sandbox(note=f"{NO_SANDBOX.note} It is disabled in the settings.")
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
    home_access = "cannot see your home folder" if home else "can read your home folder"
    network = "can use the network" if settings.network else "have no network"
    note = f"Commands run in a sandbox: they can change only the workspace, {home_access}, and {network}."
    return Sandbox(
        note=note, arguments=words, workspace=workspace, find_protected=find_protected, scratch_folder=scratch
    )


def _make_disabled(why: str, settings: SandboxSettings) -> Sandbox:
    if settings.mode == "always":
        raise ConfigError([f"the settings require a sandbox for commands, but {why}"])
    return Sandbox(note=f"{NO_SANDBOX.note} Reason: {why}.")


def _probe_sandbox(sandbox: Sandbox, folder: Path) -> str:
    """Return why no program can run in it; an empty string if one can."""
    command = sandbox.wrap_command(["true"], folder)
    try:
        process = subprocess.run(  # noqa: S603  # every word of it is ours
            command, capture_output=True, stdin=subprocess.DEVNULL, check=False, timeout=_PROBE_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    output = process.stderr.decode(errors="replace").strip().split("\n")[-1]
    return (output or f"exit code {process.returncode}") if process.returncode else ""


def _find_hidden_home(root: Path, environment: Mapping[str, str]) -> Path | None:
    """Return the home folder if it can be hidden: not if it is in the workspace or is the whole file system."""
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
    # A socket of a service, such as Docker's, works on a read-only file system too.
    private = {Path("/tmp").resolve(): "tmp", Path("/var/tmp").resolve(): "tmp", Path("/run").resolve(): "run"}  # noqa: S108
    if home is not None:
        private[home] = "home"
    for hidden, name in private.items():
        if hidden.is_dir():
            yield from ("--bind", str(scratch / name), str(hidden))
    yield from ("--setenv", "TMPDIR", "/tmp")  # noqa: S108
    for program in _iter_program_paths(root, home, list(private), environment):
        yield from ("--ro-bind", str(program), str(program))
    yield from ("--bind", str(root), str(root))


def _iter_program_paths(
    root: Path, home: Path | None, hidden: Sequence[Path], environment: Mapping[str, str]
) -> Iterator[Path]:
    """Yield the paths in hidden folders that programs on the search path need in order to run."""
    needed = [Path("/etc/resolv.conf").resolve()]
    entries = [Path(entry) for entry in environment.get("PATH", "").split(os.pathsep)]
    # A virtual environment of the project runs an interpreter elsewhere. In a foreign project its link may point
    # anywhere: only a path that is named like an interpreter and is in a folder of programs is exposed.
    interpreters = [(root / name).resolve() for name in _VENV_INTERPRETERS]
    entries += [
        real.parent for real in interpreters if real.parent.name == "bin" and real.name.startswith(("python", "pypy"))
    ]
    for folder in [entry.resolve() for entry in entries if entry.is_absolute()]:
        top = folder.relative_to(home).parts[0] if home and folder.is_relative_to(home) and folder != home else ""
        if home and top in _HOME_PROGRAM_PATHS:
            needed += [home / part for part in _HOME_PROGRAM_PATHS[top]]
        elif folder.name in _PROGRAM_FOLDERS and folder.parent not in {home, *hidden}:
            needed.append(folder.parent)
        else:
            needed.append(folder)
    for each in sorted(set(needed)):
        inside = any(each.is_relative_to(folder) and each != folder for folder in hidden)
        if inside and each.exists() and not each.is_relative_to(root) and not root.is_relative_to(each):
            yield each
