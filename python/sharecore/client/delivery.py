"""Records held by the application: delivered, acknowledged, renewed, put back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sharecore._core import Record
from sharecore.client.errors import DeserializationError
from sharecore.client.fetching.batch import Batch, Part, batch_of, parts_of, runs_of
from sharecore.client.fetching.buffer import Fetched
from sharecore.client.fetching.lease import HELD, AcknowledgeType, Lease
from sharecore.client.runtime import Runtime
from sharecore.errors import ErrorCode, KafkaError

RENEW = AcknowledgeType.RENEW


class Marks(NamedTuple):
    """One call of `acknowledge`: its records, and the parts of leases that they cover."""

    records: Sequence[Record]
    parts: Sequence[Part]
    kind: AcknowledgeType


class Deliveries:
    """The records that the application got from a consumer, and those to return again.

    Args:
        runtime: holds the records.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.parts: list[Part] = []
        """Delivered since the last poll; in implicit mode, also not accepted yet."""
        self.latest: Batch | None = None
        """The result of the last poll, until a commit."""
        self._runtime = runtime
        self._renewing: list[Record] = []
        self._read: set[tuple[Lease, int]] = set()
        """Records put back whose keys and values are already deserialized."""

    def add(self, batch: Batch) -> Batch:
        """Record and return the records of a poll."""
        for lease, low, high in batch.parts:
            if lease.working:
                lease.working.difference_update(range(low, high))
        self.parts.extend(batch.parts)
        self.latest = batch
        return batch

    def accept(self) -> None:
        """Accept the records delivered since the last poll or commit (implicit mode)."""
        if self.parts:
            parts, self.parts = self.parts, []
            for lease, low, high in parts:
                if lease.lost is not None or lease.holds(low, high):
                    lease.owner.mark(lease, low, high, AcknowledgeType.ACCEPT)

    def check_decided(self) -> None:
        """Raise RuntimeError if a record of an earlier poll is not acknowledged (explicit mode)."""
        if any(lease.undecided(low, high) for lease, low, high in self.parts):
            raise RuntimeError(
                "in explicit mode every record must be acknowledged before the next poll; lease or renew "
                "those still in progress"
            )
        self.parts = []

    # acknowledging

    def check(self, records: Record | Iterable[Record], kind: AcknowledgeType) -> Marks:
        """Return the marks of an acknowledgement; thread-safe.

        Raises:
            KafkaError: INVALID_RECORD_STATE: a record is not held by this consumer, or no record of a batch
                is; UNSUPPORTED_VERSION: the broker cannot renew.
            ValueError: unknown acknowledge type.
        """
        kind = AcknowledgeType(kind)
        marks = Marks(*self._found(records), kind)
        if kind is RENEW:
            for lease in {part.lease for part in marks.parts}:
                lease.owner.need_renewal()
        return marks

    def held(self, records: Record | Iterable[Record]) -> Sequence[Part]:
        """Return the parts of leases that records cover; raise KafkaError as `check` does."""
        return self._found(records)[1]

    def mark(self, marks: Marks) -> None:
        """Apply the result of `check`, to be sent with the next poll or commit."""
        self._runtime.acknowledge_parts(marks.parts, marks.kind)
        if marks.kind is RENEW:
            self._note_renewing(marks.records)

    def mark_late(self, marks: Marks) -> None:
        """Apply an earlier result of `check`; records no longer held fail as if refused by the leader."""
        left: list[Part] = []
        for part in marks.parts:
            if part.lease.lost is not None or part.lease.accepts_marks(part.low, part.high):
                left.append(part)
            else:
                error = KafkaError(ErrorCode.INVALID_RECORD_STATE, "the record was no longer held")
                spans = part.lease.spans(part.low, part.high)
                self._runtime.results.settled(part.lease, spans, error, later=True)
        self.mark(marks._replace(parts=left))

    def _found(self, records: Record | Iterable[Record]) -> tuple[Sequence[Record], Sequence[Part]]:
        if isinstance(records, Batch):
            for part in records.parts:
                self._check_ours(part.lease, records[0])
            if records.parts and records is not self.latest and not self._has_rest(records.parts):
                raise KafkaError(
                    ErrorCode.INVALID_RECORD_STATE, "every record of the batch was acknowledged before"
                )
            return records, records.parts
        several = [records] if isinstance(records, Record) else list(records)
        for record in several:
            self._check_ours(record.lease, record)
            if record.lease.lost is None and not record.lease.accepts_marks(
                record.position, record.position + 1
            ):
                raise KafkaError(ErrorCode.INVALID_RECORD_STATE, f"{_place(record)} was acknowledged before")
        return several, [Part(each.lease, each.position, each.position + 1) for each in several]

    def _has_rest(self, parts: Iterable[Part]) -> bool:
        keeper = self._runtime.keeper
        return any(
            part.lease.lost is not None
            or part.lease.accepts_marks(part.low, part.high)
            or keeper.keeps(part.lease)
            for part in parts
        )

    def _check_ours(self, lease: Lease | None, record: Record) -> None:
        if not isinstance(lease, Lease) or lease.owner.host is not self._runtime:
            raise KafkaError(
                ErrorCode.INVALID_RECORD_STATE, f"{_place(record)} was not delivered by this consumer"
            )

    # records that are delivered again

    def _note_renewing(self, records: Iterable[Record]) -> None:
        for record in records:
            lease, position = record.lease, record.position
            if lease.states and lease.states[position] == RENEW and position not in lease.working:
                lease.working.add(position)
                self._renewing.append(record)

    @property
    def renewing(self) -> bool:
        """Whether renewed records are to be delivered again."""
        return bool(self._renewing)

    def renewed(self, wanted: int | None) -> Batch:
        """Return at most `wanted` records with a renewal confirmed by the leader."""
        confirmed: list[Record] = []
        waiting: list[Record] = []
        for record in self._renewing:
            if record.lease.states[record.position] == HELD:
                confirmed.append(record)
            elif record.lease.renews_at(record.position):
                waiting.append(record)
        given = confirmed if wanted is None else confirmed[:wanted]
        self._renewing = confirmed[len(given) :] + waiting
        return batch_of(given)

    def put_back(self, records: Iterable[Record]) -> None:
        """Put records at the front of the buffer, as long as they are held.

        Raises:
            KafkaError: INVALID_RECORD_STATE: a record was not delivered by this consumer.
        """
        records = list(records)
        for record in records:
            self._check_ours(record.lease, record)
        held = [record for record in records if record.lease.holds(record.position, record.position + 1)]
        if self.deserializes:
            self._read = {place for place in self._read if place[0].open}
            self._read.update((record.lease, record.position) for record in held)
        self._put_first(held)

    def take_back(self, batch: Batch) -> None:
        """Undo a delivery that did not reach the application."""
        self.parts = [part for part in self.parts if part not in batch.parts]
        self.put_back(batch)

    def _put_first(self, records: Sequence[Record]) -> None:
        for run in reversed(list(runs_of(records))):
            lease = run[0].lease
            lease.working.update(record.position for record in run)
            self._runtime.buffer.put_back(Fetched(lease, run))

    # types of keys and values

    @property
    def deserializes(self) -> bool:
        settings = self._runtime.settings
        return settings.key_deserializer is not None or settings.value_deserializer is not None

    def deserialized(self, batch: Batch) -> Batch:
        """Return a batch with deserialized keys and values.

        Raises:
            DeserializationError: a deserializer failed for the first record; if it fails for a later one, the
                records before are returned and the next poll raises.
        """
        if not self.deserializes:
            return batch
        done: list[Record] = []
        for index, record in enumerate(batch):
            try:
                done.append(self._deserialize(record))
            except Exception as error:  # noqa: PERF203
                refused = DeserializationError(record, error)
                refused.__cause__ = error
                self._put_first(batch[index + 1 :])
                if self._runtime.settings.explicit:
                    self.add(batch_of([record]))
                else:
                    self._runtime.acknowledge_parts(parts_of(record), AcknowledgeType.RELEASE)
                if not done:
                    raise refused from error
                self._runtime.errors.append(refused)
                return batch_of(done)
        return Batch(done, batch.parts)

    def _deserialize(self, record: Record) -> Record:
        place = (record.lease, record.position)
        if place in self._read:
            self._read.discard(place)
            return record
        settings = self._runtime.settings
        key, value = record.key, record.value
        if settings.key_deserializer is not None and key is not None:
            key = settings.key_deserializer(key)
        if settings.value_deserializer is not None and value is not None:
            value = settings.value_deserializer(value)
        return record.replace(key, value)


def _place(record: Record) -> str:
    return f"{record.topic}-{record.partition}@{record.offset}"
