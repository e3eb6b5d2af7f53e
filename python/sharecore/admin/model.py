"""What an administrator sees of share groups."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from sharecore.client.wire.cluster import TopicPartition
from sharecore.errors import KafkaError


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group of any type.

    Args:
        type: classic, consumer, share or streams.
        state: Empty, Stable, ...
    """

    group_id: str
    type: str
    state: str
    protocol_type: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a share group.

    Args:
        assignment: the share partitions that it takes records from.
    """

    member_id: str
    client_id: str
    host: str
    epoch: int
    rack_id: str | None = None
    subscribed: Collection[str] = ()
    assignment: Collection[TopicPartition] = ()


@dataclass(frozen=True, slots=True)
class ShareGroup:
    """A share group and its members.

    Args:
        epoch: grows with each change that asks for a new assignment.
        assignment_epoch: the epoch that the present assignment was made for.
        authorized_operations: bits of Kafka's AclOperation; None unless asked for.
    """

    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: Sequence[Member] = ()
    authorized_operations: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionOffset:
    """A share group's position in a partition.

    Args:
        start_offset: what lies before it is done; None where the group has no state yet.
        lag: records that have not been processed; None where it is not known (KIP-1226).
        error: why the broker does not report it.
    """

    partition: TopicPartition
    start_offset: int | None
    leader_epoch: int = -1
    lag: int | None = None
    error: KafkaError | None = None


class _Place(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    TIME = "time"
    OFFSET = "offset"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a reset goes to; made by `earliest`, `latest`, `at` and `offset`."""

    place: _Place
    value: int = 0

    @classmethod
    def earliest(cls) -> Target:
        """To the first record that exists."""
        return cls(_Place.EARLIEST)

    @classmethod
    def latest(cls) -> Target:
        """Behind the last record, so that only new ones are delivered."""
        return cls(_Place.LATEST)

    @classmethod
    def at(cls, time: datetime) -> Target:
        """Reset to the first record from this time on, or to the end. A time without a zone is local."""
        return cls(_Place.TIME, round(time.timestamp() * 1000))

    @classmethod
    def offset(cls, offset: int) -> Target:
        """Reset to this offset, or to the nearest one; raise ValueError if it is negative."""
        if offset < 0:
            raise ValueError(f"offset {offset} is negative")
        return cls(_Place.OFFSET, offset)

    @property
    def timestamp(self) -> int | None:
        """Return the timestamp for ListOffsets; None if no request is needed."""
        if self.place is _Place.OFFSET:
            return None
        return {_Place.EARLIEST: EARLIEST_TIMESTAMP, _Place.LATEST: LATEST_TIMESTAMP}.get(
            self.place, self.value
        )


EARLIEST_TIMESTAMP = -2
LATEST_TIMESTAMP = -1


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """Change of a reset to a partition; `before` is None if the group has no state there."""

    partition: TopicPartition
    before: int | None
    after: int


@dataclass(frozen=True, slots=True)
class ResetPlan:
    """What a reset would do; nothing has happened yet."""

    group_id: str
    target: Target
    changes: Sequence[OffsetChange]


@dataclass(frozen=True, slots=True)
class ResetResult:
    """What a reset did, partition by partition."""

    done: Sequence[OffsetChange] = field(default_factory=tuple)
    failed: Sequence[tuple[OffsetChange, KafkaError]] = field(default_factory=tuple)
