"""A cluster that is looked at again and again: its groups, and how fast they move."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sharecore.admin.overview import GroupOverview, look_at_groups
from sharecore.admin.state_tail import StateTail
from sharecore.admin.waiting import waiting_of
from sharecore.client.wire.transport import Transport
from sharecore.errors import ErrorCode, KafkaError

NOT_READABLE = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""Errors for a client that may not read share state, or of a group without any."""

Key = tuple[str, str, int]
"""A share partition: group, topic, partition."""
Held = tuple[Mapping[Key, int], Mapping[Key, float]]
"""Records in flight, and the age of the oldest lease in seconds."""


@dataclass(frozen=True, slots=True)
class Look:
    """A cluster at one moment.

    Args:
        at_s: when, on any clock.
        came_back: records that were given back and wait, by group; None where share state is not readable.
        in_flight, oldest_s: by group, topic and partition, of a broker that reports it.
    """

    at_s: float
    groups: Mapping[str, GroupOverview]
    came_back: Mapping[str, int] | None = None
    in_flight: Mapping[Key, int] = field(default_factory=dict)
    oldest_s: Mapping[Key, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """A group between two looks; None is not known.

    Args:
        state: or why the broker reports nothing.
        settled, new: records a second, settled and produced.
        came_back: records that were given back and wait.
    """

    group_id: str
    state: str
    members: int
    partitions: int
    lag: int | None
    settled: float | None
    new: float | None
    came_back: int | None
    in_flight: int | None


@dataclass(frozen=True, slots=True)
class PartitionFigures:
    """A share partition between two looks; None is not known."""

    topic: str
    partition: int
    start_offset: int
    lag: int | None
    settled: float | None
    new: float | None
    in_flight: int | None
    oldest_s: float | None


class Watch:
    """A cluster that is looked at again and again.

    Args:
        transport: an administrator's connections; closed with the watch.
        held: reports acquired records, if something does.
    """

    def __init__(self, transport: Transport, held: Callable[[], Awaitable[Held]] | None = None) -> None:
        self._transport = transport
        self.tail = StateTail(transport)
        self._held = held

    async def look(self) -> Look:
        """Return the cluster now; raise KafkaError or OSError if it cannot be reached."""
        groups = {group.group_id: group for group in await look_at_groups(self._transport)}
        came_back: dict[str, int] | None = None
        try:
            await self.tail.look()
            came_back = self._came_back()
        except KafkaError as error:
            if error.code not in NOT_READABLE:
                raise
        in_flight, oldest = await self._held() if self._held is not None else ({}, {})
        return Look(time.monotonic(), groups, came_back, in_flight, oldest)

    async def why(self, group: GroupOverview) -> list[str]:
        """Describe why records of a group are not delivered, as its brokers report it."""
        behind = group.behind()
        if not behind:
            return []
        found = await waiting_of(self._transport, group.group_id, behind)
        return [*found.of_group(), *found.of_partitions(), *found.gaps()]

    async def close(self) -> None:
        """End all connections."""
        await self._transport.close()

    def _came_back(self) -> dict[str, int]:
        found: Counter[str] = Counter()
        for (group_id, _), records in self.tail.often_delivered(1).items():
            found[group_id] += records
        return found


def group_figures(now: Look, before: Look | None) -> Iterator[GroupFigures]:
    """Every group, by name."""
    for name, group in now.groups.items():
        keys = [(topic, each) for topic, positions in group.positions.items() for each in positions]
        settled, new = _rates(keys, name, now, before)
        in_flight = [
            count
            for topic, partition in keys
            if (count := now.in_flight.get((name, topic, partition))) is not None
        ]
        yield GroupFigures(
            name,
            group.state if group.error is None else group.error.code.name,
            len(group.members),
            len(keys),
            group.total_lag(),
            settled,
            new,
            None if now.came_back is None else now.came_back.get(name, 0),
            sum(in_flight) if in_flight else None,
        )


def partition_figures(group_id: str, now: Look, before: Look | None) -> Iterator[PartitionFigures]:
    """Every share partition of a group."""
    group = now.groups.get(group_id)
    for topic, positions in (group.positions if group else {}).items():
        for partition, position in positions.items():
            settled, new = _rates([(topic, partition)], group_id, now, before)
            yield PartitionFigures(
                topic,
                partition,
                position.start_offset,
                max(0, position.lag) if position.lag >= 0 else None,
                settled,
                new,
                now.in_flight.get((group_id, topic, partition)),
                now.oldest_s.get((group_id, topic, partition)),
            )


def _rates(
    keys: Iterable[tuple[str, int]], group_id: str, now: Look, before: Look | None
) -> tuple[float | None, float | None]:
    """Record settled and records new, a second; None until there are two looks."""
    if before is None or group_id not in before.groups or now.at_s <= before.at_s:
        return None, None
    settled = new = 0
    for topic, partition in keys:
        then = before.groups[group_id].positions.get(topic, {}).get(partition)
        position = now.groups[group_id].positions[topic][partition]
        if then is None or then.lag < 0 or position.lag < 0:
            continue
        # finished records, whether the start offset has passed them or not
        new_here = (position.start_offset + position.lag) - (then.start_offset + then.lag)
        moved = position.start_offset - then.start_offset
        new += max(0, new_here)
        settled += max(0, moved)
    seconds = now.at_s - before.at_s
    return settled / seconds, new / seconds
