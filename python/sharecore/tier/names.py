"""Upstream names of a tier's topics, group and transactional ids."""

from __future__ import annotations


def settings_topic(state_topic: str) -> str:
    """Return the settings topic."""
    return f"{state_topic}.settings"


def group_of(state_topic: str) -> str:
    """Return the group of the tier's nodes."""
    return f"sharecore-{state_topic}"


def transactional_id(state_topic: str, slot: int) -> str:
    """Return the transactional id of a slot's writer."""
    return f"sharecore-{state_topic}-{slot}"
