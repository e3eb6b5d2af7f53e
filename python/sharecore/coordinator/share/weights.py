"""Weights divide share fetches among topics, so members need partitions of each topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from sharecore.coordinator.share.group import ShareGroup
from sharecore.coordinator.topics import TopicView, existing

_ASSIGNED_MAX = 100_000
"""Topics of all members up to which weights change the assignment: more would stop the broker for seconds."""


def weights_apply(group: ShareGroup, weights: Collection[str]) -> bool:
    """Return whether members get partitions of each of their topics: with weights, up to a number of them."""
    return bool(weights) and sum(len(member.subscribed) for member in group.members.values()) <= _ASSIGNED_MAX


def weights_changed(group: ShareGroup, topics: TopicView, *, is_weighted: bool) -> bool:
    """Note whether topics have weights; return whether the target assignment was computed otherwise."""
    before, group.is_weighted = group.is_weighted, is_weighted
    if before is None:
        return not _has_each_topic(group, topics) if is_weighted else _is_shared_widely(group)
    return before != is_weighted


def _has_each_topic(group: ShareGroup, topics: TopicView) -> bool:
    """Return whether every member has partitions of each of its topics, as far as any are assigned."""
    assigned = {topic_id for partitions in group.target.values() for topic_id in partitions}
    return all(
        topic.topic_id not in assigned or topic.topic_id in group.target.get(member.member_id, {})
        for member in group.members.values()
        for topic in existing(topics, member.subscribed)
    )


def _is_shared_widely(group: ShareGroup) -> bool:
    """Return whether a partition has more members than it would have without weights."""
    if group.epoch > group.assignment_epoch:
        return False  # a new assignment is due anyway
    if len({member.subscribed for member in group.members.values()}) > 1:
        return False  # then weights do not change the assignment
    sharing = Counter(
        (topic_id, index)
        for partitions in group.target.values()
        for topic_id, some in partitions.items()
        for index in some
    )
    return bool(sharing) and max(sharing.values()) > -(-len(group.members) // len(sharing))
