"""Members of a consumer group, driven step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from tests.unit.coordinator_log.world import GIVEN_UP_MS, MemoryLog, World, record_log

from sharecore.coordinator.consumer import (
    ConsumerCoordinator,
    ConsumerGroup,
    ConsumerLimits,
    Heartbeat,
    HeartbeatAnswer,
)
from sharecore.coordinator.registry import Group, GroupRegistry
from sharecore.coordinator.topics import TopicInfo
from sharecore.errors import ErrorCode, KafkaError

A, B = UUID(int=1), UUID(int=2)


class Topics:
    """Topics created by a test."""

    def __init__(self) -> None:
        self.version = self.created = 0
        self.topics: dict[str, TopicInfo] = {}
        self.put("a", A, 4)
        self.put("b", B, 2)

    def put(self, name: str, topic_id: UUID, partitions: int) -> None:
        self.version += 1
        self.created += name not in self.topics
        self.topics[name] = TopicInfo(name, topic_id, partitions)

    def find(self, name: str) -> TopicInfo | None:
        return self.topics.get(name)

    def find_id(self, topic_id: UUID) -> TopicInfo | None:
        return next((topic for topic in self.topics.values() if topic.topic_id == topic_id), None)

    def names(self) -> list[str]:
        return list(self.topics)


class Member:
    """A client: its last response, and its partitions."""

    def __init__(self, cluster: Cluster, member_id: str, **fields: Any) -> None:
        self.cluster = cluster
        self.member_id = member_id
        self.fields = fields
        self.epoch = 0
        self.owned: frozenset[tuple[UUID, int]] = frozenset()
        self.wanted: frozenset[tuple[UUID, int]] = frozenset()

    def join(self, *names: str) -> HeartbeatAnswer:
        self.epoch, self.owned = 0, frozenset()
        return self._take(
            self.cluster.heartbeat(
                self.member_id,
                0,
                rebalance_timeout_ms=30_000,
                subscribed_names=names or ("a",),
                owned=frozenset(),
                **self.fields,
            )
        )

    def beat(self, **fields: Any) -> HeartbeatAnswer:
        """Report the owned partitions if they changed: revoke and take partitions as told."""
        owned = None
        if self.owned != self.wanted:
            owned = self.owned = self.wanted
        return self._take(
            self.cluster.heartbeat(self.member_id, self.epoch, owned=owned, **self.fields | fields)
        )

    def leave(self, epoch: int = -1) -> None:
        self.cluster.heartbeat(self.member_id, epoch, **self.fields)

    def _take(self, answer: HeartbeatAnswer) -> HeartbeatAnswer:
        self.epoch = answer.epoch
        if answer.assigned is not None:
            self.wanted = frozenset(answer.assigned)
        return answer


class Cluster:
    def __init__(self, **limits: int) -> None:
        self.world = World()
        self.log = MemoryLog()
        self.topics = Topics()
        self.limits = ConsumerLimits(**limits)
        self.replaced: list[Group] = []
        self.groups_bytes_max = 1 << 20
        self.restart()

    def restart(self) -> None:
        self.world.crash()
        records = record_log(self.world, [self.log])
        self.registry = GroupRegistry(self.groups_bytes_max)
        self.apart: list[Callable[[], object]] = []
        """Work waiting for a thread."""
        self.groups = ConsumerCoordinator(
            self.registry,
            records,
            self.topics,
            lambda group_id: self.limits,
            replaced=self.replaced.append,
            apart=lambda group_id, work, done: self.apart.append(lambda: done(work())),
        )
        records.load()
        self.groups.start()

    def heartbeat(self, member_id: str, epoch: int, **fields: Any) -> HeartbeatAnswer:
        answers: list[HeartbeatAnswer | KafkaError] = []
        self.groups.heartbeat(Heartbeat("g", member_id, epoch, **fields), answers.append)
        self.world.run(GIVEN_UP_MS if self.log.failing else 0)
        (answer,) = answers
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    @property
    def group(self) -> ConsumerGroup:
        group = self.registry.get("g")
        assert isinstance(group, ConsumerGroup)
        return group


def refusal(call: Any, *args: Any, **fields: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        call(*args, **fields)
    return refused.value.code
