"""OpenAI's own renderer and parser of Harmony, without a download: the vocabulary is written from the one that our
tokenizer has inside. Byte for byte it is the file that openai-harmony would fetch."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import openai_harmony as peer
import pytest
import splintr

__all__ = ["load"]

SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
TOKENS = 199_998


def load(folder: Path) -> peer.HarmonyEncoding:
    """The encoding of gpt-oss."""
    tokenizer = splintr.Tokenizer.from_pretrained("o200k_base")
    words = (base64.b64encode(bytes(tokenizer.decode_bytes([token]))) for token in range(TOKENS))
    file = b"".join(b"%s %d\n" % (word, token) for token, word in enumerate(words))
    assert hashlib.sha256(file).hexdigest() == SHA256
    (folder / "o200k_base.tiktoken").write_bytes(file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_ENCODINGS_BASE", str(folder))
        return peer.load_harmony_encoding(peer.HarmonyEncodingName.HARMONY_GPT_OSS)
