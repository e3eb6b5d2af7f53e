"""What came of it: letters, the history of each record's state, how far a group is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

from tests.differential.dlq.side import Side
from tests.harness.batches import headers_of

from sharecore._core import decode_records
from sharecore.protocol import ApiKey
from sharecore.sharestate.records import STATE_BATCH, Snapshot, Update, decode_record

ARCHIVING, ARCHIVED = 3, 4
STATE_TOPIC = "__share_group_state"
PREFIX = "__dlq.errors."
_EVERYTHING = [(0, 1 << 20, 1)]
_LONG_AGO_MS = 10**12
"""Records that are produced by hand are of 1970."""
Letter = dict[str, Any]


def records_of(side: Side, topic: str, partition: int) -> list[Any]:
    """All records of a partition."""
    found: list[Any] = []
    while True:
        records = side.fetch(topic, partition, found[-1].offset + 1 if found else 0)
        more = decode_records(records, _EVERYTHING, topic, partition, None)[0]
        more = [each for each in more if not found or each.offset > found[-1].offset]
        if not more:
            return found
        found += more


def letters(side: Side, topic: str) -> dict[int, list[Letter]]:
    """Every letter of a topic, by partition and in order; its own headers are kept apart from the six."""
    return {
        index: [_letter(each) for each in records_of(side, topic, index)]
        for index in range(side.partitions(topic))
    }


def _letter(record: Any) -> Letter:
    headers = [(name, value) for name, value in record.headers]
    return {
        "key": record.key,
        "value": record.value if record.value is None or len(record.value) < 60 else len(record.value),
        "headers": headers[:6],
        "own": headers[6:],
        "of now": (record.timestamp > _LONG_AGO_MS, record.timestamp_type),
    }


def batches(side: Side, topic: str) -> dict[int, list[tuple[int, int]]]:
    """How many letters there are in each batch of a topic, by partition, and the batch's attributes."""
    found: dict[int, list[tuple[int, int]]] = {}
    for index in range(side.partitions(topic)):
        inside, offset = found.setdefault(index, []), 0
        while some := headers_of(side.fetch(topic, index, offset)):
            some = [each for each in some if each["base_offset"] >= offset]
            assert {(each["producer_id"], each["sequence"]) for each in some} == {(-1, -1)}
            inside += [(each["count"], each["attributes"]) for each in some]
            offset = some[-1]["last_offset"] + 1
    return found


def told(letters: dict[int, list[Letter]]) -> dict[int, str]:
    """What became of each record of one source partition that has a letter: `whole` or `bare`."""
    found = {}
    for letter in (each for some in letters.values() for each in some):
        bare = letter["key"] is None and letter["value"] is None
        found[int(dict(letter["headers"])[f"{PREFIX}offset"])] = "bare" if bare else "whole"
    return found


def histories(side: Side, group: str, topic_id: UUID, partition: int = 0) -> dict[int, list[int]]:
    """The states that each offset's records of share state name, in order, without those that repeat."""
    found: dict[int, list[int]] = {}
    for index in range(side.partitions(STATE_TOPIC)):
        for record in records_of(side, STATE_TOPIC, index):
            try:
                decoded = decode_record(record.key, record.value)
            except ValueError:
                continue
            if tuple(decoded.key) != (group, topic_id, partition):
                continue
            if isinstance(decoded.value, (Snapshot, Update)):
                for first, last, state, _ in STATE_BATCH.iter_unpack(decoded.value.batches):
                    for offset in range(first, last + 1):
                        states = found.setdefault(offset, [])
                        if states[-1:] != [state]:
                            states.append(state)
    return found


def progress(side: Side, group: str, topic: str) -> dict[int, tuple[int, int]]:
    """Start offset and lag, by partition."""
    asked: dict[str, Any] = {"group_id": group, "topics": None}
    answer = side.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=[asked])
    return {
        part.partition_index: (part.start_offset, part.lag)
        for found in answer.groups[0].topics
        if found.topic_name == topic
        for part in found.partitions
    }


def settled(look: Callable[[], Any], good: Callable[[Any], bool], seconds: float = 20.0) -> Any:
    """What is seen once it is as expected; what is seen last where it never is."""
    until = time.monotonic() + seconds
    while True:
        seen = look()
        if good(seen) or time.monotonic() > until:
            return seen
        time.sleep(0.03)
