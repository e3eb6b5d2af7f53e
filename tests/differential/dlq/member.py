"""A member of a share group, by hand."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from tests.differential.dlq.side import Side, ask

from sharecore.protocol import ApiKey

ACCEPT, RELEASE, REJECT = 1, 2, 3
_SECONDS_MAX = 20.0
_LATER = {-1, 3, 14, 15, 16}
Ack = tuple[int, int, int | bytes]
"""First offset, last offset, and one type for all or one for each."""


class Member:
    """A member with a share session over one topic; it joins when it is made.

    Args:
        partitions: how many the topic has.
    """

    def __init__(self, side: Side, group: str, topic: str, partitions: int = 1, name: str = "m") -> None:
        self._side = side
        self._peer = side.connect()
        self._group, self._name = group, name
        self._topic_id = side.topic_id(topic)
        self._partitions = partitions
        self._epoch = 0
        self._join(topic)

    def _join(self, topic: str) -> None:
        epoch, until = 0, time.monotonic() + _SECONDS_MAX
        while time.monotonic() < until:
            answer = self._ask(
                ApiKey.SHARE_GROUP_HEARTBEAT,
                1,
                member_epoch=epoch,
                subscribed_topic_names=None if epoch else [topic],
            )
            if answer.error_code == 0:
                epoch = answer.member_epoch
                if answer.assignment is not None and answer.assignment.topic_partitions:
                    return
            elif answer.error_code not in _LATER:
                raise RuntimeError(answer)
            time.sleep(0.02)
        raise TimeoutError(f"{self._side.kind}: {self._name} has got no partition of {topic}")

    def _ask(self, key: ApiKey, version: int, **fields: Any) -> Any:
        return ask(self._peer, key, version, group_id=self._group, member_id=self._name, **fields)

    def _topics(self, acks: Mapping[int, Sequence[Ack]], *, all_of_them: bool) -> list[dict[str, Any]]:
        names = ("first_offset", "last_offset", "acknowledge_types")
        chosen = range(self._partitions) if all_of_them else acks
        parts = [
            {
                "partition_index": index,
                "acknowledgement_batches": [
                    dict(zip(names, (first, last, _types(kind)), strict=True))
                    for first, last, kind in acks.get(index, ())
                ],
            }
            for index in chosen
        ]
        return [{"topic_id": self._topic_id, "partitions": parts}] if parts else []

    def take(self, wanted: int, partition: int = 0, seconds: float = 10.0) -> list[tuple[int, int, int]]:
        """Fetch until so many records of a partition are leased, or time is over."""
        found: list[tuple[int, int, int]] = []
        until = time.monotonic() + seconds
        while sum(last - first + 1 for first, last, _ in found) < wanted and time.monotonic() < until:
            for index, ranges in self.fetch().items():
                if index == partition:
                    found += ranges
        return found

    def fetch(self, *batches: Ack) -> dict[int, list[tuple[int, int, int]]]:
        """What one ShareFetch leases, by partition; it may acknowledge records of partition 0."""
        answer = self._ask(
            ApiKey.SHARE_FETCH,
            1,
            share_session_epoch=self._next_epoch(),
            max_wait_ms=200,
            min_bytes=1,
            max_bytes=8 << 20,
            max_records=5000,
            batch_size=5000,
            topics=self._topics({0: batches} if batches else {}, all_of_them=self._epoch == 1),
            forgotten_topics_data=[],
        )
        if answer.error_code:  # a broker that has just started may not know the topic everywhere yet
            self._epoch = 0
            time.sleep(0.05)
            return {}
        return {
            part.partition_index: [tuple(each) for each in part.acquired_records]
            for topic in answer.responses
            for part in topic.partitions
            if part.acquired_records
        }

    def acknowledge(self, *batches: Ack, partition: int = 0) -> int:
        """Acknowledges ranges of a partition, each with one type; gives the error code."""
        answer = self._ask(
            ApiKey.SHARE_ACKNOWLEDGE,
            1,
            share_session_epoch=self._next_epoch(),
            topics=self._topics({partition: list(batches)}, all_of_them=False),
        )
        if answer.error_code:
            return int(answer.error_code)
        return int(answer.responses[0].partitions[0].error_code)

    def close_session(self, *batches: Ack) -> None:
        """End the share session: the broker releases the leased records that are not acknowledged now."""
        topics = self._topics({0: batches} if batches else {}, all_of_them=False)
        self._ask(ApiKey.SHARE_ACKNOWLEDGE, 1, share_session_epoch=-1, topics=topics)
        self._epoch = 0

    def begin_again(self) -> None:
        """The next fetch begins another session, in the place of this one."""
        self._epoch = 0

    def hang_up(self) -> None:
        """Close the connection, and say nothing."""
        self._peer.socket.close()

    def leave(self) -> None:
        """Leaves the group."""
        self._ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, member_epoch=-1, subscribed_topic_names=None)

    def _next_epoch(self) -> int:
        self._epoch += 1
        return self._epoch - 1


def _types(kind: int | bytes) -> bytes:
    return kind if isinstance(kind, bytes) else bytes([kind])
