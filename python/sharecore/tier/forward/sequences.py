"""The order of idempotent producers' batches on their way to the cluster."""

from __future__ import annotations

import struct

from sharecore.errors import ErrorCode
from sharecore.tier.forward.forwarder import MOVED
from sharecore.tier.forward.shapes import Place
from sharecore.topic_names import NAME_LENGTH_MAX

_MAGIC_AT, _MAGIC = 16, 2
_PRODUCER_AT = 43
_PRODUCER = struct.Struct(">qhi")
_HALF = 1 << 30
"""Sequence numbers wrap around after twice as many."""
_RETRIED = MOVED | {ErrorCode.REQUEST_TIMED_OUT}
"""Errors after which a producer sends the batch again."""
_REFUSED_MAX = 500
"""Partitions of a connection remembered only for a refused batch: the client chooses their names."""

Way = tuple[int, int]
"""A broker, and which of the connections to it: batches on one way arrive in order, or not at all."""


class _Sequence:
    """One producer's batches for one partition on one connection of a client.

    Attributes:
        producer: its ID and epoch.
        pending: the ways of forwarded batches without an answer, by their first sequence number.
        refused: the first batch that the producer has to send again before later ones are forwarded.
        last: the last batch that was refused.
    """

    __slots__ = ("last", "pending", "producer", "refused")

    def __init__(self, producer: tuple[int, int]) -> None:
        self.producer = producer
        self.pending: dict[int, Way] = {}
        self.refused: int | None = None
        self.last = 0

    def admits(self, sequence: int, way: Way) -> bool:
        """Return whether a batch may be forwarded."""
        if self.refused is None:
            if all(each == way for each in self.pending.values()):
                self.pending[sequence] = way
                return True
            self.refused = self.last = sequence
            return False
        if _is_after(sequence, self.refused) and _is_after(sequence, self.last):
            self.last = sequence
            return False
        # the producer sends the refused batches again, or goes on without them
        self.refused = None
        self.pending[sequence] = way
        return True

    def end(self, sequence: int, is_retried: bool) -> None:
        """Note the answer to a batch."""
        self.pending.pop(sequence, None)
        if not is_retried:
            return
        if self.refused is None:
            self.refused = self.last = sequence
        elif _is_after(self.refused, sequence):
            self.refused = sequence
        elif _is_after(sequence, self.last):
            self.last = sequence


class Sequences:
    """Batches of one client's connection.

    A client sends several batches for a partition before it gets the answer to the first one. If that one is
    lost with a connection to the cluster, or is refused, a broker refuses the later ones with
    OUT_OF_ORDER_SEQUENCE_NUMBER, or takes the first that it gets for the producer's first. librdkafka then
    sends all its batches again under a new epoch, and those that the cluster has are duplicated. A broker of
    Kafka loses its clients' connections instead, with all that is under way. So the later batches are refused
    here until the producer sends the first one again.
    """

    def __init__(self) -> None:
        self._partitions: dict[Place, _Sequence] = {}
        self._refused: dict[Place, None] = {}
        """Partitions remembered for a refused batch, oldest first."""

    def admit(self, place: Place, records: bytes | None, way: Way) -> bool:
        """Return whether a batch may be forwarded; if so, its answer has to be noted with `end`."""
        found = _read(records)
        if found is None:
            return True
        producer, number = found
        sequence = self._partitions.get(place)
        if sequence is None or sequence.producer != producer:
            sequence = self._partitions[place] = _Sequence(producer)
        return sequence.admits(number, way)

    def end(self, place: Place, records: bytes | None, code: int) -> None:
        """Note the answer to a batch that was forwarded, or that this node refused for another reason."""
        found = _read(records)
        if found is None:
            return
        producer, number = found
        sequence, is_retried = self._partitions.get(place), code in _RETRIED
        if sequence is None or sequence.producer != producer:
            if not is_retried or _is_too_long(place):
                return
            sequence = self._partitions[place] = _Sequence(producer)
            self._remember(place)
        sequence.end(number, is_retried)
        if sequence.refused is None and not sequence.pending:
            del self._partitions[place]
            self._refused.pop(place, None)

    def _remember(self, place: Place) -> None:
        """Note a partition with a refused batch; forget the oldest beyond the limit."""
        self._refused[place] = None
        if len(self._refused) <= _REFUSED_MAX:
            return
        oldest = next(iter(self._refused))
        del self._refused[oldest]
        # one with forwarded batches exists in the cluster, and ends with their answers
        if not self._partitions[oldest].pending:
            del self._partitions[oldest]


def _is_too_long(place: Place) -> bool:
    """Return whether the partition's topic has a name that no topic can have."""
    topic, _ = place
    return isinstance(topic, str) and len(topic) > NAME_LENGTH_MAX


def _read(records: bytes | None) -> tuple[tuple[int, int], int] | None:
    """Return producer ID and epoch, and the first sequence number; None unless the producer is idempotent."""
    if records is None or len(records) < _PRODUCER_AT + _PRODUCER.size or records[_MAGIC_AT] != _MAGIC:
        return None
    producer, epoch, sequence = _PRODUCER.unpack_from(records, _PRODUCER_AT)
    return ((producer, epoch), sequence) if producer >= 0 else None


def _is_after(sequence: int, other: int) -> bool:
    return 0 < (sequence - other) % (2 * _HALF) < _HALF
