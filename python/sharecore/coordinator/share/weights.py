"""Weights divide share fetches among topics, so members need partitions of each topic."""

from __future__ import annotations

from sharecore.coordinator.share.group import ShareGroup
from sharecore.coordinator.topics import TopicView, existing


def weights_changed(group: ShareGroup, topics: TopicView, *, is_weighted: bool) -> bool:
    """Note whether topics have weights; return whether the target assignment was computed otherwise."""
    before, group.is_weighted = group.is_weighted, is_weighted
    if before is None:
        return is_weighted and not _has_each_topic(group, topics)
    return before != is_weighted


def _has_each_topic(group: ShareGroup, topics: TopicView) -> bool:
    """Return whether every member has partitions of each of its topics, as far as any are assigned."""
    assigned = {topic_id for partitions in group.target.values() for topic_id in partitions}
    return all(
        topic.topic_id not in assigned or topic.topic_id in group.target.get(member.member_id, {})
        for member in group.members.values()
        for topic in existing(topics, member.subscribed)
    )
