"""Measure the parsers: microseconds per 4-character chunk for one call with a long argument, compared with others.

    make bench-core            # prints the table and writes it into docs/benchmarks.md
    python scripts/bench_core.py --quick

The call is `write_file(path, content)`, where `content` is code-like text with quotes, braces, backslashes and tags.
Only calls of the parser are timed, in CPU time of this thread, and all parsers run in one process. The others are
transformers' ResponseParser (declares regions, does not stream arguments) and openai-harmony's StreamableParser (reads
tokens, not text; one token is about one chunk). Each figure is the best of three runs; of one run at 1M.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from callwright import Parser, get_dialect
from callwright.dialects.base import build_tool_schema
from callwright.events import CallDelta
from tests.support.harness import TOOLS, WRITE, pieces

SIZES = (1_000, 4_000, 16_000, 64_000, 1_000_000)
DIALECTS = (
    "hermes", "mistral_old", "cohere", "mistral", "kimi_k2", "deepseek_v3", "deepseek_v31", "llama3_json", "harmony",
    "qwen3_coder", "glm45", "glm47", "minimax_m2", "deepseek_v32", "element", "gemma4", "pythonic", "auto",
)  # fmt: skip
CODE = 'def f(x):\n    """Doc."""\n    return {"a": [x, "y\\n"], \'b\': x < 3 > 1}  # <tag> \\d\n'
VOCABULARY = "fb374d419588a4632f3f557e76b4b70aebbca790"
VOCABULARY_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
BEGIN, END = "<!-- bench-core:begin -->", "<!-- bench-core:end -->"


def content(size: int) -> str:
    return (CODE * (size // len(CODE) + 1))[:size]


def timed(make: Callable[[], Callable[[Any], Any]], chunks: Iterable[Any], runs: int) -> float:
    """Return microseconds per chunk, the best of some runs."""
    chunks = list(chunks)
    best = float("inf")
    for _ in range(runs):
        feed = make()
        start = time.thread_time()
        for chunk in chunks:
            feed(chunk)
        best = min(best, time.thread_time() - start)
    return best / len(chunks) * 1e6


def runs(size: int) -> int:
    return 3 if size < 1_000_000 else 1


# ── ours ──────────────────────────────────────────────────────────────────────────────────────────


def ours(name: str, size: int) -> float:
    it = get_dialect(name)
    text = it.render_call(it.build_sample_call("write_file", {"path": "a.py", "content": content(size)}))
    return timed(lambda: Parser(it, TOOLS, prefill=it.call_prefill).feed, pieces(text, 4), runs(size))


def plain(name: str, size: int) -> float:
    text = ("Plain words, as models write them most of the time. " * (size // 50))[:size]
    return timed(lambda: Parser(get_dialect(name), TOOLS).feed, pieces(text, 4), runs(size))


def longest_hold(name: str) -> int:
    """Return the largest number of argument characters that were fed but not yet returned, for plain words."""
    it = get_dialect(name)
    words = "plain words only " * 200
    text = it.render_call(it.build_sample_call("write_file", {"path": "a.py", "content": words}))
    start = text.index(words)
    parser = Parser(it, TOOLS, prefill=it.call_prefill)
    came = said = most = 0
    parser.feed(text[:start])
    for chunk in pieces(words, 4):
        came += len(chunk)
        said += sum(len(event.text) for event in parser.feed(chunk) if isinstance(event, CallDelta))
        most = max(most, came - said)
    return max(most, 0)


# ── peers ─────────────────────────────────────────────────────────────────────────────────────────


def transformers_parser(name: str, size: int) -> float:
    from transformers.utils.chat_parsing.response_parser import ResponseParser

    calls: dict[str, Any] = {"open": "<tool_call>", "close": "</tool_call>", "repeats": True, "content": "json"}
    if name == "qwen3_coder":
        calls = {
            "open_pattern": r"<tool_call>\s*<function=[^>]+>",
            "close": "</tool_call>",
            "repeats": True,
            "content": "xml-inline",
            "content_args": {"tag_pattern": r"<parameter=(?P<key>[^>]+)>\n(?P<value>.*?)\n</parameter>"},
        }
    fields = {"content": {"content": "text"}, "tool_calls": calls}
    template = {"version": 1, "start_anchor": "assistant", "fields": fields}
    text = get_dialect(name).render_call(
        get_dialect(name).build_sample_call("write_file", {"path": "a.py", "content": content(size)})
    )
    return timed(
        lambda: ResponseParser(template, prefix="", tools=[build_tool_schema(WRITE)]).feed, pieces(text, 4), runs(size)
    )


def harmony_parser(size: int) -> float:
    os.environ["TIKTOKEN_RS_CACHE_DIR"] = str(vocabulary().parent)
    from openai_harmony import HarmonyEncodingName, Role, StreamableParser, load_harmony_encoding

    encoding = load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)
    it = get_dialect("harmony")
    text = it.render_call(it.build_sample_call("write_file", {"path": "a.py", "content": content(size)}))
    tokens = encoding.encode(text.removeprefix("<|start|>assistant"), allowed_special="all")

    def make() -> Callable[[int], Any]:
        parser = StreamableParser(encoding, role=Role.ASSISTANT)

        def feed(token: int) -> Any:
            parser.process(token)
            return parser.last_content_delta, parser.current_channel, parser.current_recipient

        return feed

    return timed(make, tokens, runs(size))


def vocabulary() -> Path:
    """Return the o200k vocabulary from a package that contains it, verified by its hash."""
    path = ROOT / ".cache" / "tiktoken" / VOCABULARY
    if not path.exists():
        with tempfile.TemporaryDirectory() as folder:
            download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, "llama-index-core"]
            subprocess.run(download, check=True)
            [wheel] = Path(folder).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                data = archive.read(f"llama_index/core/_static/tiktoken_cache/{VOCABULARY}")
        if hashlib.sha256(data).hexdigest() != VOCABULARY_SHA256:
            raise SystemExit("the vocabulary file is not the one that was expected")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return path


# ── the table ─────────────────────────────────────────────────────────────────────────────────────


def row(label: str, figures: list[float], hold: str) -> str:
    flat = f"{figures[-1] / figures[1]:.2f}"
    return f"| {label} | {' | '.join(f'{figure:.2f}' for figure in figures)} | {flat} | {hold} |"


def table(sizes: tuple[int, ...]) -> list[str]:
    heads = " | ".join(f"{size // 1000}k" if size < 1_000_000 else "1M" for size in sizes)
    lines = [f"| parser | {heads} | 1M ÷ 4k | held |", f"| --- |{' --: |' * (len(sizes) + 2)}"]
    for line in lines:
        print(line)
    for name in DIALECTS:
        figures = [ours(name, size) for size in sizes]
        lines.append(row(f"`{name}` ({get_dialect(name).shape})", figures, str(longest_hold(name))))
        print(lines[-1], flush=True)
    for label, measure in (
        ("plain text, `hermes`", lambda size: plain("hermes", size)),
        ("plain text, `auto`", lambda size: plain("auto", size)),
        ("transformers ResponseParser, hermes", lambda size: transformers_parser("hermes", size)),
        ("transformers ResponseParser, qwen3_coder", lambda size: transformers_parser("qwen3_coder", size)),
        ("openai-harmony StreamableParser (per token)", harmony_parser),
    ):
        peer = "ours" if label.startswith("plain") else "all" if "transformers" in label else "-"
        lines.append(row(label, [measure(size) for size in sizes], "0" if peer == "ours" else peer))
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="measure only up to 64k, and write no file")
    arguments = parser.parse_args()
    lines = table(SIZES[:4] if arguments.quick else SIZES)
    if not arguments.quick:
        note = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, one thread."
        path = ROOT / "docs" / "benchmarks.md"
        before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
        _, _, after = rest.partition(END)
        path.write_text(f"{before}{BEGIN}\n{note}\n\n" + "\n".join(lines) + f"\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
