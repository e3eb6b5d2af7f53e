"""What a request to change a configuration asks of one key."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Operation(IntEnum):
    """What an incremental change does to one key."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """One key's change."""

    name: str
    operation: int
    value: str | None
