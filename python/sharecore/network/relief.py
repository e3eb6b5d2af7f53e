"""Memory relief: close connections that hold memory needlessly when it runs short."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sharecore._core import AnswerBudget, MemoryBudget
from sharecore.network.connection import Connection

log = logging.getLogger("sharecore.network")

_LOOK_S = 0.05
_FINISH_MS = 1000
"""A request that completes within this time is not closed."""
_READ_MS = 5000
"""A client that reads its answer within this time is not closed."""
_ANYBODY = ""
"""Stands for any owner: no owner has this name."""
_REQUESTS, _ANSWERS = "queued.max.request.bytes", "sharecore.max.unread.bytes"
_PARKED_MS = 1000
"""Maximum wait of a large request for its answer while others wait for its memory."""


class _Seen(NamedTuple):
    at_ms: int
    done_bytes: int


class Relief:
    """Close stalled connections while others wait for their memory.

    These are connections with a stalled or very slow request, with a request that waits long for its answer,
    or with unread answers. The largest go first, and no more than needed. Without a shortage no connection is
    closed, however slow.

    Args:
        budgets: memory for requests.
        answers: memory for answers.
        connections: all connections.
        monotonic_ms: the time.
        stalled_ms: time after which a request is considered stalled.
        unread_ms: time after which an answer is considered unread.
    """

    def __init__(
        self,
        budgets: Sequence[MemoryBudget],
        answers: AnswerBudget,
        connections: Callable[[], Collection[Connection]],
        monotonic_ms: Callable[[], int],
        *,
        stalled_ms: int,
        unread_ms: int,
    ) -> None:
        self._budgets = budgets
        self._answers = answers
        self._connections = connections
        self._monotonic_ms = monotonic_ms
        self._stalled_ms, self._unread_ms = stalled_ms, unread_ms
        self._timer: asyncio.TimerHandle | None = None
        self._requests: dict[Connection, _Seen] = {}
        self._readers: dict[Connection, _Seen] = {}

    def look(self) -> None:
        """Check periodically while a connection waits for memory."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def stop(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        wanted = [each for budget in self._budgets for each in budget.wanted()]
        if wanted:
            self._relieve_requests(wanted)
        else:
            self._requests.clear()
        if self._answers.is_wanted:
            self._relieve_answers()
        else:
            self._readers.clear()
        if wanted or self._answers.is_wanted:
            self.look()

    def _relieve_requests(self, wanted: Sequence[tuple[str, int, bool]]) -> None:
        now = self._monotonic_ms()
        slow: list[tuple[int, Connection]] = []
        seen: dict[Connection, _Seen] = {}
        for connection in self._connections():
            partial = connection.partial
            if partial is not None:
                done, missing = partial
                seen[connection] = before = self._requests.get(connection, _Seen(now, done))
                if now - before.at_ms >= self._stalled_ms:
                    if missing * (now - before.at_ms) > (done - before.done_bytes) * _FINISH_MS:
                        slow.append((done + missing, connection))
                    else:
                        seen[connection] = _Seen(now, done)
            elif (waits := connection.waits_since) is not None:
                since_ms, is_parked, size = waits
                if not is_parked and now - since_ms >= _PARKED_MS:
                    slow.append((size, connection))
        self._requests = seen
        needs: Counter[str] = Counter()
        for owner, size, for_own in wanted:
            needs[owner if for_own else _ANYBODY] += size
        _close(slow, needs, "its request of %d bytes has stalled while others wait for memory", _REQUESTS)

    def _relieve_answers(self) -> None:
        now = self._monotonic_ms()
        slow: list[tuple[int, Connection]] = []
        seen: dict[Connection, _Seen] = {}
        for connection in list(self._connections()):
            if not connection.unread_bytes:
                continue
            connection._recount()
            unread = connection.unread_bytes
            seen[connection] = before = self._readers.get(connection, _Seen(now, unread))
            if now - before.at_ms >= self._unread_ms:
                if unread * (now - before.at_ms) > (before.done_bytes - unread) * _READ_MS:
                    slow.append((unread, connection))
                else:
                    seen[connection] = _Seen(now, unread)
        self._readers = seen
        self._answers._wake()
        # the next check shows whether that was enough
        needs = Counter(owner if for_own else _ANYBODY for owner, for_own in self._answers.wanted())
        _close(slow, needs, "it does not read %d bytes of answers while others wait for memory", _ANSWERS)


def _close(slow: list[tuple[int, Connection]], needs: Counter[str], why: str, setting: str) -> None:
    """Close the largest connections until the waiting ones have enough memory.

    Args:
        slow: memory of each connection.
        needs: memory needed from each owner, and from any owner.
        why: the reason, for the log.
        setting: the setting of the limit.
    """
    for size, connection in sorted(slow, key=lambda each: each[0], reverse=True):
        owner = connection.owner
        if needs[owner] > 0 or needs[_ANYBODY] > 0:
            needs[owner] -= size
            needs[_ANYBODY] -= size
            log.warning("closing %s: " + why + " (%s)", connection, size, setting)
            connection.abort()
