"""Records of groups in `__consumer_offsets`: our bytes are those of Apache Kafka, which reads them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from tests.harness import java
from tests.harness.broker import ROOT

from sharecore.coordinator.consumer import records as consumer_records
from sharecore.coordinator.consumer.records import ConsumerRecord
from sharecore.coordinator.share import records as share_records
from sharecore.coordinator.share.records import ShareRecord
from sharecore.coordinator_log.topic_log import Record

_SOURCE = ROOT / "tests/differential/records/Records.java"
_EACH = 25


class Written(NamedTuple):
    """A record as we write it, and what was to be in it."""

    record: Record
    key: dict[str, Any]
    value: dict[str, Any] | None


class Fields:
    """Random fields, by their names here."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def text(self) -> str:
        return "".join(self._random.choices("aZ09-_. é漢", k=self._random.choice((0, 1, 7, 200))))

    def text_or_none(self) -> str | None:
        return self._random.choice((None, self.text()))

    def number(self, bits: int) -> int:
        return self._random.choice(
            (0, 1, self._random.getrandbits(bits - 1), -self._random.getrandbits(bits - 1))
        )

    def uuid(self) -> UUID:
        return UUID(int=self._random.getrandbits(128))

    def numbers(self) -> list[int]:
        return sorted(self._random.sample(range(1000), self._random.choice((0, 1, 3, 130))))

    def some(self, make: Any) -> list[Any]:
        return [make() for _ in range(self._random.choice((0, 1, 2, 5)))]

    def partitions(self) -> dict[str, Any]:
        return {"topic_id": self.uuid(), "partitions": self.numbers()}

    def topic(self) -> dict[str, Any]:
        return {"topic_id": self.uuid(), "topic_name": self.text()}

    def named_partitions(self) -> dict[str, Any]:
        return {**self.topic(), "partitions": self.numbers()}

    def member(self) -> dict[str, Any]:
        return {
            "rack_id": self.text_or_none(),
            "client_id": self.text(),
            "client_host": self.text(),
            "subscribed_topic_names": self.some(self.text),
        }

    def target(self) -> dict[str, Any]:
        return {"assignment_epoch": self.number(32), "assignment_timestamp": self.number(64)}

    def epoch(self) -> dict[str, Any]:
        return {"epoch": self.number(32), "metadata_hash": self.number(64)}

    def told(self) -> dict[str, Any]:
        return {
            "member_epoch": self.number(32),
            "previous_member_epoch": self.number(32),
            "state": self._random.randint(0, 3),
            "assigned_partitions": self.some(self.partitions),
        }

    def of_share(self, kind: ShareRecord) -> dict[str, Any]:
        if kind is ShareRecord.MEMBER_METADATA:
            return self.member()
        if kind is ShareRecord.METADATA:
            return self.epoch()
        if kind is ShareRecord.TARGET_ASSIGNMENT_METADATA:
            return self.target()
        if kind is ShareRecord.TARGET_ASSIGNMENT_MEMBER:
            return {"topic_partitions": self.some(self.partitions)}
        if kind is ShareRecord.CURRENT_MEMBER_ASSIGNMENT:
            return self.told()
        return {
            "initializing_topics": self.some(self.named_partitions),
            "initialized_topics": self.some(self.named_partitions),
            "deleting_topics": self.some(self.topic),
        }

    def of_consumer(self, kind: ConsumerRecord) -> dict[str, Any]:
        if kind is ConsumerRecord.METADATA:
            return self.epoch()
        if kind is ConsumerRecord.MEMBER_METADATA:
            return {
                "instance_id": self.text_or_none(),
                **self.member(),
                "subscribed_topic_regex": self.text_or_none(),
                "rebalance_timeout_ms": self.number(32),
                "server_assignor": self.text_or_none(),
                "classic_member": None,
            }
        if kind is ConsumerRecord.TARGET_METADATA:
            return self.target()
        if kind is ConsumerRecord.TARGET_MEMBER:
            return {"topic_partitions": self.some(self.partitions)}
        if kind is ConsumerRecord.REGULAR_EXPRESSION:
            return {
                "topics": self.some(self.text),
                "version": self.number(64),
                "timestamp": self.number(64),
            }
        # a topic without partitions is not in any assignment
        with_epochs = [
            {**each, "assignment_epochs": each["partitions"] or None} for each in self.some(self.partitions)
        ]
        return {**self.told(), "assigned_partitions": with_epochs, "partitions_pending_revocation": []}


_CONSUMER = [kind for kind in ConsumerRecord if kind is not ConsumerRecord.PARTITION_METADATA]


def written(kind: ShareRecord | ConsumerRecord, fields: Fields, *, erased: bool) -> Written:
    group_id = fields.text()
    about: dict[str, str] = {}
    if "MEMBER" in kind.name:
        about["member_id"] = fields.text()
    elif kind is ConsumerRecord.REGULAR_EXPRESSION:
        about["regular_expression"] = fields.text()
    if isinstance(kind, ShareRecord):
        value = None if erased else fields.of_share(kind)
        record = share_records.RECORDS.record(kind, group_id, value, **about)
    else:
        value = None if erased else fields.of_consumer(kind)
        packed = (
            None if value is None else {**value, "classic_member": 0} if "classic_member" in value else value
        )
        record = consumer_records.RECORDS.record(kind, group_id, packed, **about)
    return Written(record, {"group_id": group_id, **about}, value)


@pytest.mark.parametrize("kinds", [list(ShareRecord), _CONSUMER], ids=["share", "consumer"])
def test_bytes_are_apaches(kinds: Sequence[ShareRecord | ConsumerRecord]) -> None:
    fields = Fields(Random(len(kinds)))
    told = [written(kind, fields, erased=number == 0) for kind in kinds for number in range(_EACH)]
    lines = [
        json.dumps({"key": key.hex(), "value": None if value is None else value.hex()})
        for (key, value), _, _ in told
    ]
    answers = java.run_program(_SOURCE, stdin="\n".join(lines) + "\n", timeout=100).splitlines()
    answers = [line for line in answers if line.startswith("{")]
    assert len(answers) == len(told)
    for (record, key, value), line, answer in zip(told, lines, map(json.loads, answers), strict=True):
        given = json.loads(line)
        assert (answer["key"], answer.get("value")) == (given["key"], given["value"]), record
        assert answer["shownKey"] == as_shown(key)
        if value is not None and isinstance(kinds[0], ShareRecord):
            # a tagged field with its default value is not printed
            shown = {
                name: each for name, each in value.items() if (name, each) != ("assignment_timestamp", 0)
            }
            assert answer["shownValue"] == as_shown(shown)


def as_shown(value: Any) -> Any:
    """Return a field as Kafka's formatters print it."""
    if isinstance(value, Mapping):
        return {
            re.sub(r"_(\w)", lambda letter: letter[1].upper(), name): as_shown(each)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [as_shown(each) for each in value]
    if isinstance(value, UUID):
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    return value
