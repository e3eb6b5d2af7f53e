"""One partition of the simulated cluster: batches, the producers that it knows, and how far replicas are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple

from tests.harness.batches import keyed_batch
from tests.harness.checksum import crc32c

from sharecore.errors import ErrorCode

_HEAD = Struct(">qii")
_ATTRIBUTES = Struct(">hi")
_PRODUCER = Struct(">qhi")
_TRANSACTIONAL, _CONTROL = 1 << 4, 1 << 5
_MARKER_COMMITS = -2
"""The byte of a marker's batch that says whether it commits: the last one of the coordinator's epoch."""
_REMEMBERED = 5
"""Batches of a producer whose repetition is known as such, as Kafka has it."""


class Refused(Exception):
    """The leader does not append: an error code of Kafka's."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


class Batch(NamedTuple):
    """One record batch as it lies in the log."""

    base: int
    last: int
    data: bytes
    producer: tuple[int, int]
    sequence: int
    leader_epoch: int
    transactional: bool
    control: bool


class Aborted(NamedTuple):
    """A transaction that was aborted: its producer, its first offset, and where its marker stands."""

    producer_id: int
    first: int
    marker: int


@dataclass
class _Known:
    """A producer, as the leader knows it: its epoch, and its last batches by first sequence number."""

    epoch: int
    recent: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))


