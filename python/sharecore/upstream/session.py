"""Client side of a fetch session (KIP-227): a request contains only changes. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Unpack

from sharecore.upstream.fetched import FetchOptions, Wanted, fetch_message

_EPOCH_MAX = 2**31 - 1

Place = tuple[str, int]
"""Topic and partition."""


class FetchSession:
    """Partitions of a broker's session, with their last requests."""

    def __init__(self) -> None:
        self._id = self._epoch = 0
        self._known: dict[Place, Wanted] = {}
        self._next: dict[Place, Wanted] = {}

    def message(
        self, wanted: Iterable[Wanted], *, max_wait_ms: int, **how: Unpack[FetchOptions]
    ) -> dict[str, object]:
        """Return the next request of the session.

        Args:
            wanted: all partitions to fetch.
            how: more arguments of `fetch_message`.
        """
        self._next = {(each.topic, each.partition): each for each in wanted}
        if not self._epoch:
            return fetch_message(self._next.values(), session=(0, 0), max_wait_ms=max_wait_ms, **how)
        changed = [each for place, each in self._next.items() if self._known.get(place) != each]
        gone = [each for place, each in self._known.items() if not _same_topic(self._next.get(place), each)]
        return fetch_message(
            changed,
            session=(self._id, self._epoch),
            max_wait_ms=max_wait_ms,
            forgotten=[(each.topic, each.topic_id, each.partition) for each in gone],
            **how,
        )

    @property
    def wanted(self) -> Mapping[Place, Wanted]:
        """All partitions of the last request, whether it contained them or not."""
        return self._next

    def answered(self, session_id: int) -> None:
        """Confirm the request; the id is 0 if the broker has no capacity for the session."""
        self._known = self._next
        if session_id:
            self._id, self._epoch = session_id, 1 if self._epoch == _EPOCH_MAX else self._epoch + 1
        else:
            self.reset()

    def reset(self) -> None:
        """Start a new session with the next request, as the broker does not know this one."""
        self._id = self._epoch = 0
        self._known = {}


def _same_topic(wanted: Wanted | None, known: Wanted) -> bool:
    return wanted is not None and wanted.topic_id == known.topic_id
