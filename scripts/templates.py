"""Real chat templates render known calls; the dialect of each family reads them back.

    make templates             # downloads the archive once into .cache, prints the table
    python scripts/templates.py --show Qwen3-Coder

The templates are those inside the source archive of PyPI's `llama-cpp-python`. Nothing of it is kept in
this repository. For each template a conversation is rendered up to the model's turn and with the model's
turn; the difference is what the model would have written, and the end of the prompt is the prefill.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import jinja2
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from harness import TOOLS, drive, pieces

from callwright import collect, dialect
from callwright.dialects.base import schema_of

CACHE = ROOT / ".cache" / "templates"
INSIDE = "vendor/llama.cpp/models/templates/"

# Which dialect a template's family writes; None with the reason when it writes no calls.
FAMILIES: tuple[tuple[str, str | None, str], ...] = (
    ("*Hermes*", "hermes", ""),
    ("Qwen-Qwen2.5*", "hermes", ""),
    ("Qwen-Qwen3*", "hermes", ""),
    ("Qwen-QwQ*", "hermes", ""),
    ("Qwen3-Coder*", "qwen3_coder", ""),
    ("Qwen3.5*", "qwen3_coder", ""),
    ("*granite-3*", "granite3", ""),
    ("*granite-4*", "hermes", ""),
    ("*SmolLM3*", "hermes", ""),
    ("Bielik*", "hermes", ""),
    ("MiMo-VL*", "hermes", ""),
    ("Reka*", "hermes", ""),
    ("NVIDIA-Nemotron-Nano*", "nemotron", ""),
    ("NVIDIA-Nemotron-3*", "qwen3_coder", ""),
    ("StepFun3.5*", "qwen3_coder", ""),
    ("ByteDance-Seed*", "seed_oss", ""),
    ("GLM-4.6*", "glm45", ""),
    ("GLM-4.7*", "glm47", ""),
    ("inclusionai-ling*", "glm47", ""),
    ("poolside-Laguna*", "glm47", ""),
    ("Spark*", "glm47", ""),
    ("tencent-Hy3*", "hy3", ""),
    ("Kimi-K2*", "kimi_k2", ""),
    ("moonshotai-Kimi-K2*", "kimi_k2", ""),
    ("Kimi-K3*", "kimi_k3", ""),
    ("*DeepSeek-V3.1*", "deepseek_v31", ""),
    ("*DeepSeek-V3.2*", "deepseek_v32", ""),
    ("*DeepSeek-V4*", "deepseek_v4", ""),
    ("*DeepSeek-R1*", "deepseek_v3", ""),
    ("llama-cpp-deepseek-r1*", "deepseek_v3", ""),
    ("*Mistral-Nemo*", "mistral_old", ""),
    ("*Devstral*", "mistral", ""),
    ("*Ministral-3*", "mistral", ""),
    ("Mistral-Small-3.2*", "mistral", ""),
    ("MiniMax-M1*", "minimax_m1", ""),
    ("MiniMax-M2*", "minimax_m2", ""),
    ("MiniMax-M3*", "minimax_m3", ""),
    ("*MiniCPM5*", "minicpm5", ""),
    ("Cohere2MoE*", "cohere", ""),
    ("*command-r7b*", "cohere", ""),
    ("*command-r-plus*", "cohere_r", ""),
    ("GigaChat3*", "gigachat3", ""),
    ("*functionary-medium-v3.1*", "functionary31", ""),
    ("*functionary-medium-v3.2*", "functionary32", ""),
    ("*firefunction*", "functools", ""),
    ("*Apriel*", "apriel", ""),
    ("Apertus*", "apertus", ""),
    ("LFM2*", "lfm2", ""),
    ("*gemma-4*", "gemma4", ""),
    ("*gpt-oss*", "harmony", ""),
    ("muse-glimmer*", "atem", ""),
    ("upstage-Solar*", "solar", ""),
    ("*Llama-3*", "llama3_json", ""),
    ("*gemma-2*", None, "the template knows no tools"),
    ("*Phi-3.5*", None, "the template knows no tools"),
    ("*rwkv*", None, "the template knows no tools"),
)

WEATHER = ("get_weather", {"city": 'Oslo "N" \\ ☃', "days": 2})
WRITE = ("write_file", {"path": "a.py", "content": "def f(x):\n\treturn '<b>' + \"x\"\n"})
PING = ("ping", {})
SCENES: dict[str, tuple[str, list[tuple[str, dict[str, Any]]]]] = {
    "one call": ("", [WEATHER]),
    "text and a call": ("Let me look.", [WRITE]),
    "two calls": ("", [WEATHER, WRITE]),
    "no arguments": ("", [PING]),
}


def templates() -> Iterator[Path]:
    """The template files, downloaded once."""
    if not CACHE.exists():
        print("downloading the source archive of llama-cpp-python (about 75 MB) …", file=sys.stderr)
        folder = ROOT / ".cache" / "download"
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "llama-cpp-python"]
        subprocess.run([*command, "-d", str(folder), "llama-cpp-python"], check=True)
        [archive] = folder.glob("llama_cpp_python-*.tar.gz")
        CACHE.mkdir(parents=True)
        with tarfile.open(archive) as tar:
            for member in tar:
                if INSIDE in member.name and member.name.endswith(".jinja"):
                    data = tar.extractfile(member)
                    (CACHE / Path(member.name).name).write_bytes(data.read() if data else b"")
        archive.unlink()
    yield from sorted(CACHE.glob("*.jinja"))


def compiled(path: Path) -> jinja2.Template:
    """A template in the environment that transformers and llama.cpp give it."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = lambda value, **options: json.dumps(
        value, ensure_ascii=False, indent=options.get("indent"), separators=options.get("separators")
    )
    environment.filters["from_json"] = json.loads
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC).strftime(form)
    # Transformers' tag for what the model wrote; it prints nothing.
    text = re.sub(r"\{%-?\s*(?:end)?generation\s*-?%\}", "", path.read_text(encoding="utf-8"))
    return environment.from_string(text)


