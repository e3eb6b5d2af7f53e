"""One name, one type."""

from __future__ import annotations

import pytest

from sharecore.coordinator.classic import ClassicGroup
from sharecore.coordinator.registry import GroupRegistry, GroupType
from sharecore.errors import ErrorCode, KafkaError


class OtherGroup:
    type = GroupType.SHARE
    protocol_type = "share"
    state_name = "Stable"
    is_empty = False
    memory_bytes = 0

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id


def test_a_name_of_another_type_is_refused_by_kafkas_error() -> None:
    registry = GroupRegistry()
    registry.add(OtherGroup("g"))
    assert registry.find("h", ClassicGroup) is None
    with pytest.raises(KafkaError, match="Group g is not a classic group") as refused:
        registry.find("g", ClassicGroup)
    assert refused.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_selection_by_state_and_type_ignores_case() -> None:
    registry = GroupRegistry()
    registry.add(OtherGroup("s"))
    registry.add(ClassicGroup("c", 0))
    assert [group.group_id for group in registry.select()] == ["s", "c"]
    assert [group.group_id for group in registry.select(types=["SHARE"])] == ["s"]
    assert [group.group_id for group in registry.select(states=["empty"])] == ["c"]
    assert registry.select(states=["Empty"], types=["share"]) == []


def test_a_group_that_lost_its_name_does_not_take_it_away() -> None:
    registry = GroupRegistry()
    old, new = ClassicGroup("g", 0), ClassicGroup("g", 1)
    registry.add(old)
    registry.add(new)
    registry.remove(old)
    assert registry.get("g") is new
