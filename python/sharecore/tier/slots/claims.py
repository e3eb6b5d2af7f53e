"""Claims: records in a slot's partition that name its writer from there on.

Records confirmed by a former owner precede the next owner's claim. A batch after a claim is valid only with
the producer id and epoch of the claim's own batch, and with an increasing sequence: a cluster that has
forgotten a producer may append late copies of old batches. All other batches came too late and are void. An
owner releases its slot with a release record, its last one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sharecore.coordinator_log.record_schema import RecordSchema, field, number_of
from sharecore.coordinator_log.topic_log import Record
from sharecore.tier.upstream.batches import Batch, Scanned, cut_batches, decode

CLAIM, RELEASE = 1000, 1001
"""Key types of claims and releases; those of Kafka's coordinators are below 100."""

_KEY = RecordSchema("SlotClaimKey", CLAIM, field("slot", "int32"))
_RELEASE_KEY = RecordSchema("SlotReleaseKey", RELEASE, field("slot", "int32"))
_VALUE = RecordSchema(
    "SlotClaimValue",
    0,
    field("epoch", "int32"),
    field("node_id", "int32"),
    field("claimed_ms", "int64"),
    flexible=True,
)
_RELEASE_VALUE = RecordSchema(
    "SlotReleaseValue",
    0,
    field("epoch", "int32"),
    field("next_node_id", "int32"),
    field("released_ms", "int64"),
    flexible=True,
)


class Claim(NamedTuple):
    """Claim of a slot.

    Args:
        epoch: increases with each owner; clients see it as the leader epoch.
        node_id: the owner.
        producer: id and epoch of valid batches.
        offset: offset of the claim record.
    """

    epoch: int
    node_id: int
    producer: tuple[int, int]
    offset: int


class Release(NamedTuple):
    """Release of a claim.

    Args:
        epoch: the claim's epoch.
        next_node_id: the successor.
    """

    epoch: int
    next_node_id: int


def claim_record(slot: int, epoch: int, node_id: int, now_ms: int) -> Record:
    """Return a claim record."""
    return _KEY.write(slot=slot), _VALUE.write(epoch=epoch, node_id=node_id, claimed_ms=now_ms)


def release_record(slot: int, epoch: int, next_node_id: int, now_ms: int) -> Record:
    """Return a release record, after which another node may claim the slot at once."""
    return _RELEASE_KEY.write(slot=slot), _RELEASE_VALUE.write(
        epoch=epoch, next_node_id=next_node_id, released_ms=now_ms
    )


def is_mark(record: Scanned) -> bool:
    """Return whether a record is a claim or a release."""
    return _kind(record) in (CLAIM, RELEASE)


class SlotHistory:
    """Valid records of a slot, batch by batch in log order.

    Args:
        name: the partition's name, for errors.

    Attributes:
        claim: the last valid claim; None before the first.
        release: the owner's release; None without one.
        void: number of ignored batches.
    """

    def __init__(self, name: str) -> None:
        self.claim: Claim | None = None
        self.release: Release | None = None
        self.void = 0
        self._name = name
        self._newest = -1
        """Sequence of the last valid batch."""

    def take(self, records: bytes) -> list[Scanned]:
        """Process the next batches; return valid records without claims and releases.

        Raises:
            ValueError: a valid batch cannot be read.
        """
        counted: list[Scanned] = []
        valid: list[Batch] = []
        for batch in cut_batches(records):
            if self.claim is not None and batch.producer == self.claim.producer:
                if batch.is_ahead_of(self._newest):
                    self._newest = batch.sequence
                    valid.append(batch)
                else:
                    self.void += 1
                continue
            # before the first claim no batch is valid; after a claim, only the next claim ends it
            counted += self._decode(valid)
            valid = []
            following = self._from_next_claim(batch)
            if following is None:
                self.void += 1
            else:
                counted += following
        return counted + self._decode(valid)

    def _from_next_claim(self, batch: Batch) -> list[Scanned] | None:
        """Return the records after the next claim in another producer's batch, which becomes the current one.

        None if the batch has no claim, or one with an outdated epoch. Of two claims with one epoch the first
        is valid: the writer of the other finds it in front of its own, and claims again with a higher epoch
        if it may. A node that is no longer a member may not: its late claim must not take an owner's slot.
        """
        try:
            records = decode([batch], self._name)
            for index, record in enumerate(records):
                claim = _claim_of(record, batch.producer)
                if claim is not None and (self.claim is None or claim.epoch > self.claim.epoch):
                    self.claim, self.release = claim, None
                    self._newest = batch.sequence
                    return self._without_marks(records[index + 1 :], batch.producer)
        except ValueError:
            return None
        return None

    def _decode(self, batches: Sequence[Batch]) -> list[Scanned]:
        return self._without_marks(decode(batches, self._name), batches[0].producer) if batches else []

    def _without_marks(self, records: Iterable[Scanned], producer: tuple[int, int]) -> list[Scanned]:
        """Return records without the owner's claims and releases, which are applied."""
        counted = []
        for record in records:
            claim = _claim_of(record, producer)
            if claim is not None:
                # the owner has renewed its claim, so that older records may be deleted
                self.claim, self.release = claim, None
            elif _kind(record) == RELEASE and record[3] is not None:
                read = _RELEASE_VALUE.read(record[3])
                self.release = Release(read.epoch, read.next_node_id)
            else:
                counted.append(record)
        return counted


def _kind(record: Scanned) -> int | None:
    key = record[2]
    return None if key is None else number_of(key)


def _claim_of(record: Scanned, producer: tuple[int, int]) -> Claim | None:
    value = record[3]
    if value is None or _kind(record) != CLAIM:
        return None
    read = _VALUE.read(value)
    return Claim(read.epoch, read.node_id, producer, record[0])
