"""Initial start offset of a share partition."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from sharecore.config import GroupConfig
from sharecore.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from sharecore.storage import Found, Log


def find_first_offset(
    config: GroupConfig, log: Log, now_ms: int, done: Callable[[int | KafkaError], object]
) -> None:
    """Find the start offset by the group's reset policy (`share.auto.offset.reset`).

    Args:
        now_ms: wall-clock time, as in record timestamps.
        done: called with the offset or an error; immediately unless a timestamp lookup is needed.
    """

    def latest() -> int:
        return log.last_stable_offset if config.read_committed else log.high_watermark

    def found(looking: asyncio.Future[Found | None]) -> None:
        if looking.cancelled():
            return
        error = looking.exception()
        if error is None:
            first = looking.result()
            done(latest() if first is None else first[0])
        else:
            done(
                error
                if isinstance(error, KafkaError)
                else KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
            )

    reset = config.offset_reset
    if reset.strategy == "by_duration":
        log.find_offset(now_ms - reset.duration_ms).add_done_callback(found)
    else:
        done(log.start_offset if reset.strategy == "earliest" else latest())
