"""The records of `__share_group_state`, one after the other, folded into the states that they stand for."""

from __future__ import annotations

from sharecore.coordinator.keys import SharePartitionKey
from sharecore.coordinator.share_state import ShareState
from sharecore.coordinator.state_records import StateRecord, UnknownRecordType, Update, decode_record


class StateReplay:
    """What one partition of the topic says, record by record from its start.

    Attributes:
        states: the share partitions that have state.
    """

    def __init__(self) -> None:
        self.states: dict[SharePartitionKey, ShareState] = {}

    def take(self, offset: int, key: bytes | None, value: bytes | None) -> str | None:
        """Takes a record.

        Returns:
            None, or why the record was passed over.

        Raises:
            ValueError: the record is damaged; what was taken before stands.
        """
        try:
            record = decode_record(key, value)
        except UnknownRecordType as error:
            return f"passed over: {error}"
        return self.fold(offset, record)

    def fold(self, offset: int, record: StateRecord) -> str | None:
        """As `take`, for a record that has been decoded."""
        if record.value is None:
            self.states.pop(record.key, None)
            return None
        state = self.states.get(record.key)
        if isinstance(record.value, Update):
            if state is None:
                return f"passed over: update of {record.key.coordinator_key()} without a snapshot before it"
            state.replay_update(record.value)
            state.fence_epoch = max(state.fence_epoch, state.leader_epoch)
            return None
        if state is None:
            state = self.states[record.key] = ShareState(record.key)
        state.replay_snapshot(record.value)
        state.snapshot_offset = offset
        return None
