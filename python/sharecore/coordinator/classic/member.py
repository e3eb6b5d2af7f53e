"""One member of a classic group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sharecore.errors import ErrorCode
from sharecore.waiting import Deadline


class JoinResult(NamedTuple):
    """Answer to JoinGroup; `members` (id, instance id, metadata) goes to the leader alone."""

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
"""Names of assignment protocols in the order of preference, each with the member's metadata for it."""


@dataclass(slots=True, eq=False)
class ClassicMember:
    """A member and what it waits for.

    Args:
        is_new: it has joined and no rebalance has ended since.
        assignment: what the leader gave it.
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
        """The protocols that the member speaks, best first."""
        return [name for name, _ in self.protocols]

    def metadata(self, protocol: str | None) -> bytes:
        """Return the member's metadata for a protocol."""
        return next((data for name, data in self.protocols if name == protocol), b"")

    def vote(self, candidates: Collection[str]) -> str:
        """Return the candidate that the member prefers."""
        return next(name for name in self.protocol_names if name in candidates)

    def speaks_as(self, protocols: Protocols) -> bool:
        """Whether it has said the same about its protocols before."""
        return [*self.protocols] == [*protocols]

    def finish_join(self, result: JoinResult) -> None:
        """Answers the join that waits, if there is one."""
        done, self.join_done = self.join_done, None
        if done is not None:
            done(result)

    def finish_sync(self, result: SyncResult) -> None:
        """Answers the sync that waits, if there is one."""
        done, self.sync_done = self.sync_done, None
        if done is not None:
            done(result)
