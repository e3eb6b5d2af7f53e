"""Committed offsets of all groups, as they lie in `__consumer_offsets`.

Memory changes when a commit is durable: what a consumer is told, no crash takes back. Offsets of an open
transaction wait beside the others until its marker has been written (KIP-98).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from sharecore.coordinator.offset_records import (
    LEGACY_OFFSET_COMMIT,
    NO_TIME,
    OFFSET_COMMIT,
    Commits,
    CommittedOffset,
    TopicPartition,
    decode_offset,
    decode_offset_key,
    encode_offset,
    encode_offset_key,
)
from sharecore.coordinator_log.runtime import CoordinatorRuntime
from sharecore.coordinator_log.topic_log import Producer
from sharecore.errors import KafkaError
from sharecore.waiting import Done


class Offsets:
    """Offsets by group and partition.

    Args:
        records: `__consumer_offsets`.
    """

    kinds: Collection[int] = (LEGACY_OFFSET_COMMIT, OFFSET_COMMIT)

    def __init__(self, records: CoordinatorRuntime) -> None:
        self._records = records
        self._groups: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self._open: dict[int, dict[str, dict[TopicPartition, CommittedOffset]]] = {}
        self.replayed: set[str] = set()
        """Groups that offsets were read of, those that are void or deleted since among them."""
        self._writing: Counter[str] = Counter()
        """Commits of a group that are not durable yet."""
        records.register(self)

    def commit(
        self, group_id: str, commits: Commits, done: Done, *, producer: Producer | None = None
    ) -> None:
        """Writes offsets of a group; with a producer they count from the commit of its transaction on."""
        records = [
            (encode_offset_key(group_id, partition), encode_offset(value))
            for partition, value in commits.items()
        ]

        def durable(error: KafkaError | None) -> None:
            self._writing -= Counter((group_id,))
            if error is None:
                self._take(group_id, commits, producer.id if producer else None)
            done(error)

        self._writing[group_id] += 1
        try:
            if producer is None:
                self._records.append(group_id, records, durable)
            else:
                self._records.append_in_transaction(group_id, records, producer, durable)
        except KafkaError:
            self._writing -= Counter((group_id,))
            raise

    def complete(self, producer_id: int, partition: int, *, commit: bool) -> None:
        """The transaction of a producer has its marker in a partition of the topic: its offsets count, or
        are void.
        """
        groups = self._open.get(producer_id)
        if groups is None:
            return
        for group_id in [
            group_id for group_id in groups if self._records.partition_of(group_id) == partition
        ]:
            commits = groups.pop(group_id)
            if commit and commits:
                self._groups.setdefault(group_id, {}).update(commits)
        if not groups:
            del self._open[producer_id]

    def get(self, group_id: str) -> Commits:
        """Every offset of a group; empty for a group that has none."""
        return self._groups.get(group_id, {})

    def is_pending(self, group_id: str, partition: TopicPartition) -> bool:
        """Whether an open transaction has committed an offset for the partition."""
        return any(partition in groups.get(group_id, {}) for groups in self._open.values())

    def has_any(self, group_id: str) -> bool:
        """Whether the group has offsets, or will have them: those in open transactions and on their way to
        the disk count.
        """
        if group_id in self._groups or self._writing[group_id]:
            return True
        return any(group_id in groups for groups in self._open.values())

    def delete(self, group_id: str, partitions: Iterable[TopicPartition], done: Done) -> None:
        """Forgets offsets of a group, those in open transactions too."""
        gone = list(partitions)

        def durable(error: KafkaError | None) -> None:
            if error is None:
                self._forget(group_id, gone)
            done(error)

        if gone:
            self._records.append(
                group_id, [(encode_offset_key(group_id, each), None) for each in gone], durable
            )
        else:
            done(None)

    def delete_all(self, group_id: str, done: Done) -> None:
        """Forgets every offset of a group."""
        pending = {each for groups in self._open.values() for each in groups.get(group_id, ())}
        self.delete(group_id, sorted(pending.union(self.get(group_id))), done)

    def of_topic(self, topic: str) -> dict[str, list[TopicPartition]]:
        """Groups that have offsets for a topic, and for which partitions."""
        found = {
            group_id: [each for each in commits if each.topic == topic]
            for group_id, commits in self._groups.items()
        }
        return {group_id: partitions for group_id, partitions in found.items() if partitions}

    def expired(
        self,
        group_id: str,
        *,
        now_ms: int,
        retention_ms: int,
        since_ms: int | None,
        subscribed: Collection[str] = (),
    ) -> list[TopicPartition]:
        """Offsets of a group that have been kept for long enough (KIP-211).

        Args:
            retention_ms: `offsets.retention.minutes`.
            since_ms: since when nobody has consumed as a member of the group; None counts from each commit.
            subscribed: topics that members consume: their offsets stay.
        """
        found = []
        for partition, value in self.get(group_id).items():
            if partition.topic in subscribed or self.is_pending(group_id, partition):
                continue
            base_ms = value.commit_ms if since_ms is None else max(since_ms, value.commit_ms)
            at_ms = base_ms + retention_ms if value.expire_ms == NO_TIME else value.expire_ms
            if now_ms >= at_ms:
                found.append(partition)
        return found

    def replay(self, partition: int, kind: int, key: bytes, value: bytes | None) -> None:
        group_id, committed = decode_offset_key(key)
        if value is None:
            self._forget(group_id, [committed])
        else:
            self.replayed.add(group_id)
            self._take(group_id, {committed: decode_offset(value)}, None)

    def replay_in_transaction(self, producer_id: int, key: bytes, value: bytes | None) -> None:
        """Takes an offset that waits for the end of its transaction."""
        group_id, committed = decode_offset_key(key)
        if value is None:
            raise ValueError("an offset is deleted in a transaction")
        self.replayed.add(group_id)
        self._take(group_id, {committed: decode_offset(value)}, producer_id)

    def _take(self, group_id: str, commits: Commits, producer_id: int | None) -> None:
        if producer_id is not None:
            self._open.setdefault(producer_id, {}).setdefault(group_id, {}).update(commits)
            return
        self._groups.setdefault(group_id, {}).update(commits)
        # the later commit wins, whenever the transaction with the earlier one ends
        for groups in self._open.values():
            pending = groups.get(group_id, {})
            for partition in pending.keys() & commits.keys():
                del pending[partition]

    def _forget(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        for groups in (self._groups, *self._open.values()):
            commits = groups.get(group_id)
            if commits is None:
                continue
            for partition in partitions:
                commits.pop(partition, None)
            if not commits and groups is self._groups:
                del groups[group_id]
