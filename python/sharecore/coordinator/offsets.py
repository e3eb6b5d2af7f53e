"""Committed offsets of all groups, as stored in `__consumer_offsets`.

Memory changes once a commit is durable, so that no crash revokes an offset that a consumer has read. Offsets
of an open transaction wait for its marker (KIP-98). Of two offsets of a partition, the later one in the log
wins, whichever transaction ends first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from sharecore.coordinator.memory_limit import MemoryLimit
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
from sharecore.coordinator_log.topic_log import Producer, Record
from sharecore.errors import ErrorCode, KafkaError
from sharecore.waiting import Done


class _Pending(NamedTuple):
    """An offset of an open transaction.

    Args:
        number: increases with the position in the log.
        is_overtaken: whether a later offset is already committed.
    """

    commit: CommittedOffset
    number: int
    is_overtaken: bool = False


OFFSETS_BYTES_MAX = 512 << 20
_OFFSET_BYTES = 350
"""Approximate memory size of an offset, without its text."""


class Offsets:
    """Committed offsets by group and partition.

    Args:
        records: `__consumer_offsets`.
        bytes_max: memory limit of all offsets (`sharecore.group.offsets.bytes.max`).
    """

    kinds: Collection[int] = (LEGACY_OFFSET_COMMIT, OFFSET_COMMIT)

    def __init__(self, records: CoordinatorRuntime, bytes_max: int = OFFSETS_BYTES_MAX) -> None:
        self._records = records
        self._memory = MemoryLimit(
            "sharecore.group.offsets.bytes.max",
            bytes_max,
            self._memory_bytes,
            ErrorCode.POLICY_VIOLATION,
            records.clock.monotonic_ms,
        )
        self._groups: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self._open: dict[int, dict[str, dict[TopicPartition, _Pending]]] = {}
        self._taken = 0
        self.replayed: set[str] = set()
        """Groups with replayed offsets, including aborted or deleted ones."""
        self._writing: dict[str, Counter[TopicPartition]] = {}
        """Offsets being written, by group."""
        records.register(self)

    def commit(
        self, group_id: str, commits: Commits, done: Done, *, producer: Producer | None = None
    ) -> None:
        """Append offsets of a group; with a producer they take effect when its transaction commits.

        Raises:
            KafkaError: POLICY_VIOLATION: all offsets together would take too much memory.
        """
        known = self.get(group_id)
        added = sum(
            _size(commit) - (_size(known[at]) if at in known else 0) for at, commit in commits.items()
        )
        if added > 0:
            self._memory.take(added)
        records = [
            (encode_offset_key(group_id, partition), encode_offset(value))
            for partition, value in commits.items()
        ]

        def ended(error: KafkaError | None) -> None:
            self._written(group_id, commits)
            if error is None:
                self._take(group_id, commits, producer.id if producer else None)

        self._writing.setdefault(group_id, Counter()).update(commits.keys())
        try:
            if producer is None:
                self._records.append(group_id, records, done, ended=ended)
            else:
                self._records.append_in_transaction(group_id, records, producer, done, ended=ended)
        except KafkaError:
            self._written(group_id, commits)
            raise

    def _memory_bytes(self) -> int:
        """Return the approximate memory size of all offsets, including open transactions."""
        durable = sum(sum(map(_size, commits.values())) for commits in self._groups.values())
        return durable + sum(
            _size(each.commit)
            for groups in self._open.values()
            for pending in groups.values()
            for each in pending.values()
        )

    def _written(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        left = self._writing.get(group_id, Counter()) - Counter(list(partitions))
        if left:
            self._writing[group_id] = left
        else:
            self._writing.pop(group_id, None)

    def complete(self, producer_id: int, partition: int, *, commit: bool) -> None:
        """Commit or discard a transaction's offsets after its marker in a partition of the topic."""
        groups = self._open.get(producer_id)
        if groups is None:
            return
        for group_id in [
            group_id for group_id in groups if self._records.partition_of(group_id) == partition
        ]:
            pending = groups.pop(group_id)
            counts = {at: each for at, each in pending.items() if commit and not each.is_overtaken}
            if counts:
                commits = {at: each.commit for at, each in counts.items()}
                self._groups.setdefault(group_id, {}).update(commits)
                self._overtake(group_id, {at: each.number for at, each in counts.items()})
        if not groups:
            del self._open[producer_id]

    def get(self, group_id: str) -> Commits:
        """Return all offsets of a group; empty without any."""
        return self._groups.get(group_id, {})

    def is_pending(self, group_id: str, partition: TopicPartition) -> bool:
        """Return whether an open transaction has an offset for the partition."""
        return any(partition in groups.get(group_id, {}) for groups in self._open.values())

    def has_any(self, group_id: str) -> bool:
        """Return whether the group has offsets, including pending and transactional ones."""
        return bool(self.all_partitions(group_id))

    def all_partitions(self, group_id: str) -> list[TopicPartition]:
        """Return the partitions with offsets of the group, including pending and transactional ones."""
        pending = (groups[group_id] for groups in self._open.values() if group_id in groups)
        return sorted({*self.get(group_id), *self._writing.get(group_id, ())}.union(*pending))

    def delete(self, group_id: str, partitions: Iterable[TopicPartition], done: Done) -> None:
        """Delete offsets of a group, including those in open transactions."""
        gone = list(partitions)

        def ended(error: KafkaError | None) -> None:
            if error is None:
                self.forget(group_id, gone)

        if gone:
            self._records.append(group_id, self.gone_records(group_id, gone), done, ended=ended)
        else:
            done(None)

    def gone_records(self, group_id: str, partitions: Iterable[TopicPartition]) -> list[Record]:
        """Return tombstones of offsets."""
        return [(encode_offset_key(group_id, each), None) for each in partitions]

    def resign(self, partition: int) -> None:
        """Discard the offsets of groups whose records are in a partition of the topic."""
        groups: set[str] = {*self._groups, *self.replayed}.union(*self._open.values())
        for group_id in groups:
            if self._records.partition_of(group_id) == partition:
                self._groups.pop(group_id, None)
                self.replayed.discard(group_id)
                for pending in self._open.values():
                    pending.pop(group_id, None)
        self._open = {producer_id: pending for producer_id, pending in self._open.items() if pending}

    def start(self) -> None:
        """Do nothing: replayed offsets are already in effect."""

    def of_topic(self, topic: str) -> dict[str, list[TopicPartition]]:
        """Return the groups with offsets of a topic, and their partitions."""
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
        """Return partitions of a group whose offsets have expired (KIP-211).

        Args:
            retention_ms: `offsets.retention.minutes`.
            since_ms: when the last member left; None counts from each commit.
            subscribed: topics that members consume; their offsets do not expire.
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
            self.forget(group_id, [committed])
        else:
            self.replayed.add(group_id)
            self._take(group_id, {committed: decode_offset(value)}, None)

    def replay_in_transaction(self, producer_id: int, key: bytes, value: bytes | None) -> None:
        """Apply an offset that waits for the end of its transaction."""
        group_id, committed = decode_offset_key(key)
        if value is None:
            raise ValueError("an offset is deleted in a transaction")
        self.replayed.add(group_id)
        self._take(group_id, {committed: decode_offset(value)}, producer_id)

    def _take(self, group_id: str, commits: Commits, producer_id: int | None) -> None:
        # commits become durable, and are replayed, in log order
        self._taken += 1
        if producer_id is not None:
            pending = self._open.setdefault(producer_id, {}).setdefault(group_id, {})
            pending.update({at: _Pending(commit, self._taken) for at, commit in commits.items()})
            return
        self._groups.setdefault(group_id, {}).update(commits)
        self._overtake(group_id, dict.fromkeys(commits, self._taken))

    def _overtake(self, group_id: str, numbers: Mapping[TopicPartition, int]) -> None:
        """Mark earlier transactional offsets as overtaken, whenever their transactions end."""
        for groups in self._open.values():
            pending = groups.get(group_id, {})
            for at in pending.keys() & numbers.keys():
                if pending[at].number < numbers[at]:
                    pending[at] = pending[at]._replace(is_overtaken=True)

    def forget(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Remove offsets from memory, including open transactions: their tombstones are durable."""
        gone = set(partitions)
        for pending in self._open.values():
            if group_id in pending:
                pending[group_id] = {at: each for at, each in pending[group_id].items() if at not in gone}
        left = {at: each for at, each in self.get(group_id).items() if at not in gone}
        if left:
            self._groups[group_id] = left
        else:
            self._groups.pop(group_id, None)


def _size(commit: CommittedOffset) -> int:
    return _OFFSET_BYTES + len(commit.metadata)
