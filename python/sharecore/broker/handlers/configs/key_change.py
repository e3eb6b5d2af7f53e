"""Change of one configuration key."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class KeyOperation(IntEnum):
    """KeyOperation of an incremental change on one key."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """Change of one key."""

    name: str
    operation: int
    value: str | None
