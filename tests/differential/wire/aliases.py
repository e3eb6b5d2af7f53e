"""Ids that the brokers chose, each its own, bound to one alias where they stand in the same place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.differential.wire.compare import Difference, differences
from tests.differential.wire.masks import unknown_ids
from tests.differential.wire.names import Names

_KAFKAS = re.compile(r"[A-Za-z0-9_-]{22}")
"""Kafka's own text of an id, in which members of consumer groups are given theirs."""


def bind(apache: Any, ours: Any, names: tuple[Names, Names]) -> bool:
    """Binds ids without an alias that both answers have in the same place; whether there were some."""
    found = False
    for left, right in _ids(differences(apache, ours)):
        if not names[0].knows(left) and not names[1].knows(right):
            number = names[0].count + 1
            names[0].bind(left, number)
            names[1].bind(right, number)
            found = True
    return found


def _ids(found: list[Difference]) -> Iterator[tuple[str, str]]:
    for difference in found:
        yield from _pairs(difference.apache, difference.ours)
        if difference.path == "member_id" and all(map(_KAFKAS.fullmatch, _texts(difference))):
            yield difference.apache, difference.ours


def _texts(difference: Difference) -> tuple[str, str]:
    return str(difference.apache), str(difference.ours)


def _pairs(apache: Any, ours: Any) -> Iterator[tuple[str, str]]:
    if isinstance(apache, str) and isinstance(ours, str):
        left, right = unknown_ids(apache), unknown_ids(ours)
        if len(left) == len(right):
            yield from zip(left, right, strict=True)
