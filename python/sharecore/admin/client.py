"""The administration of share groups, for asyncio."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from sharecore.admin.administration import Administration
from sharecore.admin.members import GroupMember, group_members, remove_members
from sharecore.admin.model import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    GroupListing,
    Member,
    OffsetChange,
    PartitionOffset,
    ResetPlan,
    ResetResult,
    ShareGroup,
    Target,
)
from sharecore.admin.pausing import PAUSED, PAUSED_UNTIL, SETTINGS, Pause, pause_of
from sharecore.admin.share_state import History, LiveState, StateDump, StateHistory
from sharecore.admin.state_fetch import read_state_topic
from sharecore.admin.waiting import Waiting, waiting_of, waiting_of_groups
from sharecore.client.configs import ConfigEntry, ResourceKind, alter_configs, describe_configs
from sharecore.client.dead_letters import DeadLetterSetup, set_up_dead_letters
from sharecore.client.groups import group_type
from sharecore.client.wire.cluster import TopicPartition
from sharecore.client.wire.refusals import error_of, on_topic
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import calls
from sharecore.sharestate.keys import SharePartitionKey

if TYPE_CHECKING:
    from sharecore.protocol.received import ShareGroupDescribeMember

_NOT_ASKED = -(2**31)


class Admin(Administration):
    """Lists, describes, resets and deletes share groups, on Apache Kafka 4.2 and newer as on sharecore.

    `Admin({"bootstrap.servers": "localhost:9092"})`; see `Administration` for its settings.
    """

    async def list_groups(
        self, *, types: Collection[str] = ("share",), states: Collection[str] = ()
    ) -> list[GroupListing]:
        """Return groups by name.

        Args:
            types: classic, consumer, share, streams; none for all.
            states: such as Empty or Stable; none for all.

        Raises:
            KafkaError: a broker did not answer, or refused.
        """
        message = {"states_filter": list(states), "types_filter": list(types)}
        answers = await self._transport.all(calls.LIST_GROUPS, message)
        found = {
            group.group_id: GroupListing(
                group.group_id, group.group_type.lower(), group.group_state, group.protocol_type
            )
            for answer in answers
            for group in answer.groups
        }
        return [found[group_id] for group_id in sorted(found)]

    async def describe(self, group_id: str, *, authorized_operations: bool = False) -> ShareGroup:
        """Return a share group with its members.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND when there is no share group of that name, or the broker refused.
        """
        message = {"group_ids": [group_id], "include_authorized_operations": authorized_operations}
        group = await self._transport.coordinator(
            group_id, calls.SHARE_GROUP_DESCRIBE, message, lambda answer: answer.groups[0]
        )
        operations = group.authorized_operations
        return ShareGroup(
            group.group_id,
            group.group_state,
            group.group_epoch,
            group.assignment_epoch,
            group.assignor_name,
            tuple(map(_member, group.members)),
            None if operations == _NOT_ASKED else operations,
        )

    async def members(self, group_id: str) -> list[Member]:
        """Return the members of a share group; raise KafkaError as `describe` does."""
        return list((await self.describe(group_id)).members)

    async def offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> list[PartitionOffset]:
        """Return start offset and lag of a share group, in the given partitions or in all with state.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, or the broker refused.
        """
        topics = None
        if partitions is not None:
            topics = [
                {"topic_name": topic, "partitions": some} for topic, some in _by_topic(partitions).items()
            ]
        group = await self._transport.coordinator(
            group_id,
            calls.DESCRIBE_SHARE_GROUP_OFFSETS,
            {"groups": [{"group_id": group_id, "topics": topics}]},
            lambda answer: answer.groups[0],
        )
        found = [
            PartitionOffset(
                TopicPartition(topic.topic_name, part.partition_index),
                part.start_offset if part.start_offset >= 0 else None,
                part.leader_epoch,
                lag if (lag := getattr(part, "lag", -1)) >= 0 else None,
                error_of(part, on_topic("DESCRIBE", topic.topic_name)) if part.error_code else None,
            )
            for topic in group.topics
            for part in topic.partitions
        ]
        return sorted(found, key=lambda each: each.partition)

    async def plan_reset(
        self,
        group_id: str,
        target: Target,
        *,
        topics: Collection[str] = (),
        partitions: Collection[TopicPartition] = (),
    ) -> ResetPlan:
        """Plan a reset; `reset` carries it out.

        Args:
            topics: whole topics; with neither these nor `partitions`, everything that the group has state
                for.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, UNKNOWN_TOPIC_OR_PARTITION, or a broker refused.
        """
        try:
            # for a missing group, a broker answers that it has no offsets
            await self.describe(group_id)
        except KafkaError as error:
            if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
                raise KafkaError(error.code, await self._not_found(group_id)) from None
            if error.code is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise
        known = {each.partition: each.start_offset for each in await self.offsets(group_id)}
        wanted = set(partitions)
        for topic in topics:
            wanted.update(await self._transport.partitions_of(topic))
        if not topics and not partitions:
            wanted = set(known)
        after = await self._resolve(target, wanted)
        changes = [OffsetChange(each, known.get(each), after[each]) for each in sorted(wanted)]
        return ResetPlan(group_id, target, changes)

    async def group_type(self, group_id: str) -> str | None:
        """Return classic, consumer, share or streams; None if the group does not exist or is not visible.

        Raises:
            KafkaError: the group's coordinator refused, or did not answer.
        """
        return await group_type(self._transport, group_id)

    async def group_members(self, group_id: str, kind: str = "share") -> list[GroupMember]:
        """Return the members of a group of a type; raises KafkaError as `members.group_members` does."""
        return await group_members(self._transport, group_id, kind)

    async def remove_members(self, group_id: str, kind: str, members: Iterable[GroupMember]) -> None:
        """Remove members from their group; raises KafkaError as `members.remove_members` does."""
        await remove_members(self._transport, group_id, kind, members)

    async def _not_found(self, group_id: str) -> str:
        kind = await self.group_type(group_id)
        if kind in (None, "share"):
            return f"there is no share group {group_id}"
        return f"{group_id} is a {kind} group, not a share group"

    async def reset(self, plan: ResetPlan) -> ResetResult:
        """Carries out a planned reset; the group must have no members.

        Raises:
            KafkaError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, or the broker refused; nothing has changed then.
        """
        changes = {change.partition: change for change in plan.changes}
        if not changes:
            return ResetResult()
        topics: dict[str, list[dict[str, int]]] = {}
        for change in plan.changes:
            topics.setdefault(change.partition.topic, []).append(
                {"partition_index": change.partition.partition, "start_offset": change.after}
            )
        message = {
            "group_id": plan.group_id,
            "topics": [{"topic_name": name, "partitions": some} for name, some in topics.items()],
        }
        answer = await self._transport.coordinator(
            plan.group_id, calls.ALTER_SHARE_GROUP_OFFSETS, message, lambda answer: answer
        )
        failed = []
        for topic in answer.responses:
            for part in topic.partitions:
                if part.error_code:
                    change = changes.pop(TopicPartition(topic.topic_name, part.partition_index))
                    failed.append((change, error_of(part, on_topic("READ", topic.topic_name))))
        return ResetResult(tuple(changes.values()), tuple(failed))

    async def delete_offsets(self, group_id: str, topics: Collection[str]) -> dict[str, KafkaError | None]:
        """Delete a share group's offsets of whole topics; the group must have no members.

        Returns: by topic, why it was refused, or None.

        Raises:
            KafkaError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, or the broker refused.
        """
        message = {"group_id": group_id, "topics": [{"topic_name": topic} for topic in topics]}
        answer = await self._transport.coordinator(
            group_id, calls.DELETE_SHARE_GROUP_OFFSETS, message, lambda answer: answer
        )
        return {
            topic.topic_name: (
                error_of(topic, on_topic("READ", topic.topic_name)) if topic.error_code else None
            )
            for topic in answer.responses
        }

    async def delete_group(self, group_id: str) -> None:
        """Delete a group of any type, with its state; it must have no members.

        Raises:
            KafkaError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, or the broker refused.
        """
        await self._transport.coordinator(
            group_id,
            calls.DELETE_GROUPS,
            {"groups_names": [group_id]},
            lambda answer: answer.results[0],
        )

    async def configs(self, group_id: str, names: Collection[str] = ()) -> dict[str, ConfigEntry]:
        """Return the configuration of a group, or of these settings; raise KafkaError when the broker
        refuses.
        """
        return await describe_configs(self._transport, ResourceKind.GROUP, group_id, names)

    async def alter_configs(
        self,
        group_id: str,
        values: Mapping[str, object] | None = None,
        *,
        unset: Collection[str] = (),
        validate_only: bool = False,
    ) -> None:
        """Set settings of a group and unset others, all or none of them.

        Args:
            values: by Kafka's names, such as `share.auto.offset.reset`.
            validate_only: only see whether it would be allowed.

        Raises:
            KafkaError: INVALID_CONFIG with what is allowed, or the broker refused.
        """
        try:
            await alter_configs(
                self._transport,
                ResourceKind.GROUP,
                group_id,
                values,
                unset=unset,
                validate_only=validate_only,
            )
        except KafkaError as error:
            raise _explain(error, {*(values or ()), *unset}) from None

    async def waiting_of(self, group_id: str, partitions: Iterable[TopicPartition]) -> Waiting:
        """Return why records of a share group are not delivered, as far as its brokers report it."""
        return await waiting_of(self._transport, group_id, partitions)

    async def pause_of(self, group_id: str) -> Pause:
        """Return a group's pause; none if its settings are not readable, or the broker has no pauses.

        Raises:
            KafkaError: the broker did not answer.
        """
        return await pause_of(self._transport, group_id)

    async def pauses(self, group_ids: Iterable[str]) -> dict[str, Pause | None]:
        """Return the pauses of several groups; None without an answer, or without the permission."""
        found = await waiting_of_groups(self._transport, dict.fromkeys(group_ids, ()))
        return {
            group_id: None if each.missing and not each.is_answered else each.pause
            for group_id, each in found.items()
        }

    async def pause(self, group_id: str, *, until_ms: int | None = None) -> None:
        """Give a group no more records, until it is resumed or a time has come.

        Args:
            until_ms: when the pause ends by itself, in milliseconds since the epoch.

        Raises:
            KafkaError: INVALID_CONFIG from a broker that cannot pause groups, or the broker refused.
        """
        if until_ms is None:
            await self.alter_configs(group_id, {PAUSED: True}, unset=(PAUSED_UNTIL,))
        else:
            await self.alter_configs(group_id, {PAUSED_UNTIL: until_ms}, unset=(PAUSED,))

    async def resume(self, group_id: str) -> None:
        """Give a group records again; raises KafkaError when the broker refuses."""
        await self.alter_configs(group_id, unset=SETTINGS)

    async def set_up_dead_letters(
        self,
        group_id: str,
        topic: str,
        *,
        create: bool = False,
        copy: bool = True,
        partitions: int = -1,
        replication_factor: int = -1,
    ) -> DeadLetterSetup:
        """Have a share group's dead letters go to a topic: see `sharecore.client.dead_letters`."""
        return await set_up_dead_letters(
            self._transport,
            group_id,
            topic,
            create=create,
            copy=copy,
            partitions=partitions,
            replication_factor=replication_factor,
        )

    async def share_state(self, key: SharePartitionKey | None = None) -> StateDump:
        """Return the live state of all share partitions or of one, read from `__share_group_state`.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION when there never was any, or a broker refused.
        """
        state = await read_state_topic(self._transport, lambda: LiveState(key), key)
        return state.dump(await self._transport.names_of(state.topic_ids()))

    async def share_state_history(self, key: SharePartitionKey) -> StateHistory:
        """Return the records about one share partition that are still there; raise as `share_state`."""
        return (await read_state_topic(self._transport, lambda: History(key), key)).history()

    async def _resolve(
        self, target: Target, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, int]:
        timestamp = target.timestamp
        if timestamp is not None and timestamp < 0:
            return await self._transport.offsets_for(partitions, timestamp)
        last = await self._transport.offsets_for(partitions, LATEST_TIMESTAMP)
        if timestamp is not None:
            found = await self._transport.offsets_for(partitions, timestamp)
            return {each: offset if offset >= 0 else last[each] for each, offset in found.items()}
        first = await self._transport.offsets_for(partitions, EARLIEST_TIMESTAMP)
        return {each: min(max(target.value, first[each]), last[each]) for each in partitions}


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


def _member(member: ShareGroupDescribeMember) -> Member:
    assignment = [
        TopicPartition(topic.topic_name, partition)
        for topic in member.assignment.topic_partitions
        for partition in topic.partitions
    ]
    return Member(
        member.member_id,
        member.client_id,
        member.client_host,
        member.member_epoch,
        member.rack_id,
        tuple(sorted(member.subscribed_topic_names)),
        tuple(sorted(assignment)),
    )


def _explain(error: KafkaError, names: Collection[str]) -> KafkaError:
    """Return the error of a change of group settings; it says if the cluster lacks settings of sharecore."""
    from sharecore.config.group import group_keys  # takes long to import

    _, is_unknown, name = error.message.partition("Unknown group config name: ")
    known = group_keys().get(name)
    if not is_unknown or name not in names or known is None or not known[1].own:
        return error
    if name in SETTINGS:
        return KafkaError(
            error.code, "this cluster cannot pause share groups; sharecore brokers and tiers can"
        )
    return KafkaError(
        error.code, f"this cluster has no group setting {name}; sharecore brokers and tiers have it"
    )
