"""Groups of the consumer protocol, with assignment by the broker (KIP-848)."""

from __future__ import annotations

from sharecore.coordinator.consumer.coordinator import ConsumerCoordinator
from sharecore.coordinator.consumer.group import ConsumerGroup, by_topic
from sharecore.coordinator.consumer.heartbeat import Heartbeat, HeartbeatAnswer
from sharecore.coordinator.consumer.interfaces import ConsumerLimits, SubscribableTopics
from sharecore.coordinator.consumer.member import ConsumerMember, MemberState

__all__ = [
    "ConsumerCoordinator",
    "ConsumerGroup",
    "ConsumerLimits",
    "ConsumerMember",
    "Heartbeat",
    "HeartbeatAnswer",
    "MemberState",
    "SubscribableTopics",
    "by_topic",
]