@dataclass
class Log:
    """A partition.

    Args:
        checks_epochs: a batch of an older epoch of its producer is refused, as Kafka does.

    Attributes:
        high: the high watermark: all replicas in sync have what is before it.
        shown: the high watermark as the leader knows it; a new one learns it late.
        leader: -1 while there is none.
        epochs: leader epochs, and the offset at which each begins.
        waiting: who wants to be told once an offset is below the high watermark, or that it never will be.
    """

    topic: str
    index: int
    checks_epochs: bool = True
    start: int = 0
    high: int = 0
    shown: int = 0
    leader: int = 0
    epoch: int = 0
    batches: list[Batch] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    deposed: dict[int, int] = field(default_factory=dict)
    open: dict[int, int] = field(default_factory=dict)
    aborted: list[Aborted] = field(default_factory=list)
    waiting: list[tuple[int, Callable[[ErrorCode], None]]] = field(default_factory=list)
    _producers: dict[tuple[int, int], _Known] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """Behind the last batch of the leader's."""
        return self.batches[-1].last + 1 if self.batches else self.start

    @property
    def stable(self) -> int:
        """The last stable offset, as the leader knows it."""
        return min([self.shown, *self.open.values()])

    # appending

    def append(self, data: bytes) -> int:
        """Appends one batch; returns its offset, the first one's where it is a repetition; raises Refused."""
        attributes, delta = _ATTRIBUTES.unpack_from(data, 21)
        producer_id, epoch, sequence = _PRODUCER.unpack_from(data, 43)
        if producer_id >= 0 and not attributes & _CONTROL:
            before = self._check(producer_id, epoch, sequence)
            if before is not None:
                return before
        base = self.end
        size = _HEAD.unpack_from(data)[1]
        whole = _HEAD.pack(base, size, self.epoch) + data[16:]
        batch = Batch(
            base,
            base + delta,
            whole,
            (producer_id, epoch),
            sequence,
            self.epoch,
            bool(attributes & _TRANSACTIONAL),
            bool(attributes & _CONTROL),
        )
        self.batches.append(batch)
        self._learn(batch)
        return base

    def _check(self, producer_id: int, epoch: int, sequence: int) -> int | None:
        """Where a repeated batch stands; None for one to append."""
        known = self._producers.get(self._name(producer_id, epoch))
        if known is None:
            return None
        if epoch < known.epoch:
            raise Refused(ErrorCode.INVALID_PRODUCER_EPOCH)
        if epoch > known.epoch:
            if sequence != 0:
                raise Refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
            return None
        for first, _, base in known.recent:
            if first == sequence:
                return base
        if known.recent and sequence != known.recent[-1][1] + 1:
            raise Refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        return None

    def _name(self, producer_id: int, epoch: int) -> tuple[int, int]:
        return (producer_id, 0) if self.checks_epochs else (producer_id, epoch)

    def _learn(self, batch: Batch) -> None:
        producer_id, epoch = batch.producer
        if producer_id < 0:
            return
        if batch.control:
            first = self.open.pop(producer_id, None)
            if first is not None and not batch.data[_MARKER_COMMITS]:
                self.aborted.append(Aborted(producer_id, first, batch.base))
            return
        known = self._producers.setdefault(self._name(producer_id, epoch), _Known(epoch))
        if known.epoch != epoch:
            known.epoch = epoch
            known.recent.clear()
        known.recent.append((batch.sequence, batch.sequence + batch.last - batch.base, batch.base))
        if batch.transactional:
            self.open.setdefault(producer_id, batch.base)

    def forget_producers(self) -> None:
        """What idle producers wrote is not known any more."""
        self._producers.clear()

    # replication and elections

    def replicated(self, end: int) -> None:
        """All replicas in sync have what is before an offset."""
        self.high = max(self.high, min(end, self.end))
        self.shown = self.high
        waiting, self.waiting = self.waiting, []
        for offset, told in waiting:
            if offset < self.high:
                told(ErrorCode.NONE)
            else:
                self.waiting.append((offset, told))

    def elect(self, leader: int, *, keep: bool, shown: int) -> None:
        """Another broker leads.

        Args:
            keep: it has what was not on all replicas in sync; else that is gone.
            shown: as far as it knows that all have it.
        """
        self.deposed[self.leader] = self.high
        self.deposed.pop(leader, None)
        if not keep:
            self._cut(self.high)
        self._lead(leader)
        self.shown = max(self.start, min(shown, self.high))

    def truncate(self, leader: int, offset: int) -> int:
        """A broker leads that lacks what all should have; returns where the log ends now."""
        self._cut(offset)
        self.high = self.shown = self.end
        self.deposed.clear()
        self._lead(leader)
        return self.end

    def _lead(self, leader: int) -> None:
        self.leader = leader
        self.epoch += 1
        self.epochs.append((self.epoch, self.end))
        waiting, self.waiting = self.waiting, []
        for _, told in waiting:
            told(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _cut(self, offset: int) -> None:
        if offset >= self.end:
            return
        kept = [batch for batch in self.batches if batch.last < offset]
        if not kept:
            self.start = min(self.start, offset)
        self.batches = []
        self._producers.clear()
        self.open.clear()
        self.aborted.clear()
        self.epochs = [(epoch, begin) for epoch, begin in self.epochs if begin <= offset] or [(0, 0)]
        for batch in kept:
            self.batches.append(batch)
            self._learn(batch)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch that is not above one, and where it ends; (-1, -1) where there is none."""
        found = [(each, begin) for each, begin in self.epochs if each <= epoch]
        if not found:
            return -1, -1
        later = [begin for each, begin in self.epochs if each > epoch]
        return found[-1][0], min([*later, self.end])

    def delete_before(self, offset: int) -> int:
        """Deletes records; returns where the log begins then."""
        self.start = max(self.start, min(offset, self.high))
        self.batches = [batch for batch in self.batches if batch.last >= self.start]
        self.aborted = [each for each in self.aborted if each.marker >= self.start]
        return self.start

    # reading

    def read(self, offset: int, limit: int, max_bytes: int) -> bytes:
        """Whole batches from an offset on up to another; at least one where there is one."""
        parts: list[bytes] = []
        size = 0
        for batch in self.batches:
            if batch.last < offset:
                continue
            if batch.last >= limit or (parts and size + len(batch.data) > max_bytes):
                break
            parts.append(batch.data)
            size += len(batch.data)
        return b"".join(parts)


def marker(producer_id: int, *, commit: bool) -> bytes:
    """The batch that ends a transaction."""
    key = b"\0\0" + int(commit).to_bytes(2, "big")
    value = b"\0\0" + int(commit).to_bytes(4, "big")
    made = bytearray(
        keyed_batch([(key, value)], producer_id=producer_id, producer_epoch=0, transactional=True)
    )
    made[22] |= _CONTROL
    made[17:21] = crc32c(bytes(made[21:])).to_bytes(4, "big")
    return bytes(made)
