"""Limit on the subscriptions of a group's members, as they cost memory and work for each change."""

from __future__ import annotations

from collections.abc import Iterable

from sharecore.errors import ErrorCode, KafkaError

GROUP_BYTES_MAX = 8 << 20
_NAME_BYTES = 256
"""Approximate overhead of a name."""


def size_of(names: Iterable[str]) -> int:
    """Return the approximate memory size of names."""
    return sum(_NAME_BYTES + len(name) for name in names)


def check_room(group_id: str, bytes_: int, bytes_max: int) -> None:
    """Raise KafkaError(GROUP_MAX_SIZE_REACHED) if a group's subscriptions exceed the limit.

    Args:
        group_id: the group's id.
        bytes_: size for all members, including the requesting one.
        bytes_max: `sharecore.group.bytes.max`.
    """
    if bytes_ > bytes_max:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The subscriptions of group {group_id} would take {bytes_} bytes; {bytes_max} are allowed.",
        )
