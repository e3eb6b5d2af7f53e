"""The state of share partitions, as `__share_group_state` has it: what holds now, or how it came to be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sharecore.admin.state_topic import RawRecord, StateProblem
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import (
    Snapshot,
    StateBatch,
    StateRecord,
    UnknownRecordType,
    Update,
    decode_record,
    unpack_batches,
)
from sharecore.sharestate.replay import StateReplay
from sharecore.sharestate.state import ShareState


@dataclass(frozen=True, slots=True)
class SharePartitionState:
    """What holds of a share partition; -1 is not known yet.

    Args:
        topic: the topic's name; None where nobody knows the id any more.
        created_ms, snapshot_ms: when the state was made, and when its last snapshot was written.
        batches: ascending, apart, from the start offset on.
    """

    key: SharePartitionKey
    topic: str | None
    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    created_ms: int
    snapshot_ms: int
    batches: Sequence[StateBatch]


@dataclass(frozen=True, slots=True)
class StateChange:
    """One record about a share partition.

    Args:
        partition: of the state topic.
        value: None where the record deletes the state.
    """

    partition: int
    offset: int
    timestamp_ms: int
    kind: int
    value: Snapshot | Update | None

    @property
    def batches(self) -> list[StateBatch]:
        """The state batches that the record holds."""
        return [] if self.value is None else list(unpack_batches(self.value.batches))


@dataclass(frozen=True, slots=True)
class StateDump:
    """The live state, by key, and what could not be read."""

    states: Sequence[SharePartitionState]
    problems: Sequence[StateProblem]


@dataclass(frozen=True, slots=True)
class StateHistory:
    """The records about one share partition that are still there, and what could not be read."""

    changes: Sequence[StateChange]
    problems: Sequence[StateProblem]


class _Reading:
    def __init__(self) -> None:
        self.problems: list[StateProblem] = []

    def problem(self, problem: StateProblem) -> None:
        self.problems.append(problem)

    def take(self, record: RawRecord) -> None:
        try:
            self._decoded(record, decode_record(record.key, record.value))
        except UnknownRecordType as error:
            self.problem(StateProblem(record.partition, record.offset, str(error), damaged=False))
        except ValueError as error:
            self.problem(StateProblem(record.partition, record.offset, str(error)))

    def _decoded(self, raw: RawRecord, record: StateRecord) -> None: ...


class LiveState(_Reading):
    """Folds records into the state that they leave.

    Args:
        key: only this share partition.
    """

    def __init__(self, key: SharePartitionKey | None = None) -> None:
        super().__init__()
        self._key = key
        self._replays: dict[int, StateReplay] = {}

    def _decoded(self, raw: RawRecord, record: StateRecord) -> None:
        if self._key is not None and record.key != self._key:
            return
        replay = self._replays.get(raw.partition)
        if replay is None:
            replay = self._replays[raw.partition] = StateReplay()
        passed_over = replay.fold(raw.offset, record)
        if passed_over is not None:
            self.problem(StateProblem(raw.partition, raw.offset, passed_over, damaged=False))

    def states(self) -> Iterator[tuple[SharePartitionKey, ShareState]]:
        """The states that result, in no order."""
        for replay in self._replays.values():
            yield from replay.states.items()

    def state(self, key: SharePartitionKey) -> ShareState | None:
        """The state of one share partition."""
        found = (replay.states.get(key) for replay in self._replays.values())
        return next((state for state in found if state is not None), None)

    def topic_ids(self) -> set[UUID]:
        """The topics that there is state of."""
        return {key.topic_id for replay in self._replays.values() for key in replay.states}

    def dump(self, names: Mapping[UUID, str]) -> StateDump:
        """The state that results.

        Args:
            names: of the topics, as far as they are known.
        """
        states = [
            SharePartitionState(
                key,
                names.get(key.topic_id),
                state.snapshot_epoch,
                state.state_epoch,
                state.leader_epoch,
                state.start_offset,
                state.delivery_complete_count,
                state.create_ms,
                state.write_ms,
                list(unpack_batches(state.batches())),
            )
            for replay in self._replays.values()
            for key, state in replay.states.items()
        ]
        states.sort(
            key=lambda each: (each.key.group_id, each.topic or "", each.key.topic_id, each.key.partition)
        )
        return StateDump(states, self.problems)


class History(_Reading):
    """Collects the records about one share partition."""

    def __init__(self, key: SharePartitionKey) -> None:
        super().__init__()
        self._key = key
        self._changes: list[StateChange] = []

    def _decoded(self, raw: RawRecord, record: StateRecord) -> None:
        if record.key == self._key:
            change = StateChange(raw.partition, raw.offset, raw.timestamp_ms, record.kind, record.value)
            self._changes.append(change)

    def history(self) -> StateHistory:
        """The records found."""
        return StateHistory(self._changes, self.problems)
