"""In-memory state of one share partition in the share coordinator."""

from __future__ import annotations

from sharecore._core import StateContent
from sharecore.coordinator_log.topic_log import Record
from sharecore.errors import ErrorCode, KafkaError
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import SNAPSHOT, UPDATE, encode_key

_STATE_EPOCH = "The share coordinator rejected the request because the share-group state epoch did not match."
_LEADER_EPOCH = "The leader epoch in the request is older than the epoch on the broker."


class ShareState:
    """State of one share partition as in its records, and the records of changes to it.

    A change is applied through the record written for it, so memory equals the result of a replay. State
    batches are combined on reads, not on updates: the cost of a write does not depend on the number of
    in-flight records.

    Args:
        content: the state in its records.
        snapshot_offset: offset of its last snapshot.
    """

    __slots__ = ("content", "key", "snapshot_offset", "update_key")

    def __init__(
        self, key: SharePartitionKey, content: StateContent | None = None, snapshot_offset: int = 0
    ) -> None:
        self.key = key
        self.update_key = encode_key(UPDATE, key)
        self.content = content or StateContent()
        self.snapshot_offset = snapshot_offset

    @property
    def snapshot_key(self) -> bytes:
        """The key of its snapshots and of its tombstone."""
        return encode_key(SNAPSHOT, self.key)

    def initialize(
        self, state_epoch: int, start_offset: int, *, now_ms: int, updates_per_snapshot: int
    ) -> Record:
        """Reset the state to a start offset (-1: not known yet); return the snapshot to append.

        Raises:
            KafkaError: FENCED_STATE_EPOCH if the state has a higher epoch.
        """
        content = self.content
        if content.is_superseded(state_epoch, -1):
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH, _STATE_EPOCH)
        return self.snapshot_key, content.begin(state_epoch, start_offset, now_ms, updates_per_snapshot)

    def check(self, state_epoch: int, leader_epoch: int) -> None:
        """Refuse a fenced writer; epochs of -1 are not checked.

        Raises:
            KafkaError: FENCED_STATE_EPOCH, FENCED_LEADER_EPOCH.
        """
        if self.content.is_superseded(-1, leader_epoch):
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, _LEADER_EPOCH)
        if self.content.is_superseded(state_epoch, -1):
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH, _STATE_EPOCH)

    def write(
        self,
        start_offset: int,
        delivery_complete_count: int,
        batches: bytes,
        *,
        now_ms: int,
        updates_per_snapshot: int,
        leader_epoch: int | None = None,
    ) -> Record:
        """Apply a change and return the record to append.

        It is an update, or a snapshot once `updates_per_snapshot` updates follow the last one. The start
        offset never decreases, and neither does the count while the offset stays. `batches` are packed,
        ascending, disjoint, and not before the start offset.

        Args:
            leader_epoch: a higher one than before; None means unchanged.

        Raises:
            ValueError: `batches` are not valid state batches.
        """
        is_snapshot, value = self.content.write(
            start_offset, delivery_complete_count, batches, now_ms, updates_per_snapshot, leader_epoch
        )
        return (self.snapshot_key if is_snapshot else self.update_key), value

    def snapshot(self, now_ms: int, create_ms: int) -> Record:
        """Return the record that makes all earlier ones redundant."""
        return self.snapshot_key, self.content.snapshot(now_ms, create_ms)

    def raise_leader_epoch(
        self, leader_epoch: int, *, now_ms: int, updates_per_snapshot: int
    ) -> Record | None:
        """Fence earlier leaders after a read; return the record to append, if one is due.

        Raises:
            KafkaError: FENCED_LEADER_EPOCH if a later leader has read the state.
        """
        self.check(-1, leader_epoch)
        content = self.content
        if leader_epoch <= content.fence_epoch:
            return None
        return self.write(
            content.start_offset,
            content.delivery_complete_count,
            b"",
            now_ms=now_ms,
            updates_per_snapshot=updates_per_snapshot,
            leader_epoch=leader_epoch,
        )
