"""The offset of a streaming query over a share group: a batch in Spark's checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from sharecore.client.fetching.lease import AcknowledgeType
from sharecore.spark.ranges import Ranges

FORMAT = 1


class SharePartition(NamedTuple):
    """A share partition: the topic's name, its id and the partition's number.

    The id distinguishes a topic from one of the same name that was created after it was deleted.
    """

    topic: str
    topic_id: UUID
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


Leases = dict[SharePartition, Ranges]


@dataclass(frozen=True, slots=True)
class Offset:
    """The end of one batch.

    Args:
        sequence: counts the batches of the query; 0 before the first.
        group: the share group that the leases are of.
        leased: what the batch consists of, each range with its delivery count.
        owed: what earlier batches still have to acknowledge, each range with its acknowledge type. It is
            acknowledged when it is delivered again, and not processed again.
    """

    sequence: int = 0
    group: str = ""
    leased: Leases = field(default_factory=dict)
    owed: Leases = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """As Spark is to keep it."""
        return {
            "format": FORMAT,
            "sequence": self.sequence,
            "group": self.group,
            "leased": _to_json(self.leased),
            "owed": _to_json(self.owed),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Offset:
        """Parse the output of `to_json`; raise ValueError for anything else."""
        if value.get("format") != FORMAT:
            raise ValueError(
                f"the checkpoint was not written by this source (format {value.get('format')}, "
                f"{FORMAT} is understood): use another checkpointLocation"
            )
        return cls(value["sequence"], value["group"], _from_json(value["leased"]), _from_json(value["owed"]))


class Outcome(NamedTuple):
    """What becomes of the offsets `first` to `last` of one delivery; `kind` is an acknowledge type."""

    topic: str
    partition: int
    first: int
    last: int
    deliveries: int
    kind: int


def kinds_of(leased: Leases, outcomes: Sequence[Outcome]) -> dict[SharePartition, Ranges]:
    """Return the acknowledge type of each range of a batch: accepted, unless the job said otherwise."""
    kinds = {
        key: Ranges((first, last, AcknowledgeType.ACCEPT) for first, last, _ in ranges)
        for key, ranges in leased.items()
    }
    by_name = {(key.topic, key.partition): key for key in leased}
    for topic, partition, first, last, count, kind in outcomes:
        key = by_name.get((topic, partition))
        if key is not None:
            for low, high, delivered in leased[key].overlap(first, last):
                if delivered == count:
                    kinds[key].put(low, high, kind)
    return kinds


def _to_json(leases: Leases) -> dict[str, object]:
    topics: dict[str, Any] = {}
    for (topic, topic_id, partition), ranges in sorted(leases.items()):
        if len(ranges):
            entry = topics.setdefault(topic, {"id": str(topic_id), "partitions": {}})
            entry["partitions"][str(partition)] = [list(each) for each in ranges]
    return topics


def _from_json(topics: Mapping[str, object]) -> Leases:
    return dict(_partitions(topics))


def _partitions(topics: Mapping[str, Any]) -> Iterator[tuple[SharePartition, Ranges]]:
    for topic, entry in topics.items():
        for partition, ranges in entry["partitions"].items():
            yield SharePartition(topic, UUID(entry["id"]), int(partition)), Ranges(ranges)
