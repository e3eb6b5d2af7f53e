"""How much the members of a group may say about themselves: memory, and work for each of their changes."""

from __future__ import annotations

from collections.abc import Iterable

from sharecore.errors import ErrorCode, KafkaError

GROUP_BYTES_MAX = 8 << 20
_NAME_BYTES = 256
"""About what a name takes besides its characters."""


def size_of(names: Iterable[str]) -> int:
    """Return about how many bytes of memory names take."""
    return sum(_NAME_BYTES + len(name) for name in names)


def check_room(group_id: str, bytes_: int, bytes_max: int) -> None:
    """Raise KafkaError(GROUP_MAX_SIZE_REACHED) if a group's members say more than they may.

    Args:
        group_id: of the group.
        bytes_: of all members, once the one that asks is among them.
        bytes_max: `sharecore.group.bytes.max`.
    """
    if bytes_ > bytes_max:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The subscriptions of group {group_id} would take {bytes_} bytes; {bytes_max} are allowed.",
        )
