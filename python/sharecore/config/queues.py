"""Settings of share groups that are sharecore's own: what of a queue Kafka's share groups do not have."""

from __future__ import annotations

from dataclasses import dataclass

from sharecore.config.keys import Kind, setting


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class QueueSettings:
    """When a share group gets records, beyond what Kafka's settings say."""

    share_paused: bool = setting(
        Kind.BOOLEAN,
        False,
        "Whether the group gets no records. Acknowledgements, renewals, lock time-outs and heartbeats go on.",
        own=True,
    )
    share_paused_until_ms: int = setting(
        Kind.LONG,
        0,
        "The group gets no records before this time, in milliseconds since the epoch by the broker's clock.",
        low=0,
        own=True,
    )

    def pause_left_ms(self, now_ms: int) -> int | None:
        """Return how long the group is still paused: 0 if it is not, None if until it is resumed."""
        return None if self.share_paused else max(0, self.share_paused_until_ms - now_ms)
