"""Arbitrary bytes, escaped for a terminal."""

from __future__ import annotations

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """Return a text with escape sequences in place of characters that a terminal would act on."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def printable_bytes(data: bytes) -> str:
    """Return bytes as UTF-8 text, with escape sequences for invalid bytes."""
    return printable(data.decode("utf-8", "backslashreplace"))


def shortened(data: bytes | None, width: int) -> str:
    """Return content as a table cell of limited length; a dash if it is missing."""
    if data is None:
        return "-"
    # a character has at most four bytes
    text = printable_bytes(data[: 4 * width])
    return text if len(text) <= width and len(data) <= 4 * width else f"{text[: width - 1]}…"


def _escaped(character: str) -> str:
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
