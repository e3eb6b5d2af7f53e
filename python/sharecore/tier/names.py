"""What the topics, the group and the transactional ids of a tier are called upstream."""

from __future__ import annotations


def settings_topic(state_topic: str) -> str:
    """Return the topic that keeps settings."""
    return f"{state_topic}.settings"


def group_of(state_topic: str) -> str:
    """Return the group in which nodes find each other."""
    return f"sharecore-{state_topic}"


def transactional_id(state_topic: str, slot: int) -> str:
    """Return the transactional id of whoever writes a slot."""
    return f"sharecore-{state_topic}-{slot}"
