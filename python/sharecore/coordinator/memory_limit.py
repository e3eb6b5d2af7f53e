"""Memory limit for state that clients create in a coordinator and leave behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sharecore.errors import ErrorCode, KafkaError

_COUNTED_AT_MOST_EVERY_MS = 1000
_TAKEN_WITHOUT_COUNT = 1000


class MemoryLimit:
    """Refuse allocations beyond a limit.

    Allocations are summed up. Releases are noticed only by a recount, which happens when the limit seems
    reached, but at most once a second.

    Args:
        setting: name of the limit's setting, for the error.
        bytes_max: the limit.
        count: returns the bytes in use.
        code: the error code.
        monotonic_ms: the time; without it every check near the limit recounts.
        grows: whether state may grow beyond its allocation, as groups do by assignments. It is then recounted
            periodically too.
    """

    def __init__(
        self,
        setting: str,
        bytes_max: int,
        count: Callable[[], int],
        code: ErrorCode,
        monotonic_ms: Callable[[], int] | None = None,
        *,
        grows: bool = False,
    ) -> None:
        self._setting = setting
        self._bytes_max = bytes_max
        self._count = count
        self._code = code
        self._monotonic_ms = monotonic_ms
        self._bytes = 0
        self._is_counted = False
        self._takes = 0
        """Allocations since the last recount."""
        self._counted_ms: int | None = None
        self._takes_max = _TAKEN_WITHOUT_COUNT if grows else None

    def take(self, bytes_: int) -> None:
        """Raise KafkaError if an allocation would exceed the limit."""
        if self._must_count() or (self._bytes + bytes_ > self._bytes_max and self._may_count()):
            self._bytes = self._count()
            self._is_counted = True
            self._takes = 0
        if self._bytes + bytes_ > self._bytes_max:
            raise KafkaError(
                self._code,
                f"{self._setting}={self._bytes_max} leaves no room: {self._bytes} bytes are in use, "
                f"{bytes_} more were asked for. Delete what is not used, or raise the setting.",
            )
        self._bytes += bytes_
        self._takes += 1

    def _must_count(self) -> bool:
        return not self._is_counted or (self._takes_max is not None and self._takes >= self._takes_max)

    def _may_count(self) -> bool:
        if self._monotonic_ms is None:
            return True
        now_ms = self._monotonic_ms()
        if self._counted_ms is not None and now_ms - self._counted_ms < _COUNTED_AT_MOST_EVERY_MS:
            return False
        self._counted_ms = now_ms
        return True


GROUP_BYTES_MAX = 8 << 20
_NAME_BYTES = 256
"""Approximate overhead of a name."""


def size_of(names: Iterable[str]) -> int:
    """Return the approximate memory size of names."""
    return sum(_NAME_BYTES + len(name) for name in names)


def check_group_bytes(group_id: str, bytes_: int, bytes_max: int) -> None:
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
