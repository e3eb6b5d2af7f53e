"""Every group of the broker by its name: one name has one type at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from enum import Enum
from typing import Protocol, TypeVar

from sharecore.coordinator.memory_room import MemoryRoom
from sharecore.errors import ErrorCode, KafkaError

GROUPS_BYTES_MAX = 256 << 20
GROUP_BYTES = 1500
"""About what a group takes besides its members."""
MEMBER_BYTES = 2500
"""About what a member of a group takes besides what it says about itself."""
PARTITION_BYTES = 250
"""About what a partition takes that a member is assigned."""


class GroupType(Enum):
    """Type of a group; the values are Kafka's names."""

    CLASSIC = "Classic"
    CONSUMER = "Consumer"
    SHARE = "Share"


class Group(Protocol):
    """What all types of groups have."""

    group_id: str
    type: GroupType
    protocol_type: str
    """`consumer`, `share`, or what the members of a classic group say; empty for one that only keeps
    offsets.
    """

    @property
    def state_name(self) -> str:
        """State as Kafka's tools print it: Empty, Stable, Assigning, PreparingRebalance, ..."""

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""

    @property
    def memory_bytes(self) -> int:
        """About how much memory the group takes with its members."""


AnyGroup = TypeVar("AnyGroup", bound=Group)


class GroupRegistry:
    """The groups of all types.

    Args:
        bytes_max: memory that they may take with their members (`sharecore.groups.bytes.max`).
        monotonic_ms: the time, for `MemoryRoom`.
    """

    def __init__(
        self, bytes_max: int = GROUPS_BYTES_MAX, monotonic_ms: Callable[[], int] | None = None
    ) -> None:
        self._groups: dict[str, Group] = {}
        self._room = MemoryRoom(
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
        """Return the group of that name, whatever its type."""
        return self._groups.get(group_id)

    def find(self, group_id: str, kind: type[AnyGroup]) -> AnyGroup | None:
        """Return the group of that name when it is a `kind`; None when there is no group of that name.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND when the name belongs to a group of another type.
        """
        group = self._groups.get(group_id)
        if group is None or isinstance(group, kind):
            return group
        wanted = kind.type.value.lower()
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {wanted} group.")

    def take_room(self, group_id: str, bytes_: int) -> None:
        """Raise KafkaError(GROUP_MAX_SIZE_REACHED) if there is no room for what a client adds to a group.

        Args:
            group_id: of the group, which counts as well if it does not exist.
            bytes_: about how much memory the addition takes.
        """
        if group_id not in self._groups:
            bytes_ += GROUP_BYTES + len(group_id)
        if bytes_ > 0:
            self._room.take(bytes_)

    def add(self, group: Group) -> None:
        """Enters a group, in the place of the one that had its name."""
        self._groups[group.group_id] = group

    def remove(self, group: Group) -> None:
        """Take a group out, unless its name belongs to another by now."""
        if self._groups.get(group.group_id) is group:
            del self._groups[group.group_id]

    def select(self, states: Collection[str] = (), types: Collection[str] = ()) -> list[Group]:
        """Return groups in one of the states and of one of the types, compared without case; an empty filter
        takes all (ListGroups).
        """
        wanted_states = {state.lower() for state in states}
        wanted_types = {kind.lower() for kind in types}
        return [
            group
            for group in self._groups.values()
            if (not wanted_types or group.type.value.lower() in wanted_types)
            and (not wanted_states or group.state_name.lower() in wanted_states)
        ]
