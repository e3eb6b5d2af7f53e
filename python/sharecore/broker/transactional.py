"""Whether a producer's batch may be appended: those of transactions must be part of one that is open."""

from __future__ import annotations

from struct import Struct

from sharecore.broker.coordinators import Coordinators
from sharecore.coordinator.offset_records import TopicPartition
from sharecore.coordinator.transactions import ProducerState
from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import Log

_ATTRIBUTES_LOW = 22
_TRANSACTIONAL = 0x10
_PRODUCER = Struct(">qh")
_PRODUCER_AT = 43
_HEADER_BYTES = 61

_ABORTABLE_SINCE = 11
_IMPLICIT_SINCE = 12


def admit(groups: Coordinators, log: Log, records: bytes, transactional_id: str | None, version: int) -> None:
    """Makes a batch part of its producer's open transaction; the caller appends it at once.

    Args:
        records: a batch; one that is too short or outside of transactions is left to the log.
        version: of Produce; from 12 on writing to a partition adds it (KIP-890).

    Raises:
        KafkaError: the producer is fenced, its transaction is not open or does not have the partition.
    """
    if len(records) < _HEADER_BYTES or not records[_ATTRIBUTES_LOW] & _TRANSACTIONAL:
        return
    if transactional_id is None:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    producer = ProducerState(*_PRODUCER.unpack_from(records, _PRODUCER_AT))
    partition = TopicPartition(log.topic, log.index)
    try:
        groups.transactions.admit(
            transactional_id, producer, [partition], implicit=version >= _IMPLICIT_SINCE
        )
    except KafkaError as error:
        if error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
            # what makes producers of every age send the batch again, without asking for metadata first
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, error.message) from error
        if error.code is ErrorCode.INVALID_TXN_STATE and version >= _ABORTABLE_SINCE:
            raise KafkaError(ErrorCode.TRANSACTION_ABORTABLE, error.message) from error
        raise
