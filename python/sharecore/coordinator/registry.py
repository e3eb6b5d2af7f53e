"""Registry of all groups by name: a name has one group type at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from enum import Enum
from typing import Protocol, TypeVar

from sharecore.coordinator.memory_limit import MemoryLimit
from sharecore.errors import ErrorCode, KafkaError

GROUPS_BYTES_MAX = 256 << 20
GROUP_BYTES = 1500
"""Approximate memory size of a group without members."""
MEMBER_BYTES = 2500
"""Approximate memory size of a member, without its variable-length fields."""
PARTITION_BYTES = 250
"""Approximate memory size of an assigned partition."""


class GroupType(Enum):
    """Type of a group; the values are Kafka's names."""

    CLASSIC = "Classic"
    CONSUMER = "Consumer"
    SHARE = "Share"


class Group(Protocol):
    """Common interface of all group types."""

    group_id: str
    type: GroupType
    protocol_type: str
    """`consumer`, `share`, or the protocol type of a classic group's members; empty for offsets only."""

    @property
    def state_name(self) -> str:
        """State as printed by Kafka's tools: Empty, Stable, Assigning, PreparingRebalance, ..."""

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""

    @property
    def memory_bytes(self) -> int:
        """Approximate memory size of the group and its members."""


AnyGroup = TypeVar("AnyGroup", bound=Group)


class GroupRegistry:
    """Groups of all types.

    Args:
        bytes_max: memory limit of groups and members (`sharecore.groups.bytes.max`).
        monotonic_ms: the time for `MemoryLimit`.
    """

    def __init__(
        self, bytes_max: int = GROUPS_BYTES_MAX, monotonic_ms: Callable[[], int] | None = None
    ) -> None:
        self._groups: dict[str, Group] = {}
        self._memory = MemoryLimit(
            "sharecore.groups.bytes.max",
            bytes_max,
            lambda: sum(group.memory_bytes for group in self._groups.values()),
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            monotonic_ms,
            grows=True,
        )

    def __iter__(self) -> Iterator[Group]:
        return iter(list(self._groups.values()))

    def __len__(self) -> int:
        return len(self._groups)

    def get(self, group_id: str) -> Group | None:
        """Return the group of that name, of any type."""
        return self._groups.get(group_id)

    def find(self, group_id: str, kind: type[AnyGroup]) -> AnyGroup | None:
        """Return the group of that name if it is a `kind`; None if the name is free.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND if the name belongs to a group of another type.
        """
        group = self._groups.get(group_id)
        if group is None or isinstance(group, kind):
            return group
        wanted = kind.type.value.lower()
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {wanted} group.")

    def reserve_memory(self, group_id: str, bytes_: int) -> None:
        """Raise KafkaError(GROUP_MAX_SIZE_REACHED) if an addition to a group exceeds the memory limit.

        Args:
            group_id: the group's id; a new group counts too.
            bytes_: approximate memory size of the addition.
        """
        if group_id not in self._groups:
            bytes_ += GROUP_BYTES + len(group_id)
        if bytes_ > 0:
            self._memory.take(bytes_)

    def add(self, group: Group) -> None:
        """Register a group, replacing any group of the same name."""
        self._groups[group.group_id] = group

    def remove(self, group: Group) -> None:
        """Unregister a group, unless its name belongs to another group by now."""
        if self._groups.get(group.group_id) is group:
            del self._groups[group.group_id]

    def select(self, states: Collection[str] = (), types: Collection[str] = ()) -> list[Group]:
        """Return groups of these states and types, ignoring case; an empty filter matches all."""
        wanted_states = {state.lower() for state in states}
        wanted_types = {kind.lower() for kind in types}
        return [
            group
            for group in self._groups.values()
            if (not wanted_types or group.type.value.lower() in wanted_types)
            and (not wanted_states or group.state_name.lower() in wanted_states)
        ]
