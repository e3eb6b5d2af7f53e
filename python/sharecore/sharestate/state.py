"""The soft state of one share partition in the share coordinator."""

from __future__ import annotations

from sharecore._core import combine_state_batches
from sharecore.coordinator_log.topic_log import Record
from sharecore.errors import ErrorCode, KafkaError
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import (
    SNAPSHOT,
    UNINITIALIZED,
    UPDATE,
    Snapshot,
    Update,
    encode_key,
    encode_snapshot,
    encode_update,
)

_MERGE_BYTES = 64 * 1024
_STATE_EPOCH = "The state has been begun anew under a higher state epoch."
_LEADER_EPOCH = "A leader with a higher epoch has taken the share partition over."


class ShareState:
    """What the records of one share partition say, and the records that change it.

    State batches are kept as they came and combined when somebody asks for them, not at each update: a write
    costs the same however many records are in flight. Kept parts are combined early when they outgrow what
    they combine to.
    """

    __slots__ = (
        "_merge_at",
        "_parts",
        "_parts_bytes",
        "create_ms",
        "delivery_complete_count",
        "fence_epoch",
        "key",
        "leader_epoch",
        "snapshot_epoch",
        "snapshot_key",
        "snapshot_offset",
        "start_offset",
        "state_epoch",
        "update_key",
        "updates",
        "write_ms",
    )

    def __init__(self, key: SharePartitionKey) -> None:
        self.key = key
        self.snapshot_key = encode_key(SNAPSHOT, key)
        self.update_key = encode_key(UPDATE, key)
        self.snapshot_epoch = -1
        self.state_epoch = 0
        self.leader_epoch = 0
        self.fence_epoch = 0
        self.start_offset = UNINITIALIZED
        self.delivery_complete_count = UNINITIALIZED
        self.create_ms = 0
        self.write_ms = 0
        self.updates = 0
        self.snapshot_offset = 0
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._merge_at = _MERGE_BYTES

    def batches(self) -> bytes:
        """State batches from the start offset on, packed, ascending, apart."""
        if self._parts:
            merged = combine_state_batches(self._parts, self.start_offset)
            self._parts = [merged]
            self._parts_bytes = len(merged)
            self._merge_at = max(_MERGE_BYTES, 2 * len(merged))
            return merged
        return b""

    def initialize(
        self, state_epoch: int, start_offset: int, *, now_ms: int, updates_per_snapshot: int
    ) -> Record:
        """Resets the state to a start offset (-1: not known yet) and returns the snapshot to append.

        Raises:
            KafkaError: FENCED_STATE_EPOCH when the state has a higher epoch.
        """
        if _superseded(state_epoch, self.state_epoch):
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH, _STATE_EPOCH)
        count = UNINITIALIZED if start_offset == UNINITIALIZED else 0
        value = Snapshot(self.snapshot_epoch + 1, state_epoch, 0, start_offset, now_ms, now_ms, b"", count)
        # as in Kafka, only a snapshot that is due begins the count anew
        updates = self.updates if self.updates < updates_per_snapshot else 0
        self.replay_snapshot(value)
        self.updates = updates
        return self.snapshot_key, encode_snapshot(value)

    def check(self, state_epoch: int, leader_epoch: int) -> None:
        """Refuses a writer that has been superseded; epochs of -1 are not checked.

        Raises:
            KafkaError: FENCED_STATE_EPOCH, FENCED_LEADER_EPOCH.
        """
        if _superseded(leader_epoch, self.fence_epoch):
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, _LEADER_EPOCH)
        if _superseded(state_epoch, self.state_epoch):
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH, _STATE_EPOCH)

    def write(
        self,
        start_offset: int,
        delivery_complete_count: int,
        batches: bytes,
        *,
        now_ms: int,
        updates_per_snapshot: int,
    ) -> Record:
        """Applies a change and returns the record to append.

        It is an update, or a snapshot of everything once `updates_per_snapshot` updates stand since the last
        one. The start offset never falls, nor does the count while it stays. `batches` are packed, ascending,
        apart, and none lies below the start offset.
        """
        # a write that was overtaken takes nothing back
        if start_offset < self.start_offset:
            start_offset, delivery_complete_count = self.start_offset, self.delivery_complete_count
        elif start_offset == self.start_offset:
            delivery_complete_count = max(delivery_complete_count, self.delivery_complete_count)
        update = Update(
            self.snapshot_epoch,
            self.leader_epoch,
            start_offset,
            batches,
            delivery_complete_count,
        )
        due = self.updates >= updates_per_snapshot
        self.replay_update(update)
        # as Kafka does, the time of creation begins anew with a snapshot that is due
        return self.snapshot(now_ms, now_ms) if due else (self.update_key, encode_update(update))

    def snapshot(self, now_ms: int, create_ms: int) -> Record:
        """The record that makes all earlier ones redundant."""
        value = Snapshot(
            self.snapshot_epoch + 1,
            self.state_epoch,
            self.leader_epoch,
            self.start_offset,
            create_ms,
            now_ms,
            self.batches(),
            self.delivery_complete_count,
        )
        self.replay_snapshot(value)
        return self.snapshot_key, encode_snapshot(value)

    def raise_leader_epoch(
        self, leader_epoch: int, *, now_ms: int, updates_per_snapshot: int
    ) -> Record | None:
        """Fences earlier leaders, since one has read the state. Returns the record to append, if one is due.

        Raises:
            KafkaError: FENCED_LEADER_EPOCH when a later leader has been here.
        """
        self.check(-1, leader_epoch)
        if leader_epoch <= self.fence_epoch:
            return None
        self.fence_epoch = self.leader_epoch = leader_epoch
        return self.write(
            self.start_offset,
            self.delivery_complete_count,
            b"",
            now_ms=now_ms,
            updates_per_snapshot=updates_per_snapshot,
        )

    def replay_snapshot(self, value: Snapshot) -> None:
        """Applies the content of a snapshot record."""
        self.snapshot_epoch = value.snapshot_epoch
        self.state_epoch = value.state_epoch
        self.leader_epoch = value.leader_epoch
        self.fence_epoch = max(self.fence_epoch, value.leader_epoch)
        self.start_offset = value.start_offset
        self.delivery_complete_count = value.delivery_complete_count
        self.create_ms = value.create_ms
        self.write_ms = value.write_ms
        self.updates = 0
        self._parts = [value.batches] if value.batches else []
        self._parts_bytes = len(value.batches)

    def replay_update(self, value: Update) -> None:
        """Applies the content of an update record."""
        if value.leader_epoch > self.leader_epoch:
            self.leader_epoch = value.leader_epoch
            self.fence_epoch = max(self.fence_epoch, value.leader_epoch)
        if value.start_offset != UNINITIALIZED:
            self.start_offset = value.start_offset
        self.delivery_complete_count = value.delivery_complete_count
        self.updates += 1
        if value.batches:
            self._parts.append(value.batches)
            self._parts_bytes += len(value.batches)
            if self._parts_bytes > self._merge_at:
                self.batches()


def _superseded(epoch: int, newest: int) -> bool:
    return epoch != UNINITIALIZED and epoch < newest
