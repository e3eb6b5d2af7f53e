"""An idempotent producer: its id, and the numbers of its records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from sharecore.upstream.cluster import Upstream
from sharecore.upstream.errors import refusal

Record = tuple[bytes | None, bytes | None]
"""Key and value."""
_TRANSACTION_TIMEOUT_MS = 60_000
_SEQUENCES = 1 << 31


class Producer(NamedTuple):
    """A producer id and its epoch."""

    id: int
    epoch: int


def following(sequence: int, count: int) -> int:
    """Return the sequence number behind so many records; they begin at 0 again."""
    return (sequence + count) % _SEQUENCES


async def new_producer(
    upstream: Upstream, ask: Callable[[dict[str, Any]], Awaitable[Any]], transactional_id: str | None = None
) -> Producer:
    """Return a producer id.

    Args:
        ask: sends an InitProducerId to whoever gives it, and returns the answer.
        transactional_id: whose next epoch it is to be; None: an id that nobody else has.

    Raises:
        KafkaError: the right is missing, or nobody answers.
    """
    message = {
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
