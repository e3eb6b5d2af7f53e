"""A member of a share group that sends ShareFetch and ShareAcknowledge directly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from tests.harness.batches import batch
from tests.harness.running import Client, RunningBroker, join_share_group

from sharecore.protocol import ApiKey

ACCEPT, RELEASE, REJECT, RENEW = b"\1", b"\2", b"\3", b"\4"
Acks = Mapping[int, Sequence[tuple[int, int, bytes]]]


class Member:
    """A member of a share group with a share session."""

    def __init__(self, broker: RunningBroker, group: str, topic: str, name: str = "m") -> None:
        self.broker = broker
        self.group = group
        self.name = name
        self.client: Client = broker.connect()
        self.epoch = 0
        joined = join_share_group(self.client, group, name, [topic])
        self.topic_id: UUID = joined.assignment.topic_partitions[0].topic_id

    def _topics(self, partitions: Sequence[int], acks: Acks, topic_id: UUID | None = None) -> list[Any]:
        names = ("first_offset", "last_offset", "acknowledge_types")
        return [
            {
                "topic_id": topic_id or self.topic_id,
                "partitions": [
                    {
                        "partition_index": index,
                        "acknowledgement_batches": [
                            dict(zip(names, each, strict=True)) for each in acks.get(index, ())
                        ],
                    }
                    for index in dict.fromkeys((*partitions, *acks))
                ],
            }
        ]

    def fetch(
        self,
        *partitions: int,
        epoch: int | None = None,
        acks: Acks | None = None,
        topic_id: UUID | None = None,
        forget: Sequence[int] = (),
        version: int = 2,
        **fields: Any,
    ) -> Any:
        """Send a ShareFetch; the session epoch is incremented automatically."""
        self.send(
            *partitions, epoch=epoch, acks=acks, topic_id=topic_id, forget=forget, version=version, **fields
        )
        return self.client.receive(ApiKey.SHARE_FETCH, version)

    def send(
        self,
        *partitions: int,
        epoch: int | None = None,
        acks: Acks | None = None,
        topic_id: UUID | None = None,
        forget: Sequence[int] = (),
        version: int = 2,
        **fields: Any,
    ) -> None:
        if epoch is None:
            epoch, self.epoch = self.epoch, self.epoch + 1
        limits = {
            "max_wait_ms": 0,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
        }
        self.client.send(
            ApiKey.SHARE_FETCH,
            version,
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=epoch,
            topics=self._topics(partitions, acks or {}, topic_id) if partitions or acks else [],
            forgotten_topics_data=[{"topic_id": self.topic_id, "partitions": forget}] if forget else [],
            **limits | fields,
        )

    def acknowledge(self, acks: Acks, *, epoch: int | None = None, version: int = 2, **fields: Any) -> Any:
        """Send a ShareAcknowledge."""
        if epoch is None:
            epoch, self.epoch = self.epoch, self.epoch + 1
        return self.client.ask(
            ApiKey.SHARE_ACKNOWLEDGE,
            version,
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=epoch,
            topics=self._topics((), acks) if acks else [],
            **fields,
        )


def produce(broker: RunningBroker, topic: str, count: int, partition: int = 0) -> None:
    data = [{"name": topic, "partition_data": [{"index": partition, "records": batch([b"x"] * count)}]}]
    answer = broker.ask(ApiKey.PRODUCE, 12, acks=-1, timeout_ms=5000, topic_data=data)
    assert answer.responses[0].partition_responses[0].error_code == 0


def acquired(answer: Any) -> dict[int, list[tuple[int, int, int]]]:
    assert answer.error_code == 0, answer
    return {
        part.partition_index: [tuple(each) for each in part.acquired_records]
        for topic in answer.responses
        for part in topic.partitions
        if part.acquired_records
    }


def errors(answer: Any) -> list[tuple[int, int, int]]:
    """Partition, fetch error and acknowledge error."""
    return [
        (part.partition_index, part.error_code, getattr(part, "acknowledge_error_code", 0))
        for topic in answer.responses
        for part in topic.partitions
    ]
