"""Exceptions of a share consumer besides `KafkaError`."""

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
"""Errors that may go away after a retry, possibly on another broker."""


class Disconnected(KafkaError):
    """A broker could not be reached, or the connection ended before the response."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, message)


class AuthenticationFailed(KafkaError):
    """The broker refused the credentials, or its certificate is not trusted."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.SASL_AUTHENTICATION_FAILED, message)


class WakeupError(Exception):
    """`ShareConsumer.wakeup` was called."""


class ConsumerClosed(Exception):
    """The consumer is closed, or is being closed."""


class ProducerClosed(Exception):
    """The producer is closed, or is being closed."""


class LeaseLost(KafkaError):
    """The acquisition lock was lost: it expired, or the share session ended.

    Other members may have the record.
    """


class CorruptRecords(KafkaError):
    """Acquired records are unreadable; they were rejected, and the records around them are delivered.

    Args:
        topic, partition: the partition.
        offsets: (first, last) of each rejected range.
    """

    def __init__(self, topic: str, partition: int, offsets: list[tuple[int, int]], reason: str) -> None:
        self.topic, self.partition, self.offsets = topic, partition, offsets
        shown = ", ".join(f"{first}-{last}" for first, last in offsets)
        super().__init__(ErrorCode.CORRUPT_MESSAGE, f"{topic}-{partition} at {shown}: {reason}")


class DeserializationError(PortableError):
    """A deserializer failed for a record, which stays acquired, with key and value as bytes in `record`.

    Acknowledge `record` with reject, release or accept; the next poll returns the records after it.
    """

    def __init__(self, record: Record, error: Exception) -> None:
        self.record = record
        super().__init__(
            f"{record.topic}-{record.partition} at {record.offset}: {type(error).__name__}: {error}"
        )