def _refuse(message: str) -> None:
    raise jinja2.TemplateError(message)


class NotRenderedError(Exception):
    """No call could be got out of a template, and why."""


def written(path: Path, name: str, scene: tuple[str, list[tuple[str, dict[str, Any]]]]) -> tuple[str, str]:
    """What the model would have written in a scene, and the prefill before it."""
    template = compiled(path)
    it = dialect(name)
    before, said = scene
    errors = []
    for as_text in (False, True):
        calls = [
            {
                "id": it.make_id(tool, at),
                "type": "function",
                "function": {"name": tool, "arguments": json.dumps(given, ensure_ascii=False) if as_text else given},
            }
            for at, (tool, given) in enumerate(said)
        ]
        user = {"role": "user", "content": "Hello"}
        assistant = {"role": "assistant", "content": before, "tool_calls": calls}
        try:
            plain = _render(template, [user], generation=False)
            prompt = _render(template, [user], generation=True)
            full = _render(template, [user, assistant], generation=False)
        except (jinja2.TemplateError, TypeError, ValueError, KeyError) as problem:
            errors.append(str(problem))
            continue
        if _quoted(said[0][0]) not in full[len(plain) :] and said[0][0] not in full[len(plain) :]:
            errors.append("the call is not rendered")
            continue
        if full.startswith(prompt):
            return full[len(prompt) :], prompt[len(plain) :] if prompt.startswith(plain) else prompt[-60:]
        # The generation prompt opens something that the history does not show (thinking, mostly).
        common = _common(prompt, full)
        return full[common:], prompt[len(plain) : common] if common > len(plain) else ""
    raise NotRenderedError(errors[-1])


def _quoted(name: str) -> str:
    return f'"{name}"'


def _common(one: str, other: str) -> int:
    at = 0
    while at < min(len(one), len(other)) and one[at] == other[at]:
        at += 1
    return at


def _render(template: jinja2.Template, messages: list[dict[str, Any]], *, generation: bool) -> str:
    return template.render(
        messages=messages,
        tools=[schema_of(tool) for tool in TOOLS],
        add_generation_prompt=generation,
        bos_token="",
        eos_token="",
        pad_token="",
        unk_token="",
        enable_thinking=False,
        thinking=False,
    )


def judged(path: Path, name: str) -> list[tuple[str, str, str]]:
    """For each scene: its name, `ok` or what was wrong, and what the model wrote."""
    results = []
    for label, scene in SCENES.items():
        try:
            text, prefill = written(path, name, scene)
        except NotRenderedError as problem:
            results.append((label, f"not rendered: {problem}", ""))
            continue
        wanted = [(tool, given) for tool, given in scene[1]]
        verdict = "ok"
        for size in (1, 3, 7, len(text) or 1):
            turn = collect(drive(dialect(name), pieces(text, size), prefill=prefill))
            got = [(call.name, json.loads(call.arguments) if call.complete else None) for call in turn.tool_calls]
            if got != wanted:
                verdict = f"read {got}"
            elif scene[0] and scene[0] not in turn.text:
                verdict = f"text {turn.text!r}"
        results.append((label, verdict, f"{prefill!r} + {text!r}"))
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", metavar="NAME", help="print what these templates write")
    arguments = parser.parse_args()
    wrong = read = 0
    apart: list[str] = []
    for path in templates():
        family = next((entry for entry in FAMILIES if fnmatchcase(path.stem, entry[0].removesuffix(".jinja"))), None)
        if arguments.show and arguments.show not in path.stem:
            continue
        if family is None or family[1] is None:
            apart.append(f"{path.stem}: {family[2] if family else 'no family is known'}")
            wrong += family is None
            continue
        results = judged(path, family[1])
        bad = [f"{label}: {verdict}" for label, verdict, _ in results if verdict != "ok"]
        excused = [one for one in bad if (path.stem, one.split(":")[0]) in LOSSY]
        apart += [f"{path.stem}: {LOSSY[path.stem, one.split(':')[0]]} ({one})" for one in excused]
        wrong += len(bad) - len(excused)
        read += len(results) - len(bad)
        print(
            f"{'ok ' if len(bad) == len(excused) else 'BAD'} {path.stem:58} {family[1]:14} {len(results) - len(bad)}/{len(results)}"
        )
        for one in bad:
            if one not in excused:
                print(f"      {one}")
        if arguments.show:
            for label, _, text in results:
                print(f"      {label}: {text}")
    print(f"\n{read} scenes read back, {wrong} wrong. Not judged, with the reason:")
    for line in apart:
        print(f"  {line}")
    return 1 if wrong else 0


# Scenes that a template itself loses something of: (template, scene) -> why.
LOSSY: dict[tuple[str, str], str] = {
    ("openai-gpt-oss-120b", "text and a call"): "the template writes text before a call as reasoning",
    ("openai-gpt-oss-120b", "two calls"): "the template writes one call of a turn",
    ("muse-glimmer", "text and a call"): "the template drops text before a call",
}


if __name__ == "__main__":
    sys.exit(main())
