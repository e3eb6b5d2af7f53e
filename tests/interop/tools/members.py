"""Members of groups that work, stay or go as a scenario says, on whichever broker it runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from confluent_kafka import Consumer, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.harness.clients import QUIET, commit, create_topic

from sharecore.admin import BlockingAdmin

FIRST_MS = 1_700_000_000_000
"""Timestamp of the first record of a partition; each later one is a second younger."""
_SECONDS_MAX = 60


class Members:
    """Topics, records and members of one broker."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._share: dict[str, ShareConsumer] = {}
        self._plain: dict[str, Consumer] = {}

    def topic(self, name: str, partitions: int, records: int) -> None:
        """Make a topic with so many records in each partition."""
        create_topic(self._bootstrap, name, partitions)
        self.produce(name, partitions, range(records))

    def produce(self, name: str, partitions: int, numbers: range) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "acks": "all", **QUIET})
        for partition in range(partitions):
            for number in numbers:
                value = f"{name}-{partition}-{number}".encode()
                producer.produce(name, value, partition=partition, timestamp=FIRST_MS + number * 1000)
        assert producer.flush(_SECONDS_MAX) == 0

    def share(self, group: str, topics: list[str], records: int) -> None:
        """A member of a share group that has taken and accepted so many records and stays."""
        consumer = ShareConsumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": group,
                "client.id": f"client-of-{group}",
                "share.acknowledgement.mode": "explicit",
                **QUIET,
            }
        )
        consumer.subscribe(topics)
        self._share[group] = consumer
        seen = 0

        def take() -> bool:
            nonlocal seen
            messages = list(consumer.poll(0.2))
            for message in messages:
                assert message.error() is None, message.error()
                consumer.acknowledge(message)
            commit(consumer)
            seen += len(messages)
            return seen >= records

        _until(take, f"{group}: {records} records")

    def plain(self, group: str, topic: str, protocol: str, committed: dict[int, int]) -> None:
        """A member of a consumer group that has its partitions, has committed these offsets, and stays."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": group,
                "client.id": f"client-of-{group}",
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **QUIET,
            }
        )
        consumer.subscribe([topic])
        self._plain[group] = consumer
        _until(lambda: consumer.poll(0.2) is not None, f"{group}: a record")
        offsets = [TopicPartition(topic, partition, offset) for partition, offset in committed.items()]
        consumer.commit(offsets=offsets, asynchronous=False)

    def leave(self, group: str) -> None:
        """The member of this group leaves it; the group is empty then."""
        is_empty = self._is_empty_share if group in self._share else self._is_empty_plain
        consumer: Consumer | ShareConsumer = self._share.pop(group, None) or self._plain.pop(group)
        consumer.close()
        # a closing consumer asks to leave without waiting for the response
        _until(partial(is_empty, group), f"{group}: nobody")

    def leave_all(self) -> None:
        """Whoever is left leaves."""
        left: list[Consumer | ShareConsumer] = [*self._share.values(), *self._plain.values()]
        for consumer in left:
            consumer.close()

    def _is_empty_share(self, group: str) -> bool:
        with BlockingAdmin({"bootstrap.servers": self._bootstrap}) as admin:
            return not admin.members(group)

    def _is_empty_plain(self, group: str) -> bool:
        admin = AdminClient({"bootstrap.servers": self._bootstrap, **QUIET})
        return not admin.describe_consumer_groups([group])[group].result(_SECONDS_MAX).members


def _until(done: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + _SECONDS_MAX
    while not done():
        time.sleep(0.05)
        assert time.monotonic() < until, f"{what}: not within {_SECONDS_MAX} s"
