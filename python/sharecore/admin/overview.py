"""All share groups of a cluster in one round of few requests: state, members, positions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sharecore.admin.model import LATEST_TIMESTAMP
from sharecore.client.wire.cluster import TopicPartition
from sharecore.client.wire.refusals import error_of, on_group
from sharecore.client.wire.transport import Transport
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey, calls

if TYPE_CHECKING:
    from sharecore.protocol.received import (
        DescribeShareGroupOffsetsResponseGroup,
        ShareGroupDescribeDescribedGroup,
    )

_GROUPS_A_REQUEST = 50
_REQUESTS_AT_ONCE = 2
"""So one is answered while the answer before it is read, and others are served between."""
UNKNOWN = -1


class Positioned(Protocol):
    """Where a share group is in a partition; -1 is not known."""

    @property
    def start_offset(self) -> int: ...

    @property
    def lag(self) -> int: ...


class Position(NamedTuple):
    """A position put together from several answers."""

    start_offset: int
    lag: int


@dataclass(slots=True)
class GroupOverview:
    """A share group.

    Attributes:
        members: by client id and host, as often as there are members.
        positions: by topic and partition, where the group has a start offset.
        unplaced: topics with partitions whose position does not exist yet, or is not visible.
        error: why the broker reports nothing, or not all, about it.
    """

    group_id: str
    state: str
    members: Sequence[tuple[str, str]] = ()
    positions: dict[str, dict[int, Positioned]] = field(default_factory=dict)
    unplaced: set[str] = field(default_factory=set)
    error: KafkaError | None = None

    def behind(self) -> list[TopicPartition]:
        """List the share partitions with records to deliver."""
        return [*self.lags()]

    def lags(self) -> dict[TopicPartition, int]:
        """Return the lag of each share partition that has any."""
        return {
            TopicPartition(topic, partition): position.lag
            for topic, positions in self.positions.items()
            for partition, position in positions.items()
            if position.lag > 0
        }

    def known_lag(self, topic: str) -> int:
        """Return the lag of a topic over the partitions with a known lag."""
        return sum(each.lag for each in self.positions[topic].values() if each.lag > 0)

    def lag(self, topic: str) -> int | None:
        """Return the lag of a topic; None if a partition's lag is unknown."""
        positions = self.positions.get(topic, {}).values()
        if topic in self.unplaced or not positions or any(each.lag < 0 for each in positions):
            return None
        return self.known_lag(topic)

    def total_lag(self) -> int | None:
        """Return the lag of all topics; None if one is unknown."""
        lags = [self.lag(topic) for topic in {*self.positions, *self.unplaced}]
        known = [lag for lag in lags if lag is not None]
        return sum(known) if known and len(known) == len(lags) else None


async def look_at_groups(transport: Transport) -> list[GroupOverview]:
    """Every share group, by name; a broker is asked for all that it coordinates at once.

    A group that may not be described has its error; one that has gone meanwhile is left out.

    Raises:
        KafkaError: a broker did not answer, or lists no groups to this client.
    """
    listed = await transport.by_node(calls.LIST_GROUPS, {"states_filter": [], "types_filter": ["share"]})
    found: dict[str, GroupOverview] = {}
    rounds = []
    for node, answer in listed.items():
        turns = asyncio.Semaphore(_REQUESTS_AT_ONCE)
        names = [group.group_id for group in answer.groups]
        found.update(
            (group.group_id, GroupOverview(group.group_id, group.group_state)) for group in answer.groups
        )
        rounds += [_in_turn(turns, _describe(transport, node, some, found)) for some in _cut(names)]
        rounds += [_in_turn(turns, _offsets(transport, node, some, found)) for some in _cut(names)]
    await asyncio.gather(*rounds)
    await _without_lag(transport, found.values())
    return [found[name] for name in sorted(found)]


def _cut(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(names), _GROUPS_A_REQUEST):
        yield names[first : first + _GROUPS_A_REQUEST]


async def _in_turn(turns: asyncio.Semaphore, work: Awaitable[None]) -> None:
    async with turns:
        await work


async def _describe(
    transport: Transport, node: int, names: Sequence[str], found: dict[str, GroupOverview]
) -> None:
    message = {"group_ids": names, "include_authorized_operations": False}
    answer = await transport.node(node, calls.SHARE_GROUP_DESCRIBE, message)
    for group in answer.groups:
        if _failed(group, found):
            continue
        known = found[group.group_id]
        known.state = group.group_state
        known.members = [(member.client_id, member.client_host) for member in group.members]


async def _offsets(
    transport: Transport, node: int, names: Sequence[str], found: dict[str, GroupOverview]
) -> None:
    message = {"groups": [{"group_id": name, "topics": None} for name in names]}
    answer = await transport.node(node, calls.DESCRIBE_SHARE_GROUP_OFFSETS, message)
    for group in answer.groups:
        if _failed(group, found):
            continue
        overview = found[group.group_id]
        positions = overview.positions
        for topic in group.topics:
            known = [part for part in topic.partitions if not part.error_code and part.start_offset >= 0]
            if len(known) < len(topic.partitions):
                overview.unplaced.add(topic.topic_name)
            if known and not hasattr(known[0], "lag"):
                positions[topic.topic_name] = {
                    part.partition_index: Position(part.start_offset, UNKNOWN) for part in known
                }
            else:
                positions[topic.topic_name] = {part.partition_index: part for part in known}


def _failed(
    group: ShareGroupDescribeDescribedGroup | DescribeShareGroupOffsetsResponseGroup,
    found: dict[str, GroupOverview],
) -> bool:
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        found.pop(group.group_id, None)
    elif group.error_code and group.group_id in found:
        missing = on_group(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, group.group_id)
        found[group.group_id].error = error_of(group, missing)
    return bool(group.error_code) or group.group_id not in found


async def _without_lag(transport: Transport, groups: Iterable[GroupOverview]) -> None:
    """Estimate the lag from log offsets, for brokers without KIP-1226."""
    missing = {
        TopicPartition(topic, partition)
        for group in groups
        for topic, positions in group.positions.items()
        for partition, position in positions.items()
        if position.lag < 0
    }
    if not missing:
        return
    ends = await transport.offsets_for(missing, LATEST_TIMESTAMP)
    for group in groups:
        for topic, positions in group.positions.items():
            for partition, position in positions.items():
                if position.lag < 0:
                    end, start = ends.get(TopicPartition(topic, partition), UNKNOWN), position.start_offset
                    positions[partition] = Position(start, max(UNKNOWN, end - start))
