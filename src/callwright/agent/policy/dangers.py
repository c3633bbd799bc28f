"""What makes some programs dangerous that no rule over flags and words can say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from callwright.agent.policy.command import Command
from callwright.agent.policy.options import Options, options_of
from callwright.agent.policy.paths import region, resolve
from callwright.agent.policy.values import Allowance, Finding
from callwright.agent.policy.words import Word
from callwright.agent.policy.wrappers import Item, Nested, Writes

__all__ = ["assigned", "dangers"]

_RUNS_BY_CONFIG = re.compile(
    r"(?i)alias\..*|core\.(pager|editor|sshcommand|askpass|fsmonitor|gitproxy|hookspath)|pager\..*|.*\.(textconv|command|cmd|driver"
    r"|program|include.path|helper|process|clean|smudge|path)|diff\.external|sequence\.editor|uploadpack\.packobjectshook|gpg\.program"
)
_CHANGES_WHAT_RUNS = re.compile(
    r"PATH|LD_\w+|DYLD_\w+|BASH_ENV|ENV|PROMPT_COMMAND|PERL5OPT|PERL5LIB|RUBYOPT|PYTHONSTARTUP|PYTHONHOME|PYTHONINSPECT"
    r"|BASH_FUNC\w*|GIT_CONFIG\w*|GIT_EXEC_PATH|SHELLOPTS|BASHOPTS|CDPATH|GCONV_PATH|JAVA_TOOL_OPTIONS|MAKEFLAGS|SHELL|PS4"
)
_HOLDS_A_COMMAND = re.compile(
    r"(GIT_)?(PAGER|EDITOR|SEQUENCE_EDITOR|SSH_COMMAND|SSH|EXTERNAL_DIFF|ASKPASS|PROXY_COMMAND)|VISUAL|BROWSER|LESSOPEN"
    r"|LESSCLOSE|RSYNC_RSH|MANPAGER|SUDO_ASKPASS"
)
_LOADS = re.compile(r"(^|\s)(-r|--require|--import|--loader|--experimental-loader|--inspect\S*)\b")


def dangers(command: Command, options: Options, workspace: str) -> Iterator[Item]:
    """What is dangerous about a command beyond what the rules say."""
    look = _LOOKS.get(command.name)
    if look:
        yield from look(command, options, workspace)
    elif command.name.startswith("mkfs"):
        yield Finding("critical", "makes a new file system, and whatever was there is gone")


def assigned(name: str, value: str) -> Iterator[Item]:
    """What an assignment does to the commands after it."""
    if _HOLDS_A_COMMAND.fullmatch(name):
        yield Nested(value.lstrip("|"))
    elif _CHANGES_WHAT_RUNS.fullmatch(name) or (name == "NODE_OPTIONS" and _LOADS.search(value)):
        yield Finding("high", f"{name} changes what other commands do", "ask")


def _rm(command: Command, options: Options, workspace: str) -> Iterator[Item]:
    recursive, forced = options.any(("-r", "-R", "--recursive")), options.any(("-f", "--force"))
    if options.has("--no-preserve-root"):
        yield Finding("critical", "deletes from the root on")
    if recursive:  # with or without `-f`: nobody is at the terminal whom it could ask
        yield Finding("critical", "deletes whole folders without a question, and nothing brings them back")
        return
    for operand in options.operands:
        where = region(resolve(operand, command.place, workspace))
        if where == "inside":
            yield Finding("medium", f"deletes {operand.bare}")
        elif where == "unknown":
            yield Finding("high", "it cannot be seen what it deletes")
        elif forced or where in ("system", "device"):
            yield Finding("critical", f"deletes {operand.bare}")
        else:
            yield Finding("high", f"deletes {operand.bare}")
    if not options.operands:
        yield Finding("medium", "deletes files")


def _dd(command: Command, _: Options, __: str) -> Iterator[Item]:
    if any(word.bare.startswith("of=") for word in command.argv):
        yield Finding("critical", "writes over a device or file, block by block")
    else:
        yield Finding("medium", "copies blocks")


def _git(command: Command, options: Options, _: str) -> Iterator[Item]:
    for setting in options.value("-c", "--config-env"):
        key, _sign, value = setting.text.partition("=")
        if _RUNS_BY_CONFIG.fullmatch(key) or not setting.known:
            yield Finding("high", f"the setting {key} makes git run something", "ask")
            yield Nested(value.lstrip("!"))
    texts = [*options.value("--exec", "-x", "--upload-pack", "--receive-pack", "--open-files-in-pager", "--extcmd")]
    if options.starts([("rebase", "push", "fetch", "clone", "pull", "grep", "difftool", "filter-branch", "ls-remote")]):
        yield from (Nested(text.text) for text in texts)
    for word in options.operands:
        if word.text.startswith("ext::"):
            yield Finding("critical", "the address makes git run a command", "ask")
            yield Nested(word.text[5:])
    if options.starts([("config",)]) and len(options.operands) > 2:
        runs = _RUNS_BY_CONFIG.fullmatch(options.operands[1].bare)
        yield Finding("high" if runs else "medium", "changes git's settings")
        if runs:
            yield Nested(options.operands[2].text.lstrip("!"))
    yield from map(Writes, options.value("--output"))
    for place in options.value("-C", "--git-dir", "--work-tree"):
        if region(resolve(place, command.place)) not in ("inside", "all"):
            yield Finding("medium", f"works in {place.bare}, which is not in the workspace")


def _tar(command: Command, options: Options, _: str) -> Iterator[Item]:
    words = [word.bare for word in command.argv[1:]]
    letters = words[0] if words and not words[0].startswith("-") else "".join(f for f in options.flags if f[:2] != "--")
    for action in options.value("--checkpoint-action"):
        if action.text.startswith("exec="):
            yield Finding("high", "runs a command while it packs", "ask")
            yield Nested(action.text[5:])
    if options.any(("--list",)) or ("t" in letters and not any(char in letters for char in "xcruA")):
        yield Allowance("it only lists an archive", reads=True)
        return
    yield Finding("medium", "packs or unpacks files, and may write over some")
    yield from map(Writes, options.value("-C", "--directory"))
    if any(char in letters for char in "cru") or options.any(("--create",)):
        yield from map(Writes, options.value("-f", "--file"))
    if "P" in letters or options.has("--absolute-names"):
        yield Finding("high", "may write anywhere", "ask")


def _kill(command: Command, options: Options, _: str) -> Iterator[Item]:
    words = [word.bare for word in command.argv[1:]]
    if words in (["-l"], ["-L"]):
        yield Allowance("it only lists signals", reads=True)
    elif len(words) > 1 and words[-1] in ("-1", "1"):
        yield Finding("critical", "ends every process of this user, or the first of the system")
    else:
        forced = (
            any(re.fullmatch(r"-(9|KILL|SIGKILL)", word, re.IGNORECASE) for word in words)
            or "kill" in " ".join(words).lower()
        )
        forced = forced or any(
            word.text.lower() in ("9", "kill", "sigkill") for word in options.value("-s", "-n", "--signal")
        )
        yield Finding("high" if forced or command.name != "kill" else "medium", "ends processes")


def _download(command: Command, options: Options, _: str) -> Iterator[Item]:
    uploads = ("-T", "--upload-file", "-F", "--form", "--post-file", "--body-file", "-K", "--config")
    data = [*options.value("-d", "--data", "--data-binary", "--data-urlencode", "--json")]
    if options.any(uploads) or any("@" in word.text[:1] or "=@" in word.text for word in data):
        yield Finding("high", "sends files to another machine")
    else:
        yield Finding("medium", "uses the network")
    yield from map(
        Writes, options.value("-o", "--output", "--output-document", "-P", "--output-dir", "--directory-prefix")
    )
    if command.name == "wget":
        yield from (Writes(word) for word in options.value("-O") if word.text != "-")


def _docker(command: Command, options: Options, workspace: str) -> Iterator[Item]:
    words = [word.bare for word in command.argv]
    if "run" not in words and "create" not in words:
        return
    whole = options_of(command.argv, ("-v", "--volume", "--mount", "--pid", "--cap-add"))
    for mount in whole.value("-v", "--volume", "--mount"):
        found = re.search(r"(?:source|src)=([^,]+)", mount.text) or re.match(r"([^:,]+):", mount.text)
        source = Word(found[1]) if found else mount
        path = resolve(source, command.place, workspace)
        if "docker.sock" in mount.text or region(path) in ("system", "home", "device"):
            yield Finding("critical", f"gives the container {source.bare} of this machine")
        elif region(path) not in ("inside", "all") and "/" in source.text:
            yield Finding("high", f"gives the container {source.bare} of this machine")
    if whole.any(("--privileged", "--cap-add")) or any(word.text == "host" for word in whole.value("--pid")):
        yield Finding("high", "gives the container power over this machine")


def _editor(command: Command, _: Options, __: str) -> Iterator[Item]:
    words = [word.text for word in command.argv[1:]]
    for at, word in enumerate(words):
        code = (
            words[at + 1]
            if word in ("-c", "--cmd", "-S", "--eval", "-eval", "--execute") and at + 1 < len(words)
            else ""
        )
        code = word[1:] if word.startswith("+") else code
        shell = re.search(r"!+\s*(.+)|system\(\s*['\"](.+?)['\"]|shell-command\s+\"(.+?)\"", code)
        if shell:
            yield Finding("high", f"`{command.name}` runs a command of its own", "ask")
            yield Nested(next(filter(None, shell.groups()), ""))
        elif code and re.search(r"system|delete|call|lua|python|source|write|w!|wq", code):
            yield Finding("high", f"`{command.name}` runs commands that it is given", "ask")


def _make(command: Command, options: Options, workspace: str) -> Iterator[Item]:
    for word in command.argv[1:]:
        if re.match(r"\.?SHELL(FLAGS)?=", word.text) or "$(shell" in word.text or "`" in word.text:
            yield Finding("high", "changes what make runs", "ask")
            yield Nested(word.text.partition("=")[2])
    for text in options.value("--eval"):
        yield Finding("high", "gives make a recipe", "ask")
        yield Nested(text.text)
    for file in options.value("-f", "--file", "--makefile", "-C", "--directory"):
        if file.text == "-" or region(resolve(file, command.place, workspace)) not in ("inside", "all"):
            yield Finding("high", f"runs the recipes of {file.bare}, which are not in the workspace", "ask")


def _ssh(command: Command, options: Options, _: str) -> Iterator[Item]:
    for setting in options.value("-o"):
        found = re.match(r"(?i)\s*(proxycommand|localcommand|knownhostscommand)\s*[= ]\s*(.*)", setting.text)
        if found:
            yield Finding("high", f"{found[1]} runs a command here", "ask")
            yield Nested(found[2])


def _remote_copy(command: Command, options: Options, _: str) -> Iterator[Item]:
    if any(re.match(r"[\w.@-]+:", word.text) for word in options.operands) or command.name != "rsync":
        yield Finding("high", "copies files between machines")
    if options.any(("--delete", "--remove-source-files", "--delete-after", "--delete-before", "--delete-excluded")):
        yield Finding("high", "deletes what is not at the source")
    yield Finding("medium", "copies files, and may write over some")


def _net(command: Command, options: Options, _: str) -> Iterator[Item]:
    yield Finding("high", "opens a connection of its own")
    runs = options_of(command.argv, ("-e", "-c", "--exec", "--sh-exec", "--lua-exec"))
    for text in runs.value("-e", "-c", "--exec", "--sh-exec", "--lua-exec"):
        yield Finding("critical", "hands a program to whoever is at the other end")
        yield Nested(text.text)
    for word in command.argv[1:]:
        if found := re.search(r"(?i)\b(exec|system|shell):(.*)", word.text):
            yield Finding("critical", "hands a program to whoever is at the other end")
            yield Nested(found[2].strip("'\""))


def _alias(command: Command, _: Options, __: str) -> Iterator[Item]:
    yield Allowance("it only names a command, which is judged")
    yield from (Nested(word.text.partition("=")[2]) for word in command.argv[1:] if "=" in word.text)


def _cd(command: Command, options: Options, workspace: str) -> Iterator[Item]:
    target = options.operands[0] if options.operands else Word("~")
    if target.text in ("-", "+1", "-1"):
        yield Allowance("it goes back", reads=True)
    elif target.known and region(resolve(target, command.place, workspace)) in ("inside", "all"):
        yield Allowance("it stays in the workspace", reads=True)
    else:
        yield Finding("none", f"it leaves the workspace for {target.bare or 'a folder that is not known'}", "ask")


def _mv(command: Command, options: Options, workspace: str) -> Iterator[Item]:
    *sources, target = options.operands or (Word("."),)
    if target.text.startswith("/dev/null"):
        yield Finding("critical", "moves files to where nothing comes back from")
    for source in sources:
        if region(resolve(source, command.place, workspace)) in ("home", "system", "device"):
            yield Finding("critical", f"moves {source.bare} away")


def _unzip(_: Command, options: Options, __: str) -> Iterator[Item]:
    if options.any(("-l", "-v", "-Z", "-t")):
        yield Allowance("it only lists an archive", reads=True)
    else:
        yield Finding("medium", "unpacks files, and may write over some")
        yield from map(Writes, options.value("-d"))


def _uniq(_: Command, options: Options, __: str) -> Iterator[Item]:
    yield from map(Writes, options.operands[1:2])


def _sorted(_: Command, options: Options, __: str) -> Iterator[Item]:
    yield from map(Writes, options.value("-o", "--output"))


_LOOKS: dict[str, Callable[[Command, Options, str], Iterator[Item]]] = {
    "rm": _rm,
    "dd": _dd,
    "git": _git,
    "tar": _tar,
    "bsdtar": _tar,
    "gtar": _tar,
    "kill": _kill,
    "pkill": _kill,
    "killall": _kill,
    "curl": _download,
    "wget": _download,
    "docker": _docker,
    "podman": _docker,
    "make": _make,
    "gmake": _make,
    "ssh": _ssh,
    "scp": _remote_copy,
    "sftp": _remote_copy,
    "rsync": _remote_copy,
    "alias": _alias,
    "cd": _cd,
    "pushd": _cd,
    "chdir": _cd,
    "uniq": _uniq,
    "mv": _mv,
    "unzip": _unzip,
    "sort": _sorted,
    **dict.fromkeys(("vim", "vi", "nvim", "view", "ex", "ed", "emacs", "less", "more", "nano"), _editor),
    **dict.fromkeys(("nc", "ncat", "netcat", "socat", "telnet"), _net),
}
