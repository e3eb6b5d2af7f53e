"""What requests of transactions have in common, and whether a batch is part of one that is open."""

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
"""Refusals of a producer that is the right one."""


def fenced_as_known(code: ErrorCode, version: int, known_since: int) -> ErrorCode:
    """Return an error as a version of a request knows it: older ones have no PRODUCER_FENCED (KIP-588)."""
    if code is ErrorCode.PRODUCER_FENCED and version < known_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def admit(
    groups: Coordinators, log: Log, records: bytes, transactional_id: str, version: int, now_ms: int
) -> None:
    """Make a batch part of its producer's open transaction; the caller appends it at once.

    Args:
        records: a batch of a transaction, with all of its header.
        version: of Produce; from 12 on writing to a partition adds it (KIP-890).

    Raises:
        KafkaError: the producer is fenced, its transaction is not open or does not have the partition.
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
        raise _told(error, version) from None
    log.announce(first, from_zero=implicit, now_ms=now_ms)


def _told(error: KafkaError, version: int) -> KafkaError:
    """Return a refusal as producers of a version want to hear it."""
    if error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
        # what makes producers of every age send the batch again, without asking for metadata first
        return KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, error.message)
    if error.code is ErrorCode.INVALID_TXN_STATE and version >= _ABORTABLE_SINCE:
        return KafkaError(ErrorCode.TRANSACTION_ABORTABLE, error.message)
    return error
