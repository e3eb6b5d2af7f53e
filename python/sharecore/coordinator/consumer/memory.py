"""Memory accounting for a consumer-group member: in its group and in all groups."""

from __future__ import annotations

from sharecore.coordinator.consumer.group import ConsumerGroup
from sharecore.coordinator.consumer.heartbeat import Heartbeat
from sharecore.coordinator.memory_limit import check_group_bytes, size_of
from sharecore.coordinator.registry import MEMBER_BYTES, PARTITION_BYTES, GroupRegistry
from sharecore.coordinator.topics import TopicView, existing


def reserve_memory(
    registry: GroupRegistry, topics: TopicView, request: Heartbeat, group_bytes_max: int
) -> None:
    """Allocate memory for a member's subscription, and for the member if it is new.

    Args:
        group_bytes_max: limit on the group's subscriptions.

    Raises:
        KafkaError: GROUP_MAX_SIZE_REACHED: the group's subscriptions or all groups would exceed a limit.
    """
    if request.subscribed_names is None and not request.subscribed_regex:
        return
    found = registry.get(request.group_id)
    group = found if isinstance(found, ConsumerGroup) else None
    member = None if group is None else group.members.get(request.member_id)
    added = size_of(request.subscribed_names or ())
    others = 0 if group is None else group.bytes_without(request.member_id, request.subscribed_regex)
    check_group_bytes(request.group_id, added + others, group_bytes_max)
    if member is not None:
        added -= member.names_bytes
    else:
        added += MEMBER_BYTES + len(request.client_id)
        if group is None or group.is_empty:
            wanted = existing(topics, request.subscribed_names or ())
            added += sum(topic.partitions for topic in wanted) * PARTITION_BYTES
    registry.reserve_memory(request.group_id, added)
