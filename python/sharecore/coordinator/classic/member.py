"""One member of a classic group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sharecore.errors import ErrorCode
from sharecore.waiting import Deadline


class JoinResult(NamedTuple):
    """Answer to JoinGroup; only the leader gets `members` (id, instance id, metadata)."""

    error: ErrorCode = ErrorCode.NONE
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: Sequence[tuple[str, str | None, bytes]] = ()


class SyncResult(NamedTuple):
    """Answer to SyncGroup."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


JoinDone = Callable[[JoinResult], None]
SyncDone = Callable[[SyncResult], None]
Protocols = Sequence[tuple[str, bytes]]
"""Assignment protocols in order of preference, each with the member's metadata."""


@dataclass(slots=True, eq=False)
class ClassicMember:
    """A member and its pending requests.

    Args:
        is_new: whether no rebalance has ended since the member joined.
        assignment: the assignment from the leader.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    is_new: bool = False
    assignment: bytes = b""
    session: Deadline = field(init=False)
    join_done: JoinDone | None = None
    sync_done: SyncDone | None = None

    @property
    def protocol_names(self) -> list[str]:
        """The member's protocols, best first."""
        return [name for name, _ in self.protocols]

    def metadata(self, protocol: str | None) -> bytes:
        """Return the member's metadata for a protocol."""
        return next((data for name, data in self.protocols if name == protocol), b"")

    def vote(self, candidates: Collection[str]) -> str:
        """Return the candidate preferred by the member."""
        return next(name for name in self.protocol_names if name in candidates)

    def speaks_as(self, protocols: Protocols) -> bool:
        """Return whether the protocols are unchanged."""
        return [*self.protocols] == [*protocols]

    def finish_join(self, result: JoinResult) -> None:
        """Answer the pending join, if any."""
        done, self.join_done = self.join_done, None
        if done is not None:
            done(result)

    def finish_sync(self, result: SyncResult) -> None:
        """Answer the pending sync, if any."""
        done, self.sync_done = self.sync_done, None
        if done is not None:
            done(result)
