"""State of share partitions in `__share_group_state`, current or as history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sharecore._core import StateContent, StateFold
from sharecore.admin.state_topic import RawRecord, StateProblem
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import (
    Snapshot,
    StateBatch,
    UnknownRecordType,
    Update,
    decode_key,
    decode_record,
    key_of,
    key_tail,
    unpack_batches,
)


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
    """The current state by key, and unreadable records."""

    states: Sequence[SharePartitionState]
    problems: Sequence[StateProblem]


@dataclass(frozen=True, slots=True)
class StateHistory:
    """All remaining records of one share partition, and unreadable ones."""

    changes: Sequence[StateChange]
    problems: Sequence[StateProblem]


class _Reading:
    def __init__(self) -> None:
        self.problems: list[StateProblem] = []

    def problem(self, problem: StateProblem) -> None:
        self.problems.append(problem)

    def take(self, record: RawRecord) -> None:
        try:
            self._take(record)
        except UnknownRecordType as error:
            self.problem(StateProblem(record.partition, record.offset, str(error), damaged=False))
        except ValueError as error:
            self.problem(StateProblem(record.partition, record.offset, str(error)))

    def _take(self, record: RawRecord) -> None: ...


class LiveState(_Reading):
    """Folds records into the state that they leave.

    Args:
        key: only this share partition.
    """

    def __init__(self, key: SharePartitionKey | None = None) -> None:
        super().__init__()
        self._key = key
        self._folds: defaultdict[int, StateFold] = defaultdict(StateFold)

    def _take(self, record: RawRecord) -> None:
        if self._key is not None and decode_key(record.key or b"")[1] != self._key:
            return
        fold = self._folds[record.partition]
        repaired = fold.repaired
        passed_over = fold.take(record.offset, record.key, record.value)
        if fold.repaired > repaired:
            passed_over = "a state batch is impossible: its records are delivered again"
        if passed_over is not None:
            self.problem(StateProblem(record.partition, record.offset, passed_over, damaged=False))

    def states(self) -> Iterator[tuple[SharePartitionKey, StateContent]]:
        """Yield the states that result, in no order."""
        for fold in self._folds.values():
            for tail, _, content in fold.states():
                yield key_of(tail), content

    def waiting(self, deliveries: int) -> Iterator[tuple[SharePartitionKey, int]]:
        """Return the numbers of records that wait for redelivery after so many deliveries."""
        for fold in self._folds.values():
            for tail, records in fold.waiting(deliveries):
                yield key_of(tail), records

    def state(self, key: SharePartitionKey) -> StateContent | None:
        """Return the state of one share partition."""
        tail = key_tail(key)
        found = (fold.state(tail) for fold in self._folds.values())
        return next((state for state in found if state is not None), None)

    def topic_ids(self) -> set[UUID]:
        """Return the topics with share state."""
        return {key.topic_id for key, _ in self.states()}

    def dump(self, names: Mapping[UUID, str]) -> StateDump:
        """Return the state that results.

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
            for key, state in self.states()
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

    def _take(self, record: RawRecord) -> None:
        kind, key, value = decode_record(record.key, record.value)
        if key == self._key:
            change = StateChange(record.partition, record.offset, record.timestamp_ms, kind, value)
            self._changes.append(change)

    def history(self) -> StateHistory:
        """Return the records found."""
        return StateHistory(self._changes, self.problems)
