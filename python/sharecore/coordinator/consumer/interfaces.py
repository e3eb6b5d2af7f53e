"""Dependencies of the consumer-group coordinator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from sharecore.coordinator.memory_limit import GROUP_BYTES_MAX
from sharecore.coordinator.topics import TopicView

Found = TypeVar("Found")


class Apart(Protocol):
    """Runs work for a group in a thread, then calls back with the result."""

    def __call__(
        self, group_id: str, work: Callable[[], Found], done: Callable[[Found], object], /
    ) -> object: ...


def at_once(group_id: str, work: Callable[[], Found], done: Callable[[Found], object]) -> None:
    """Run work immediately in the calling thread."""
    done(work())


class ConsumerLimits(NamedTuple):
    """Settings of consumer groups; times in milliseconds."""

    session_timeout_ms: int = 45_000
    heartbeat_ms: int = 5_000
    assignment_interval_ms: int = 0
    max_size: int = 2**31 - 1
    expressions_refresh_ms: int = 600_000
    group_bytes_max: int = GROUP_BYTES_MAX


class SubscribableTopics(TopicView, Protocol):
    """Topics of the broker, for subscriptions by expression."""

    @property
    def created(self) -> int:
        """Increases with each created topic."""

    def names(self) -> Sequence[str]:
        """Return the names of all topics."""
