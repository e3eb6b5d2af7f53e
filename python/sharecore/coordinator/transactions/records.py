"""Records of `__transaction_state` (TransactionLog): key and value."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from sharecore.coordinator.offset_records import TopicPartition
from sharecore.coordinator.transactions.transaction import Transaction, TransactionState
from sharecore.coordinator_log.record_schema import RecordSchema, VersionedSchema, field

if TYPE_CHECKING:
    from sharecore.coordinator import record_values

TRANSACTION_LOG = 0

_KEY = RecordSchema("TransactionLogKey", TRANSACTION_LOG, field("transactional_id", "string"))
_PARTITIONS = field(
    "partitions",
    (field("topic", "string"), field("partition_ids", "int32", array=True)),
    array=True,
    nullable=True,
)
_TIMES = (field("update_ms", "int64"), field("start_ms", "int64"))
_V0 = RecordSchema(
    "TransactionLogValue",
    0,
    field("producer_id", "int64"),
    field("producer_epoch", "int16"),
    field("timeout_ms", "int32"),
    field("status", "int8"),
    _PARTITIONS,
    *_TIMES,
    previous_producer_id=-1,
    next_producer_id=-1,
    client_version=0,
    next_producer_epoch=-1,
)
_V1 = RecordSchema(
    "TransactionLogValue",
    1,
    field("producer_id", "int64"),
    field("previous_producer_id", "int64", tag=0, default=-1),
    field("next_producer_id", "int64", tag=1, default=-1),
    field("producer_epoch", "int16"),
    field("next_producer_epoch", "int16", tag=3, default=-1),
    field("timeout_ms", "int32"),
    field("status", "int8"),
    _PARTITIONS,
    *_TIMES,
    field("client_version", "int16", tag=2, default=0),
    flexible=True,
)
VALUES = VersionedSchema(_V0, _V1)


def encode_transaction_key(transactional_id: str) -> bytes:
    """Return the key of a transactional id."""
    return _KEY.write(transactional_id=transactional_id)


def decode_transaction_key(data: bytes) -> str:
    """Return the transactional id of a key; raise ValueError if it is invalid."""
    transactional_id: str = _KEY.read(data).transactional_id
    return transactional_id


def encode_transaction(transaction: Transaction) -> bytes:
    """Return the value of a transactional id, as Kafka writes it; without a transaction the partitions are
    null.
    """
    empty = transaction.state is TransactionState.EMPTY
    return _V1.write(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.epoch,
        next_producer_epoch=transaction.next_epoch,
        timeout_ms=transaction.timeout_ms,
        status=transaction.state.value,
        partitions=None if empty else _by_topic(transaction.partitions),
        update_ms=transaction.update_ms,
        start_ms=transaction.start_ms,
        client_version=transaction.client_version,
    )


def decode_transaction(transactional_id: str, data: bytes) -> Transaction:
    """Read a value of any version; raise ValueError if it is invalid."""
    value: record_values.TransactionLog = VALUES.read(data)
    return Transaction(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        epoch=value.producer_epoch,
        timeout_ms=value.timeout_ms,
        state=TransactionState(value.status),
        partitions=frozenset(
            TopicPartition(topic.topic, partition)
            for topic in value.partitions or ()
            for partition in topic.partition_ids
        ),
        update_ms=value.update_ms,
        start_ms=value.start_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        next_epoch=value.next_producer_epoch,
        client_version=value.client_version,
    )


def _by_topic(partitions: Collection[TopicPartition]) -> list[dict[str, object]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return [{"topic": topic, "partition_ids": ids} for topic, ids in topics.items()]
