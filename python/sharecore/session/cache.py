"""Share sessions of the broker, limited in number."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from operator import attrgetter
from uuid import UUID

from sharecore._core import Sessions, ShareSession
from sharecore.errors import ErrorCode, KafkaError

SharePartitionId = tuple[UUID, int]
"""Topic id and partition index."""

_MEMBER_ID_MAX = 36
_partition_count = attrgetter("partition_count")
_PARTITION_BYTES = 1280
"""Approximate memory size of a session's partition."""


class ShareSessionCache(Sessions):
    """Share sessions by group id and member id (KIP-932, "Share sessions").

    Args:
        max_sessions: maximum number of open sessions (`group.share.max.share.sessions`).
        on_close: called with each session that ends, to release the records of its member.
        partitions_max: maximum partitions of a session (`sharecore.share.session.partitions.max`).
        bytes_max: approximate memory limit of all partitions (`sharecore.share.sessions.bytes.max`).
    """

    def __init__(
        self,
        max_sessions: int,
        on_close: Callable[[ShareSession], None],
        *,
        partitions_max: int = 20_000,
        bytes_max: int = 1 << 26,
    ) -> None:
        self.max_sessions = max_sessions
        self._partitions_max = partitions_max
        self._bytes_max = bytes_max
        self._on_close = on_close
        self._by_connection: dict[Hashable, dict[tuple[str, str], None]] = {}
        self._left: set[ShareSession] = set()

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[ShareSession]:
        return iter(list(self._sessions.values()))

    def open(self, group_id: str | None, member_id: str | None, connection: Hashable) -> ShareSession:
        """Return a new session for a request with epoch 0.

        It replaces the member's previous session: acquired records stay acquired, and waiting fetches of the
        old session are answered. The session of a member that has left its group ends.

        Raises:
            KafkaError: INVALID_REQUEST for an unusable group or member id; SHARE_SESSION_LIMIT_REACHED.
        """
        group, member = _identity(group_id, member_id)
        before = self._sessions.get((group, member))
        if before in self._left:
            self.close(before)
            before = None
        if before is None and len(self._sessions) >= self.max_sessions:
            raise KafkaError(
                ErrorCode.SHARE_SESSION_LIMIT_REACHED,
                f"the broker holds {self.max_sessions} share sessions already",
            )
        session = ShareSession(group, member, connection)
        if before is not None:
            self._unlink(before)
            before.close()
            session.replace(before)
        self._sessions[session.key] = session
        self._by_connection.setdefault(connection, {})[session.key] = None
        return session

    def admit(self, session: ShareSession, count: int) -> None:
        """Reserve capacity for more partitions of a session.

        If it is short, a session twice as large is ended, so that large sessions do not keep small ones out.

        Raises:
            KafkaError: SHARE_SESSION_LIMIT_REACHED.
        """
        size = session.partition_count + count
        self.check_size(size)
        held = sum(map(_partition_count, self._sessions.values()))
        while (held + count) * _PARTITION_BYTES > self._bytes_max:
            largest = max(self._sessions.values(), key=_partition_count)
            if largest.partition_count < 2 * size:
                raise KafkaError(
                    ErrorCode.SHARE_SESSION_LIMIT_REACHED,
                    f"the broker's share sessions have {held} partitions already",
                )
            held -= largest.partition_count
            self.close(largest)

    def check_size(self, partitions: int) -> None:
        """Raise KafkaError(SHARE_SESSION_LIMIT_REACHED) if a session would have too many partitions."""
        if partitions > self._partitions_max:
            raise KafkaError(
                ErrorCode.SHARE_SESSION_LIMIT_REACHED,
                f"a share session has {self._partitions_max} partitions at most",
            )

    def check_acknowledged(self, partitions: int) -> None:
        """Raise KafkaError(INVALID_REQUEST) if a request acknowledges too many partitions."""
        if partitions > self._partitions_max:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"a request acknowledges records of {self._partitions_max} partitions at most",
            )

    def has(self, group_id: str, member_id: str) -> bool:
        """Return whether a member has a session, and has not left its group."""
        session = self._sessions.get((group_id, member_id))
        return session is not None and session not in self._left

    def close(self, session: ShareSession) -> None:
        """End a session, unless it has ended."""
        if self._sessions.get(session.key) is not session:
            return
        del self._sessions[session.key]
        self._unlink(session)
        self._ended(session)

    def close_member(self, group_id: str, member_id: str) -> None:
        """End the session of a member whose group session expired, if it has one."""
        session = self._sessions.get((group_id, member_id))
        if session is not None:
            self.close(session)

    def leave(self, group_id: str, member_id: str) -> ShareSession | None:
        """Answer the fetches of a member that has left its group; return its session, if any.

        The session stays open: the member's last acknowledgement may still arrive over another connection.
        """
        session = self._sessions.get((group_id, member_id))
        if session is not None:
            self._left.add(session)
            for fetch in list(session.fetches):
                fetch.abandon()
        return session

    def rejoin(self, group_id: str, member_id: str) -> ShareSession | None:
        """Keep the session of a member that has left and rejoined; return it, if any."""
        session = self._sessions.get((group_id, member_id))
        if session is not None:
            self._left.discard(session)
        return session

    def connection_lost(self, connection: Hashable) -> None:
        """End every session opened over this connection."""
        for key in self._by_connection.pop(connection, {}):
            self._ended(self._sessions.pop(key))

    def _check_identity(self, group_id: str | None, member_id: str | None) -> None:
        _identity(group_id, member_id)

    def _ended(self, session: ShareSession) -> None:
        self._left.discard(session)
        # a waiting fetch must not acquire again what is released here
        session.close()
        self._on_close(session)

    def _unlink(self, session: ShareSession) -> None:
        keys = self._by_connection.get(session.connection)
        if keys is not None:
            keys.pop(session.key, None)
            if not keys:
                del self._by_connection[session.connection]


def _identity(group_id: str | None, member_id: str | None) -> tuple[str, str]:
    if group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "there is no group id")
    if not member_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the member id is empty")
    if len(member_id) > _MEMBER_ID_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"the member id is longer than {_MEMBER_ID_MAX} characters"
        )
    return group_id, member_id
