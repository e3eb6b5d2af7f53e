"""What a share consumer raises besides `KafkaError`."""

from __future__ import annotations

from sharecore._core import Record
from sharecore.errors import ErrorCode, KafkaError, PortableError

RETRIED = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
"""Errors that pass with time, or on another broker, whatever was asked."""


class Disconnected(KafkaError):
    """The connection to a broker could not be made, or ended before the answer came."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, message)


class AuthenticationFailed(KafkaError):
    """The broker does not accept the credentials, or the broker's certificate cannot be trusted."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.SASL_AUTHENTICATION_FAILED, message)


class WakeupError(Exception):
    """`ShareConsumer.wakeup` was called."""


class ConsumerClosed(Exception):
    """The consumer is closed, or is being closed."""


class ProducerClosed(Exception):
    """The producer is closed, or is being closed."""


class LeaseLost(KafkaError):
    """The acquisition lock is gone: it ran out, or the share session ended. Others may have the record."""


class CorruptRecords(KafkaError):
    """Acquired records that cannot be read; they were rejected, and the records around them are delivered.

    Args:
        topic, partition: where.
        offsets: (first, last) of each range that was rejected.
    """

    def __init__(self, topic: str, partition: int, offsets: list[tuple[int, int]], reason: str) -> None:
        self.topic, self.partition, self.offsets = topic, partition, offsets
        shown = ", ".join(f"{first}-{last}" for first, last in offsets)
        super().__init__(ErrorCode.CORRUPT_MESSAGE, f"{topic}-{partition} at {shown}: {reason}")


class DeserializationError(PortableError):
    """A deserializer refused a record; it stays leased, with key and value as bytes in `record`.

    Acknowledge `record` with reject, release or accept; the records behind it come with the next poll.
    """

    def __init__(self, record: Record, error: Exception) -> None:
        self.record = record
        super().__init__(
            f"{record.topic}-{record.partition} at {record.offset}: {type(error).__name__}: {error}"
        )
