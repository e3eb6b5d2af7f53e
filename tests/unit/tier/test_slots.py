"""Slots: the same on every node and forever, as they locate the state."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from sharecore.coordinator_log.routing import partition_for
from sharecore.tier.slots import slot_of_group, slot_of_partition

TOPIC = UUID("6f1a3c1e-4d0c-5a86-9d1b-0a9c5f0b7d32")


def test_slots_are_what_they_always_were() -> None:
    assert [slot_of_partition(TOPIC, index, 64) for index in range(3)] == [18, 19, 20]
    assert slot_of_group("a group", 64) == partition_for("a group", 64) == 0


def test_partitions_of_a_topic_lie_in_slots_one_behind_the_other() -> None:
    slots = Counter(slot_of_partition(TOPIC, index, 64) for index in range(128))
    assert set(slots.values()) == {2}
    assert len(slots) == 64


def test_small_topics_spread() -> None:
    slots = Counter(slot_of_partition(UUID(int=number << 64), 0, 16) for number in range(1_600))
    assert len(slots) == 16
    assert max(slots.values()) < 150
