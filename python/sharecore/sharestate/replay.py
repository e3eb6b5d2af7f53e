"""Folds the records of `__share_group_state` into the states that they describe."""

from __future__ import annotations

from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import (
    StateRecord,
    UnknownRecordType,
    Update,
    decode_record,
    decode_update,
)
from sharecore.sharestate.state import ShareState


class StateReplay:
    """The states in one partition of the topic, built record by record from its start.

    Attributes:
        states: the share partitions that have state.
    """

    def __init__(self) -> None:
        self.states: dict[SharePartitionKey, ShareState] = {}
        # by the bytes of an update's key: most records are updates, and their keys need not be decoded
        self._by_update_key: dict[bytes | None, ShareState] = {}

    def take(self, offset: int, key: bytes | None, value: bytes | None) -> str | None:
        """Takes a record.

        Returns:
            None, or why the record was passed over.

        Raises:
            ValueError: the record is damaged; what was taken before stands.
        """
        state = self._by_update_key.get(key)
        if state is not None and value is not None:
            state.replay_update(decode_update(value))
            return None
        try:
            record = decode_record(key, value)
        except UnknownRecordType as error:
            return f"passed over: {error}"
        return self.fold(offset, record)

    def fold(self, offset: int, record: StateRecord) -> str | None:
        """As `take`, for a record that has been decoded."""
        if record.value is None:
            gone = self.states.pop(record.key, None)
            if gone is not None:
                del self._by_update_key[gone.update_key]
            return None
        state = self.states.get(record.key)
        if isinstance(record.value, Update):
            if state is None:
                return f"passed over: update of {record.key.coordinator_key()} without a snapshot before it"
            state.replay_update(record.value)
            return None
        if state is None:
            state = self.states[record.key] = ShareState(record.key)
            self._by_update_key[state.update_key] = state
        state.replay_snapshot(record.value)
        state.snapshot_offset = offset
        return None
