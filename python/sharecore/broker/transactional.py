"""Common parts of transactional requests, and the check that a batch belongs to an open transaction."""

from __future__ import annotations

from struct import Struct

from sharecore.broker.coordinators import Coordinators
from sharecore.coordinator.offset_records import TopicPartition
from sharecore.coordinator.transactions import ProducerState
from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import FirstBatch, Log

_PRODUCER = Struct(">qhi")
_PRODUCER_AT = 43

_ABORTABLE_SINCE = 11
_IMPLICIT_SINCE = 12
_FOR_NOW = (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE)
"""Refusals of the current producer."""


def fenced_as_known(code: ErrorCode, version: int, known_since: int) -> ErrorCode:
    """Return an error known to a request version: older ones lack PRODUCER_FENCED (KIP-588)."""
    if code is ErrorCode.PRODUCER_FENCED and version < known_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def admit(
    groups: Coordinators, log: Log, records: bytes, transactional_id: str, version: int, now_ms: int
) -> None:
    """Add a batch to its producer's open transaction; the caller appends it at once.

    Args:
        records: a transactional batch with its complete header.
        version: version of Produce; from 12, writing to a partition adds it (KIP-890).

    Raises:
        KafkaError: the producer is fenced, or its transaction is not open or lacks the partition.
    """
    first = FirstBatch(*_PRODUCER.unpack_from(records, _PRODUCER_AT))
    producer = ProducerState(first.producer_id, first.epoch)
    partition = TopicPartition(log.topic, log.index)
    implicit = version >= _IMPLICIT_SINCE
    try:
        groups.transactions.admit(transactional_id, producer, [partition], implicit=implicit)
    except KafkaError as error:
        if error.code in _FOR_NOW:
            log.announce(first, from_zero=implicit, now_ms=now_ms)
        raise _translated(error, version) from None
    log.announce(first, from_zero=implicit, now_ms=now_ms)


def _translated(error: KafkaError, version: int) -> KafkaError:
    """Return a refusal in a form that producers of a version understand."""
    if error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
        # this code makes producers of any version resend the batch without refreshing metadata
        return KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, error.message)
    if error.code is ErrorCode.INVALID_TXN_STATE and version >= _ABORTABLE_SINCE:
        return KafkaError(ErrorCode.TRANSACTION_ABORTABLE, error.message)
    return error
