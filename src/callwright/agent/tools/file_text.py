"""Decodes files into lines of text for the model.

Lines end only at newlines, so that line numbers match those of editors and compilers. Bytes that are not text are
reported as such and never guessed.
"""

from __future__ import annotations

from callwright.errors import ToolError

__all__ = ["decode_file", "encode_text", "is_binary", "split_text_lines"]

_SNIFFED_BYTES = 8192
_BYTE_ORDER_MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))
"""Byte order marks, and the encoding that each announces."""


def is_binary(data: bytes) -> bool:
    """Return whether data is binary: a NUL byte near the beginning, the test that git and grep use."""
    return b"\0" in data[:_SNIFFED_BYTES] and not data.startswith((b"\xff\xfe", b"\xfe\xff"))


def decode_file(data: bytes) -> tuple[str, str]:
    """Return the text, and a note if it is not plain UTF-8. Raises `ToolError` for binary data."""
    if is_binary(data):
        raise ToolError("it is a binary file")
    encoding = next((encoding for mark, encoding in _BYTE_ORDER_MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return data.decode(encoding, "replace"), f"not valid {encoding.upper()}: unreadable bytes are shown as �"
    return text, "UTF-16" if encoding == "utf-16" else ""


def encode_text(text: str) -> bytes:
    """Encode what a model wrote. JSON can express half of a surrogate pair; files cannot."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolError("the text is invalid: it contains half of a surrogate pair.") from error


def split_text_lines(text: str) -> list[str]:
    """Return the lines without their line ends."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]
