"""Bytes that are changed on their way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def spoil(data: bytes, changes: Iterable[dict[str, Any]]) -> bytes:
    """Changes bytes in turn; what is none of these is passed over.

    `{"at": 16, "hex": "01"}` writes over some, `{"from": 3, "drop": 2}` takes some out, `{"insert": 3, "hex":
    "01"}` puts some in, `{"cut": 5}` takes them off the end, `{"add": "00"}` puts some there.
    """
    changed = bytearray(data)
    for change in changes:
        match change:
            case {"at": at, "hex": text}:
                changed[at : at + len(text) // 2] = bytes.fromhex(text)
            case {"from": first, "drop": count}:
                del changed[first : first + count]
            case {"insert": at, "hex": text}:
                changed[at:at] = bytes.fromhex(text)
            case {"cut": count}:
                del changed[max(0, len(changed) - count) :]
            case {"add": text}:
                changed += bytes.fromhex(text)
    return bytes(changed)
