"""Requests in a row, whose answers are compared one by one, wording included."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from tests.differential.access.brokers import CLOSED, INSIDE, Guarded

from sharecore.protocol import ApiKey

_HEARD_S = 0.3
"""After so long Apache Kafka's broker has heard of a change from its controller."""


class Step(NamedTuple):
    """A request, and what a report calls it."""

    name: str
    key: ApiKey
    version: int
    fields: dict[str, Any]


def compare(brokers: Iterable[Guarded], steps: Iterable[Step]) -> tuple[int, list[tuple[str, list[Any]]]]:
    """How many steps there were, and those that are answered differently, with both answers."""
    brokers, count, different, altered = list(brokers), 0, [], False
    for step in steps:
        is_question = step.key.name.startswith("DESCRIBE")
        if altered and is_question:
            time.sleep(_HEARD_S)
        altered = not is_question
        answers = [_plain(broker.ask(INSIDE, step.key, step.version, step.fields)) for broker in brokers]
        count += 1
        if len({repr(answer) for answer in answers}) > 1:
            different.append((step.name, answers))
    return count, different


def _plain(value: Any) -> Any:
    """An answer whose lists have one order: Apache Kafka's is that of hash tables."""
    if value is CLOSED:
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: _plain(each) for name, each in zip(value._fields, value, strict=True)}
    if isinstance(value, list | tuple):
        return sorted((_plain(each) for each in value), key=repr)
    return value
