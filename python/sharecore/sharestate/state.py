"""The soft state of one share partition in the share coordinator."""

from __future__ import annotations

from sharecore._core import StateContent
from sharecore.coordinator_log.topic_log import Record
from sharecore.errors import ErrorCode, KafkaError
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import SNAPSHOT, UPDATE, encode_key

_STATE_EPOCH = "The share coordinator rejected the request because the share-group state epoch did not match."
_LEADER_EPOCH = "The leader epoch in the request is older than the epoch on the broker."


class ShareState:
    """What the records of one share partition say, and the records that change it.

    A change is applied as the record that is written for it, so memory is what a restart finds.
    State batches are combined when somebody asks for them, not at each update: a write costs the same however
    many records are in flight.

    Args:
        content: what its records say so far.
        snapshot_offset: where its last snapshot lies.
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
        """The key of its snapshots, and of what deletes it."""
        return encode_key(SNAPSHOT, self.key)

    def initialize(
        self, state_epoch: int, start_offset: int, *, now_ms: int, updates_per_snapshot: int
    ) -> Record:
        """Reset the state to a start offset (-1: not known yet) and return the snapshot to append.

        Raises:
            KafkaError: FENCED_STATE_EPOCH when the state has a higher epoch.
        """
        content = self.content
        if content.is_superseded(state_epoch, -1):
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH, _STATE_EPOCH)
        return self.snapshot_key, content.begin(state_epoch, start_offset, now_ms, updates_per_snapshot)

    def check(self, state_epoch: int, leader_epoch: int) -> None:
        """Refuses a writer that has been superseded; epochs of -1 are not checked.

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

        It is an update, or a snapshot of everything once `updates_per_snapshot` updates stand since the last
        one. The start offset never falls, nor does the count while it stays. `batches` are packed, ascending,
        apart, and none lies below the start offset.

        Args:
            leader_epoch: a higher one than before; None leaves it.

        Raises:
            ValueError: `batches` are no state batches.
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
        """Fences earlier leaders, since one has read the state. Returns the record to append, if one is due.

        Raises:
            KafkaError: FENCED_LEADER_EPOCH when a later leader has been here.
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
