"""Checks for dangers that no rule over flags and words can express."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from callwright.agent.policy.command_options import CommandOptions, parse_options
from callwright.agent.policy.judgement import Allowance, PolicyFinding
from callwright.agent.policy.path_regions import classify_path, resolve_path
from callwright.agent.policy.shell_command import ShellCommand
from callwright.agent.policy.shell_words import ShellWord
from callwright.agent.policy.wrappers import FileWrite, InspectionItem, NestedScript

__all__ = ["check_assignment", "check_dangers"]

_COMMAND_SETTING = re.compile(
    r"(?i)alias\..*|core\.(pager|editor|sshcommand|askpass|fsmonitor|gitproxy|hookspath)|pager\..*|.*\.(textconv|command|cmd|driver"
    r"|program|include.path|helper|process|clean|smudge|path)|diff\.external|sequence\.editor|uploadpack\.packobjectshook|gpg\.program"
)
_DANGEROUS_VARIABLE = re.compile(
    r"PATH|LD_\w+|DYLD_\w+|BASH_ENV|ENV|PROMPT_COMMAND|PERL5OPT|PERL5LIB|RUBYOPT|PYTHONSTARTUP|PYTHONHOME|PYTHONINSPECT"
    r"|BASH_FUNC\w*|GIT_CONFIG\w*|GIT_EXEC_PATH|SHELLOPTS|BASHOPTS|CDPATH|GCONV_PATH|JAVA_TOOL_OPTIONS|MAKEFLAGS|SHELL|PS4"
)
_COMMAND_VARIABLE = re.compile(
    r"(GIT_)?(PAGER|EDITOR|SEQUENCE_EDITOR|SSH_COMMAND|SSH|EXTERNAL_DIFF|ASKPASS|PROXY_COMMAND)|VISUAL|BROWSER|LESSOPEN"
    r"|LESSCLOSE|RSYNC_RSH|MANPAGER|SUDO_ASKPASS"
)
_LOADS_MODULE = re.compile(r"(^|\s)(-r|--require|--import|--loader|--experimental-loader|--inspect\S*)\b")


def check_dangers(command: ShellCommand, options: CommandOptions, workspace: str) -> Iterator[InspectionItem]:
    """Yield the dangers of a command beyond those that the rules cover."""
    check = _PROGRAM_CHECKS.get(command.name)
    if check:
        yield from check(command, options, workspace)
    elif command.name.startswith("mkfs"):
        yield PolicyFinding("critical", "creates a file system and erases what was there")


def check_assignment(name: str, value: str) -> Iterator[InspectionItem]:
    """Yield how an assignment affects the commands after it."""
    if _COMMAND_VARIABLE.fullmatch(name):
        yield NestedScript(value.lstrip("|"))
    elif _DANGEROUS_VARIABLE.fullmatch(name) or (name == "NODE_OPTIONS" and _LOADS_MODULE.search(value)):
        yield PolicyFinding("high", f"{name} changes what other commands do", "ask")


def _check_rm(command: ShellCommand, options: CommandOptions, workspace: str) -> Iterator[InspectionItem]:
    recursive, forced = options.has_any_flag(("-r", "-R", "--recursive")), options.has_any_flag(("-f", "--force"))
    if options.has_flag("--no-preserve-root"):
        yield PolicyFinding("critical", "deletes from the root folder down")
    if recursive:  # also without `-f`: there is no terminal at which rm could ask for confirmation
        yield PolicyFinding("critical", "deletes whole folders without confirmation and cannot be undone")
        return
    for operand in options.operands:
        region = classify_path(resolve_path(operand, command.folder, workspace))
        if region == "inside":
            yield PolicyFinding("medium", f"deletes {operand.known_text}")
        elif region == "unknown":
            yield PolicyFinding("high", "the files that it deletes cannot be determined")
        elif forced or region in ("system", "device"):
            yield PolicyFinding("critical", f"deletes {operand.known_text}")
        else:
            yield PolicyFinding("high", f"deletes {operand.known_text}")
    if not options.operands:
        yield PolicyFinding("medium", "deletes files")


def _check_dd(command: ShellCommand, _: CommandOptions, __: str) -> Iterator[InspectionItem]:
    if any(word.known_text.startswith("of=") for word in command.argv):
        yield PolicyFinding("critical", "overwrites a device or file, block by block")
    else:
        yield PolicyFinding("medium", "copies blocks")


def _check_git(command: ShellCommand, options: CommandOptions, _: str) -> Iterator[InspectionItem]:
    for setting in options.iter_values("-c", "--config-env"):
        key, _sign, value = setting.text.partition("=")
        if _COMMAND_SETTING.fullmatch(key) or not setting.is_known:
            yield PolicyFinding("high", f"the setting {key} makes git run something", "ask")
            yield NestedScript(value.lstrip("!"))
    texts = [
        *options.iter_values("--exec", "-x", "--upload-pack", "--receive-pack", "--open-files-in-pager", "--extcmd")
    ]
    if options.starts_with(
        [("rebase", "push", "fetch", "clone", "pull", "grep", "difftool", "filter-branch", "ls-remote")]
    ):
        yield from (NestedScript(text.text) for text in texts)
    for word in options.operands:
        if word.text.startswith("ext::"):
            yield PolicyFinding("critical", "the URL makes git run a command", "ask")
            yield NestedScript(word.text[5:])
    if options.starts_with([("config",)]) and len(options.operands) > 2:
        runs = _COMMAND_SETTING.fullmatch(options.operands[1].known_text)
        yield PolicyFinding("high" if runs else "medium", "changes git's settings")
        if runs:
            yield NestedScript(options.operands[2].text.lstrip("!"))
    yield from map(FileWrite, options.iter_values("--output"))
    for folder in options.iter_values("-C", "--git-dir", "--work-tree"):
        if classify_path(resolve_path(folder, command.folder)) not in ("inside", "all"):
            yield PolicyFinding("medium", f"works in {folder.known_text}, which is not in the workspace")


def _check_tar(command: ShellCommand, options: CommandOptions, _: str) -> Iterator[InspectionItem]:
    words = [word.known_text for word in command.argv[1:]]
    letters = words[0] if words and not words[0].startswith("-") else "".join(f for f in options.flags if f[:2] != "--")
    for action in options.iter_values("--checkpoint-action"):
        if action.text.startswith("exec="):
            yield PolicyFinding("high", "runs a command while creating the archive", "ask")
            yield NestedScript(action.text[5:])
    if options.has_any_flag(("--list",)) or ("t" in letters and not any(char in letters for char in "xcruA")):
        yield Allowance("it only lists an archive", is_read_only=True)
        return
    yield PolicyFinding("medium", "packs or unpacks files and may overwrite some")
    yield from map(FileWrite, options.iter_values("-C", "--directory"))
    if any(char in letters for char in "cru") or options.has_any_flag(("--create",)):
        yield from map(FileWrite, options.iter_values("-f", "--file"))
    if "P" in letters or options.has_flag("--absolute-names"):
        yield PolicyFinding("high", "may write anywhere", "ask")


def _check_kill(command: ShellCommand, options: CommandOptions, _: str) -> Iterator[InspectionItem]:
    words = [word.known_text for word in command.argv[1:]]
    if words in (["-l"], ["-L"]):
        yield Allowance("it only lists signals", is_read_only=True)
    elif len(words) > 1 and words[-1] in ("-1", "1"):
        yield PolicyFinding("critical", "ends all processes of this user, or the init process")
    else:
        forced = (
            any(re.fullmatch(r"-(9|KILL|SIGKILL)", word, re.IGNORECASE) for word in words)
            or "kill" in " ".join(words).lower()
        )
        forced = forced or any(
            word.text.lower() in ("9", "kill", "sigkill") for word in options.iter_values("-s", "-n", "--signal")
        )
        yield PolicyFinding("high" if forced or command.name != "kill" else "medium", "ends processes")


def _check_download(command: ShellCommand, options: CommandOptions, _: str) -> Iterator[InspectionItem]:
    uploads = ("-T", "--upload-file", "-F", "--form", "--post-file", "--body-file", "-K", "--config")
    data = [*options.iter_values("-d", "--data", "--data-binary", "--data-urlencode", "--json")]
    if options.has_any_flag(uploads) or any("@" in word.text[:1] or "=@" in word.text for word in data):
        yield PolicyFinding("high", "sends files to another machine")
    else:
        yield PolicyFinding("medium", "uses the network")
    yield from map(
        FileWrite,
        options.iter_values("-o", "--output", "--output-document", "-P", "--output-dir", "--directory-prefix"),
    )
    if command.name == "wget":
        yield from (FileWrite(word) for word in options.iter_values("-O") if word.text != "-")


def _check_docker(command: ShellCommand, options: CommandOptions, workspace: str) -> Iterator[InspectionItem]:
    words = [word.known_text for word in command.argv]
    if "run" not in words and "create" not in words:
        return
    parsed = parse_options(command.argv, ("-v", "--volume", "--mount", "--pid", "--cap-add"))
    for mount in parsed.iter_values("-v", "--volume", "--mount"):
        found = re.search(r"(?:source|src)=([^,]+)", mount.text) or re.match(r"([^:,]+):", mount.text)
        source = ShellWord(found[1]) if found else mount
        path = resolve_path(source, command.folder, workspace)
        if "docker.sock" in mount.text or classify_path(path) in ("system", "home", "device"):
            yield PolicyFinding("critical", f"mounts {source.known_text} of this machine into the container")
        elif classify_path(path) not in ("inside", "all") and "/" in source.text:
            yield PolicyFinding("high", f"mounts {source.known_text} of this machine into the container")
    if parsed.has_any_flag(("--privileged", "--cap-add")) or any(
        word.text == "host" for word in parsed.iter_values("--pid")
    ):
        yield PolicyFinding("high", "gives the container control over this machine")


def _check_editor(command: ShellCommand, _: CommandOptions, __: str) -> Iterator[InspectionItem]:
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
            yield PolicyFinding("high", f"`{command.name}` runs a command of its own", "ask")
            yield NestedScript(next(filter(None, shell.groups()), ""))
        elif code and re.search(r"system|delete|call|lua|python|source|write|w!|wq", code):
            yield PolicyFinding("high", f"`{command.name}` runs commands from its arguments", "ask")


def _check_make(command: ShellCommand, options: CommandOptions, workspace: str) -> Iterator[InspectionItem]:
    for word in command.argv[1:]:
        if re.match(r"\.?SHELL(FLAGS)?=", word.text) or "$(shell" in word.text or "`" in word.text:
            yield PolicyFinding("high", "changes what make runs", "ask")
            yield NestedScript(word.text.partition("=")[2])
    for text in options.iter_values("--eval"):
        yield PolicyFinding("high", "passes a recipe to make", "ask")
        yield NestedScript(text.text)
    for file in options.iter_values("-f", "--file", "--makefile", "-C", "--directory"):
        if file.text == "-" or classify_path(resolve_path(file, command.folder, workspace)) not in ("inside", "all"):
            yield PolicyFinding("high", f"runs the recipes of {file.known_text}, which are not in the workspace", "ask")


def _check_ssh(command: ShellCommand, options: CommandOptions, _: str) -> Iterator[InspectionItem]:
    for setting in options.iter_values("-o"):
        found = re.match(r"(?i)\s*(proxycommand|localcommand|knownhostscommand)\s*[= ]\s*(.*)", setting.text)
        if found:
            yield PolicyFinding("high", f"{found[1]} runs a command on this machine", "ask")
            yield NestedScript(found[2])


def _check_remote_copy(command: ShellCommand, options: CommandOptions, _: str) -> Iterator[InspectionItem]:
    if any(re.match(r"[\w.@-]+:", word.text) for word in options.operands) or command.name != "rsync":
        yield PolicyFinding("high", "copies files between machines")
    if options.has_any_flag(
        ("--delete", "--remove-source-files", "--delete-after", "--delete-before", "--delete-excluded")
    ):
        yield PolicyFinding("high", "deletes what is not at the source")
    yield PolicyFinding("medium", "copies files and may overwrite some")


def _check_netcat(command: ShellCommand, options: CommandOptions, _: str) -> Iterator[InspectionItem]:
    yield PolicyFinding("high", "opens a network connection")
    runs = parse_options(command.argv, ("-e", "-c", "--exec", "--sh-exec", "--lua-exec"))
    for text in runs.iter_values("-e", "-c", "--exec", "--sh-exec", "--lua-exec"):
        yield PolicyFinding("critical", "gives the other end of the connection access to a program")
        yield NestedScript(text.text)
    for word in command.argv[1:]:
        if found := re.search(r"(?i)\b(exec|system|shell):(.*)", word.text):
            yield PolicyFinding("critical", "gives the other end of the connection access to a program")
            yield NestedScript(found[2].strip("'\""))


def _check_alias(command: ShellCommand, _: CommandOptions, __: str) -> Iterator[InspectionItem]:
    yield Allowance("it only defines an alias; the command behind it is judged")
    yield from (NestedScript(word.text.partition("=")[2]) for word in command.argv[1:] if "=" in word.text)


def _check_cd(command: ShellCommand, options: CommandOptions, workspace: str) -> Iterator[InspectionItem]:
    target = options.operands[0] if options.operands else ShellWord("~")
    if target.text in ("-", "+1", "-1"):
        yield Allowance("it returns to the previous folder", is_read_only=True)
    elif target.is_known and classify_path(resolve_path(target, command.folder, workspace)) in ("inside", "all"):
        yield Allowance("it stays in the workspace", is_read_only=True)
    else:
        yield PolicyFinding("none", f"it leaves the workspace for {target.known_text or 'an unknown folder'}", "ask")


def _check_mv(command: ShellCommand, options: CommandOptions, workspace: str) -> Iterator[InspectionItem]:
    *sources, target = options.operands or (ShellWord("."),)
    if target.text.startswith("/dev/null"):
        yield PolicyFinding("critical", "moves files to /dev/null, which destroys them")
    for source in sources:
        if classify_path(resolve_path(source, command.folder, workspace)) in ("home", "system", "device"):
            yield PolicyFinding("critical", f"moves {source.known_text} away")


def _check_unzip(_: ShellCommand, options: CommandOptions, __: str) -> Iterator[InspectionItem]:
    if options.has_any_flag(("-l", "-v", "-Z", "-t")):
        yield Allowance("it only lists an archive", is_read_only=True)
    else:
        yield PolicyFinding("medium", "unpacks files and may overwrite some")
        yield from map(FileWrite, options.iter_values("-d"))


def _check_uniq(_: ShellCommand, options: CommandOptions, __: str) -> Iterator[InspectionItem]:
    yield from map(FileWrite, options.operands[1:2])


def _check_sort(_: ShellCommand, options: CommandOptions, __: str) -> Iterator[InspectionItem]:
    yield from map(FileWrite, options.iter_values("-o", "--output"))


_PROGRAM_CHECKS: dict[str, Callable[[ShellCommand, CommandOptions, str], Iterator[InspectionItem]]] = {
    "rm": _check_rm,
    "dd": _check_dd,
    "git": _check_git,
    "tar": _check_tar,
    "bsdtar": _check_tar,
    "gtar": _check_tar,
    "kill": _check_kill,
    "pkill": _check_kill,
    "killall": _check_kill,
    "curl": _check_download,
    "wget": _check_download,
    "docker": _check_docker,
    "podman": _check_docker,
    "make": _check_make,
    "gmake": _check_make,
    "ssh": _check_ssh,
    "scp": _check_remote_copy,
    "sftp": _check_remote_copy,
    "rsync": _check_remote_copy,
    "alias": _check_alias,
    "cd": _check_cd,
    "pushd": _check_cd,
    "chdir": _check_cd,
    "uniq": _check_uniq,
    "mv": _check_mv,
    "unzip": _check_unzip,
    "sort": _check_sort,
    **dict.fromkeys(("vim", "vi", "nvim", "view", "ex", "ed", "emacs", "less", "more", "nano"), _check_editor),
    **dict.fromkeys(("nc", "ncat", "netcat", "socat", "telnet"), _check_netcat),
}
