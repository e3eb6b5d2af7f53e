"""An idempotent producer: its id and sequence numbers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from sharecore.upstream.cluster import Upstream
from sharecore.upstream.errors import refusal

if TYPE_CHECKING:
    from sharecore.protocol.received import InitProducerIdResponse

Record = tuple[bytes | None, bytes | None]
"""Key and value."""
_TRANSACTION_TIMEOUT_MS = 60_000
_SEQUENCES = 1 << 31


class Producer(NamedTuple):
    """A producer id and its epoch."""

    id: int
    epoch: int


def following(sequence: int, count: int) -> int:
    """Return the sequence number after `count` records; it wraps around to 0."""
    return (sequence + count) % _SEQUENCES


async def new_producer(
    upstream: Upstream,
    ask: Callable[[dict[str, object]], Awaitable[InitProducerIdResponse]],
    transactional_id: str | None = None,
) -> Producer:
    """Return a producer id.

    Args:
        ask: sends an InitProducerId to the responsible broker, and returns the answer.
        transactional_id: gives its next epoch; None for an unused id.

    Raises:
        KafkaError: a permission is missing, or no broker answers.
    """
    message: dict[str, object] = {
        "transactional_id": transactional_id,
        "transaction_timeout_ms": 0 if transactional_id is None else _TRANSACTION_TIMEOUT_MS,
        "producer_id": -1,
        "producer_epoch": -1,
    }
    what = (
        ("a producer id", "", "IdempotentWrite")
        if transactional_id is None
        else ("a producer id for", transactional_id, "Write")
    )

    async def once() -> Producer:
        answer = await ask(message)
        if answer.error_code:
            raise refusal(answer.error_code, *what)
        return Producer(answer.producer_id, answer.producer_epoch)

    return await upstream.retry(once)
