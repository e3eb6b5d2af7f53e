"""Move a share group between two clusters with the same topics: a tier and its upstream cluster.

The state is copied before the group is deleted at its source. If the move is interrupted, one side has all of
the state, and the same call finishes it. Acknowledged records are redelivered only if members joined
meanwhile; no record is skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from sharecore._core import combine
from sharecore.admin.client import Admin
from sharecore.admin.model import OffsetChange, ResetPlan, Target
from sharecore.client.wire.cluster import TopicPartition
from sharecore.client.wire.transport import ShareStates, Transport
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import calls
from sharecore.protocol.calls import Call
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import ARCHIVING, AVAILABLE, StateBatch

if TYPE_CHECKING:
    from sharecore.protocol.received import ReadShareGroupStateSummaryPartitionResult

Value = TypeVar("Value")

_AT_ONCE = 20
_ROUNDS = 5
_LETTERS_SINCE = 2
"""The level of share.version from which on a cluster knows dead letters."""
_KNOWN_SECONDS, _GONE_SECONDS, _PAUSE_SECONDS = 15.0, 10.0, 0.1


@dataclass(frozen=True, slots=True)
class PartitionState:
    """State of a share partition.

    Args:
        delivery_complete_count: -1 where the cluster does not count.
        batches: ascending and apart, from the start offset on.
    """

    start_offset: int
    delivery_complete_count: int = -1
    batches: tuple[StateBatch, ...] = ()


class Side:
    """A cluster that has the group, or is to have it.

    Args:
        transport: connections to it.
        name: for error messages, such as "the upstream cluster".
    """

    def __init__(self, transport: Transport, name: str) -> None:
        self.admin, self.name = Admin.over(transport), name
        self._transport = transport
        self._ids: dict[str, UUID] = {}

    async def read(self, group_id: str, partition: TopicPartition) -> PartitionState:
        """Return the state of a share partition; raise KafkaError as `summary` does."""
        summary = await self.summary(group_id, partition)
        # a higher epoch would fence the leader of the share partition
        fields = {"leader_epoch": max(0, summary.leader_epoch)}
        found = await self._ask(group_id, partition, calls.READ_SHARE_GROUP_STATE, fields)
        batches = tuple(
            (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in found.state_batches
        )
        count = getattr(summary, "delivery_complete_count", -1)
        return PartitionState(found.start_offset, count, batches)

    async def write(self, group_id: str, partition: TopicPartition, state: PartitionState) -> None:
        """Write the state of a share partition that was reset to its start offset; raise KafkaError."""
        summary = await self.summary(group_id, partition)
        fields = {
            "state_epoch": summary.state_epoch,
            "leader_epoch": max(0, summary.leader_epoch),
            "start_offset": state.start_offset,
            "delivery_complete_count": state.delivery_complete_count,
            "state_batches": [
                {"first_offset": first, "last_offset": last, "delivery_state": kind, "delivery_count": count}
                for first, last, kind, count in state.batches
            ],
        }
        await self._ask(group_id, partition, calls.WRITE_SHARE_GROUP_STATE, fields)

    async def summary(
        self, group_id: str, partition: TopicPartition
    ) -> ReadShareGroupStateSummaryPartitionResult:
        """Return epochs and start offset of a share partition.

        Raises:
            KafkaError: CLUSTER_AUTHORIZATION_FAILED where the right CLUSTER_ACTION is missing, or why else.
        """
        fields = {"leader_epoch": 0}
        return await self._ask(group_id, partition, calls.READ_SHARE_GROUP_STATE_SUMMARY, fields)

    async def _ask(
        self,
        group_id: str,
        partition: TopicPartition,
        call: Call[ShareStates[Value]],
        fields: Mapping[str, object],
    ) -> Value:
        if partition.topic not in self._ids:
            self._ids[partition.topic] = (await self._transport.topic(partition.topic))[0]
        key = SharePartitionKey(group_id, self._ids[partition.topic], partition.partition)
        part = {"partition": key.partition, **fields}
        topics = [{"topic_id": key.topic_id, "partitions": [part]}]
        message = {"group_id": group_id, "topics": topics}
        try:
            return await self._transport.share_coordinator(key.coordinator_key(), call, message)
        except KafkaError as error:
            if error.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                raise _on(self, KafkaError(error.code, f"{partition}: {error.message}")) from None
            text = (
                f"the right CLUSTER_ACTION on the cluster is missing on {self.name}: state of share "
                "partitions takes it. Grant it, or take over start offsets alone: --offsets-only"
            )
            raise KafkaError(error.code, text) from None

    async def has_letters(self) -> bool:
        """Return whether the cluster knows dead letters (KIP-1191)."""
        level, _ = (await self._transport.features()).get("share.version", (0, 0))
        return level >= _LETTERS_SINCE


@dataclass(slots=True)
class HandedOver:
    """What has been moved.

    Attributes:
        states: by partition.
        already: the group had been moved before; there was nothing left to do.
        settings: of the group, which were set on the other side.
        refused_settings: those that the other side does not take, and why.
        not_begun: partitions that no record was taken from: their start follows from the reset policy.
    """

    states: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    already: bool = False
    settings: dict[str, str] = field(default_factory=dict)
    refused_settings: dict[str, str] = field(default_factory=dict)
    not_begun: list[TopicPartition] = field(default_factory=list)


async def hand_over(
    source: Side, target: Side, group_id: str, *, offsets_only: bool = False, overwrite: bool = False
) -> HandedOver:
    """Move a share group without members from one cluster to another.

    Args:
        offsets_only: take start offsets alone. It needs no CLUSTER_ACTION; records behind the start offset
            that were acknowledged are delivered again, and deliveries count from 1.
        overwrite: replace state of the target that is no part of this move.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, a right is missing, or the target has other state.
    """
    return await _Handover(source, target, group_id, offsets_only, overwrite).run()


class _Handover:
    def __init__(
        self, source: Side, target: Side, group_id: str, offsets_only: bool, overwrite: bool
    ) -> None:
        self._source, self._target, self._group_id = source, target, group_id
        self._offsets_only, self._overwrite = offsets_only, overwrite
        self._limit = asyncio.Semaphore(_AT_ONCE)

    async def run(self) -> HandedOver:
        here, there = await self._is_empty(self._source), await self._is_empty(self._target)
        if not here:
            if not there:
                text = f"there is no share group {self._group_id}"
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
            return HandedOver(already=True)
        done = HandedOver()
        states, done.not_begun = await self._read_all(self._source)
        if there and not self._overwrite:
            self._check_target(states, (await self._read_all(self._target))[0])
        await self._copy_settings(done)
        for _ in range(_ROUNDS):
            await self._write_all(states)
            await self._is_empty(self._source)
            found, done.not_begun = await self._read_all(self._source)
            if found == states:
                break
            # a member has joined and left in the meantime
            states = found
        else:
            raise KafkaError(
                ErrorCode.NON_EMPTY_GROUP,
                f"group {self._group_id} is in use on {self._source.name}: stop its members first",
            )
        await self._source.admin.delete_group(self._group_id)
        await self._wait_until_gone()
        done.states = states
        return done

    async def _is_empty(self, side: Side) -> bool:
        """Return whether a group exists and is empty; raise KafkaError if it has members."""
        try:
            group = await side.admin.describe(self._group_id)
        except KafkaError as error:
            if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
                return False
            raise _on(side, error) from None
        if group.members:
            raise KafkaError(
                ErrorCode.NON_EMPTY_GROUP,
                f"group {self._group_id} has {len(group.members)} members on {side.name}: stop them first",
            )
        return group.state != "Dead"

    # state

    async def _read_all(
        self, side: Side
    ) -> tuple[dict[TopicPartition, PartitionState], list[TopicPartition]]:
        """Return the state of the partitions that have begun, and the others."""
        begun: dict[TopicPartition, int] = {}
        others = []
        for each in await side.admin.offsets(self._group_id):
            if each.error is not None:
                raise _on(side, each.error)
            if each.start_offset is None:
                others.append(each.partition)
            else:
                begun[each.partition] = each.start_offset
        if self._offsets_only:
            return {partition: PartitionState(start) for partition, start in begun.items()}, others
        found = await self._each(begun, partial(side.read, self._group_id))
        return found, others

    async def _write_all(self, states: Mapping[TopicPartition, PartitionState]) -> None:
        """Give the target this state, and read it back."""
        side = self._target
        if not states:
            return
        changes = [OffsetChange(partition, None, state.start_offset) for partition, state in states.items()]
        loop = asyncio.get_running_loop()
        until = loop.time() + _KNOWN_SECONDS
        while changes:
            reset = await side.admin.reset(ResetPlan(self._group_id, Target.offset(0), changes))
            for change, error in reset.failed:
                # a node learns of a new topic after some seconds
                if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or loop.time() > until:
                    raise _on(side, KafkaError(error.code, f"{change.partition}: {error.message}"))
            changes = [change for change, _ in reset.failed]
            await asyncio.sleep(_PAUSE_SECONDS if changes else 0)
        if self._offsets_only:
            return
        takes_letters = await side.has_letters()

        async def write(partition: TopicPartition) -> None:
            state = states[partition]
            if not takes_letters:
                state = _without_letters(state)
            await self._write(partition, state)

        await self._each(states, write)

    async def _write(self, partition: TopicPartition, state: PartitionState) -> None:
        side = self._target
        await side.write(self._group_id, partition, state)
        found = await side.read(self._group_id, partition)
        if (found.start_offset, found.batches) != (state.start_offset, state.batches):
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"{partition}: {side.name} has {found} after {state} was written; nothing was deleted on "
                f"{self._source.name}. Run it again once no member is there",
            )

    def _check_target(
        self,
        states: Mapping[TopicPartition, PartitionState],
        found: Mapping[TopicPartition, PartitionState],
    ) -> None:
        """Raise KafkaError unless the target's state is that of an interrupted move."""
        for partition, state in sorted(found.items()):
            wanted = states.get(partition)
            begun = wanted is not None and state.start_offset == wanted.start_offset
            if (
                wanted is None
                or not begun
                or state.batches not in ((), wanted.batches, _without_letters(wanted).batches)
            ):
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"{self._target.name} has a group {self._group_id} of its own, which stands elsewhere in "
                    f"{partition}. Delete the one that is not wanted (`sharecore groups delete`), or take "
                    f"the state of {self._source.name} in any case: --overwrite",
                )

    async def _each(
        self,
        partitions: Iterable[TopicPartition],
        work: Callable[[TopicPartition], Awaitable[Value]],
    ) -> dict[TopicPartition, Value]:
        async def one(partition: TopicPartition) -> Value:
            async with self._limit:
                return await work(partition)

        names = list(partitions)
        return dict(zip(names, await asyncio.gather(*map(one, names)), strict=True))

    # settings, and the end

    async def _copy_settings(self, done: HandedOver) -> None:
        """Set the group's settings on the target: together, as one may need another, else one by one."""
        found = await self._source.admin.configs(self._group_id)
        entries = [(name, entry.value) for name, entry in sorted(found.items()) if entry.own]
        own = {name: value for name, value in entries if value is not None}
        if not own:
            return
        try:
            await self._target.admin.alter_configs(self._group_id, own)
        except KafkaError:
            for name, value in own.items():
                try:
                    await self._target.admin.alter_configs(self._group_id, {name: value})
                except KafkaError as error:  # noqa: PERF203
                    done.refused_settings[name] = str(error)
                else:
                    done.settings[name] = value
        else:
            done.settings = own

    async def _wait_until_gone(self) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + _GONE_SECONDS
        while await self._is_empty(self._source) and loop.time() < until:  # noqa: ASYNC110 - over the wire
            await asyncio.sleep(_PAUSE_SECONDS)


def _without_letters(state: PartitionState) -> PartitionState:
    """Return state for a cluster without dead letters: archiving records are available.

    It joins equal neighbors, as a share coordinator does.
    """
    batches = [
        (first, last, AVAILABLE if kind == ARCHIVING else kind, count)
        for first, last, kind, count in state.batches
    ]
    joined = tuple(combine([], batches, state.start_offset))
    return PartitionState(state.start_offset, state.delivery_complete_count, joined)


def _on(side: Side, error: KafkaError) -> KafkaError:
    return KafkaError(error.code, f"{side.name}: {error.message or error.code.name}")
