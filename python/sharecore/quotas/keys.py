"""Quota keys and their valid values."""

from __future__ import annotations

from sharecore.errors import ErrorCode, KafkaError
from sharecore.quotas.entity import IP, Entity

PRODUCER = "producer_byte_rate"
"""Bytes of Produce requests per second."""
CONSUMER = "consumer_byte_rate"
"""Bytes of Fetch and ShareFetch answers per second."""
REQUEST = "request_percentage"
"""Request-handling time, in percent of the broker's thread."""
CONTROLLER = "controller_mutation_rate"
"""Partitions created or deleted per second."""
IP_RATE = "connection_creation_rate"
"""New connections of an address per second."""

_LARGEST = {PRODUCER: 2**63 - 1, CONSUMER: 2**63 - 1, IP_RATE: 2**31 - 1}
"""Maximum values of integer keys."""
_KINDS = {2**63 - 1: "a LONG", 2**31 - 1: "an INT"}
_OF_CLIENTS = (PRODUCER, CONSUMER, REQUEST, CONTROLLER)


def check_value(entity: Entity, key: str, value: float) -> None:
    """Raise KafkaError unless a quota is valid for an entity."""
    keys = (IP_RATE,) if IP in dict(entity) else _OF_CLIENTS
    if key not in keys:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Invalid configuration key {key}")
    if not value > 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Quota {key} must be greater than 0")
    largest = _LARGEST.get(key)
    if largest is None:
        return
    if value > largest:
        text = f"Proposed value for {key} is too large for {_KINDS[largest]}."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    if value % 1 > 1e-6:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{key} cannot be a fractional value.")
