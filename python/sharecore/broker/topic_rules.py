"""Rules for topic names and for partition placement on one broker."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar
from uuid import UUID

from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import Topics
from sharecore.topic_names import NAME_LENGTH_MAX, is_legal_name

if TYPE_CHECKING:
    from sharecore.protocol import messages

    class _Timed(Protocol):
        @property
        def timeout_ms(self) -> int: ...


Name = TypeVar("Name")
PARTITIONS_PER_REQUEST_MAX = 10_000
TIME_IS_OVER = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
"""Answer to a request without time (`timeout_ms` of 0 or less): nothing is done."""


def has_no_time(request: _Timed, named: Mapping[Name, int], permitted: Container[Name] | None = None) -> bool:
    """Return whether a request without time gets `TIME_IS_OVER`, as it has something to do.

    Args:
        named: how often each name occurs.
        permitted: names that the client may change; None for all.
    """
    return request.timeout_ms <= 0 and any(
        times == 1 and (permitted is None or name in permitted) for name, times in named.items()
    )


def check_name(name: str) -> None:
    """Raise KafkaError(INVALID_TOPIC_EXCEPTION) for an invalid topic name."""
    wrong = ""
    if not name:
        wrong = "the empty string is not allowed"
    elif name in (".", ".."):
        wrong = f"'{name}' is not allowed"
    elif len(name) > NAME_LENGTH_MAX:
        wrong = f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    elif not is_legal_name(name):
        wrong = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    if wrong:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {wrong}")


def check_collision(name: str, topics: Topics) -> None:
    """Raise KafkaError if another topic's name differs only in '.' and '_', as metrics confuse them."""
    if (other := topics.find_alike(name)) is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}"
        )


def partition_count(
    topic: messages.CreatableTopic, default_partitions: int, default_replicas: int, node_id: int
) -> int:
    """Return the requested number of partitions of a new topic.

    Raises:
        KafkaError: the number, the replication factor or an assignment is not possible here.
    """
    if topic.assignments:
        if topic.replication_factor != -1:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "With manual assignments the replication factor must be -1."
            )
        if topic.num_partitions != -1:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "With manual assignments the number of partitions must be -1."
            )
        indexes = sorted(assignment.partition_index for assignment in topic.assignments)
        if indexes != list(range(len(indexes))):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "partitions should be a consecutive 0-based integer sequence",
            )
        for assignment in topic.assignments:
            check_replicas(assignment.broker_ids, node_id)
        return len(indexes)
    replicas = default_replicas if topic.replication_factor == -1 else topic.replication_factor
    if replicas < 1:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    count = default_partitions if topic.num_partitions == -1 else topic.num_partitions
    if count < 1:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        )
    if replicas > 1:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replicas} time(s): there is 1 broker.",
        )
    if count > PARTITIONS_PER_REQUEST_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    return count


def check_replicas(broker_ids: Sequence[int], node_id: int) -> None:
    """Raise KafkaError unless a manual assignment names only this broker."""
    text = ""
    if not broker_ids:
        text = "The manual partition assignment includes an empty replica list."
    seen: set[int] = set()
    for broker_id in sorted(broker_ids):
        if broker_id != node_id:
            text = (
                f"The manual partition assignment includes broker {broker_id}, "
                "but no such broker is registered."
            )
        elif broker_id in seen:
            text = f"The manual partition assignment includes the broker {broker_id} more than once."
        if text:
            break
        seen.add(broker_id)
    if text:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


def refused_deletion(name: str | None, topic_id: UUID | None) -> messages.DeletableTopicResult:
    """Return the answer for a topic deletion with both name and id, or with neither."""
    both = "You may not specify both topic name and topic id."
    text = "Neither topic name nor id were specified." if name is None else both
    code = ErrorCode.INVALID_REQUEST
    return {"name": name, "topic_id": topic_id, "error_code": code, "error_message": text}
