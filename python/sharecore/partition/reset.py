"""Where a share partition begins that has no start offset yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharecore.config import GroupConfig

if TYPE_CHECKING:
    from sharecore.storage import Log


def first_offset(config: GroupConfig, log: Log, now_ms: int) -> int:
    """The start offset by the group's reset policy (`share.auto.offset.reset`).

    Args:
        now_ms: by the clock that record timestamps follow.
    """
    reset = config.offset_reset
    if reset.strategy == "earliest":
        return log.start_offset
    if reset.strategy == "by_duration":
        found = log.offset_for(now_ms - reset.duration_ms)
        if found is not None:
            return found[0]
    return log.last_stable_offset if config.read_committed else log.high_watermark
