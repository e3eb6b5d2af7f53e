"""A member of a classic group: joins, gets an assignment, and sends heartbeats.

Every Kafka has the classic protocol, and it lets members use their own assignor: the leader computes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from sharecore.client.errors import AuthenticationFailed, Disconnected
from sharecore.client.wire.cluster import Backoff
from sharecore.client.wire.connection import Connection
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey, calls
from sharecore.protocol.calls import Call
from sharecore.upstream.asking import answer_unless
from sharecore.upstream.cluster import GROUP, PATIENCE_S, Upstream
from sharecore.upstream.errors import NOT_ALLOWED, OUT_OF_DATE, refusal
from sharecore.upstream.trouble import Trouble

if TYPE_CHECKING:
    from sharecore.protocol.received import JoinGroupResponse

logger = logging.getLogger(__name__)

Response = TypeVar("Response")

SESSION_MS = 10_000
REBALANCE_MS = 30_000
HEARTBEAT_MS = 3_000
_NO_GENERATION = -1
_REPLACED = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}
_REFUSED = {
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.INVALID_SESSION_TIMEOUT,
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.SASL_AUTHENTICATION_FAILED,
}
"""Errors that an operator must correct, perhaps soon."""
_REFUSED_MS, _REFUSED_MAX_MS = 1_000, 10_000
"""Back-off of joins while the member is refused."""


class GroupMember(NamedTuple):
    """A member as seen by the leader."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class Listener(Protocol):
    """Receiver of group changes. Called on the event loop, and must not block."""

    def metadata(self) -> bytes:
        """Return this member's metadata for the leader; called at each join."""

    def assign(self, generation: int, members: list[GroupMember]) -> dict[str, bytes]:
        """Return the assignment of each member by member id; called on the leader only."""

    def assigned(self, generation: int, assignment: bytes) -> None:
        """Apply this member's assignment."""

    def lost(self, error: KafkaError) -> None:
        """Release everything: the coordinator has removed this member, which joins again."""


class Membership:
    """One member of a classic group.

    Heartbeats have a separate connection: a join waits at the coordinator until all members have joined, and
    a member without heartbeats would have to consider itself removed. A heartbeat answered during a rebalance
    counts, but no longer than the coordinator waits for joins, measured from the last one before.

    A replaced coordinator that does not know it keeps answering heartbeats while its successor removes the
    member. So a heartbeat counts only once its coordinator has also written: the member commits an offset of
    this group, which needs all in-sync replicas, and these do not follow a replaced leader.

    No commit is accepted between the end of a join and the leader's assignment. If the leader fails just
    then, the places of all members would expire with its session. So a member that has waited for a third of
    a session joins again, as the coordinator accepts commits while it waits for joins.

    A refused member retries forever with increasing back-off. A member whose place was taken by another
    process with the same instance id waits until that process has left: otherwise they would replace each
    other in turn.

    Args:
        upstream: the cluster of the group.
        group_id: its name.
        listener: receives group changes.
        protocol_type, protocol: the group's purpose, and the version of metadata and assignments.
        instance_id: instance id of the static member; it may return within `session_ms`.
        session_ms: session timeout.
        rebalance_ms: rebalance timeout.
        heartbeat_ms: heartbeat interval.
        confirmed_by: an existing topic; commits to its first partition confirm heartbeats. The user needs
            Read on it. Without it, or without OffsetCommit in the cluster, heartbeats alone count.

    Attributes: member_id: empty until the coordinator has assigned one. generation: -1 outside of the group.
    leads: whether this member computes the assignment. lease_from_ms: monotonic send time of the last
    confirmed heartbeat: the member is not removed within `session_ms` of it. It ages while no coordinator can
    be reached, and is renewed if the next one knows this member. None outside of the group. error: why the
    member is refused; None if it is not. problem: the error of the last heartbeat or join; None after a
    success.
    """

    def __init__(
        self,
        upstream: Upstream,
        group_id: str,
        listener: Listener,
        *,
        protocol_type: str = "sharecore",
        protocol: str = "slots-v1",
        instance_id: str | None = None,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        heartbeat_ms: int = HEARTBEAT_MS,
        confirmed_by: str | None = None,
    ) -> None:
        self.member_id = ""
        self.generation = _NO_GENERATION
        self.leads = False
        self.lease_from_ms: int | None = None
        self.error: KafkaError | None = None
        self.problem: KafkaError | None = None
        self._upstream, self._group_id, self._listener = upstream, group_id, listener
        self._protocol_type, self._protocol = protocol_type, protocol
        self._instance_id = instance_id
        self._session_ms, self._rebalance_ms, self._heartbeat_ms = session_ms, rebalance_ms, heartbeat_ms
        self._confirmed_by = confirmed_by
        self._patience_ms = session_ms // 3
        self._stable_from_ms = 0
        self._place_from_ms = 0  # another process may have had this place until then
        self._lost_join_ms: int | None = None
        self._assigned_id = ""
        self._joining = False
        self._waiting: Connection | None = None
        self._beating: Connection | None = None
        self._coordinator = self._joins_at = self._doubted = -1
        self._rejoin = asyncio.Event()
        self._joined = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._refusal = Trouble(logger, f"this node is refused in group {group_id}", logging.ERROR)
        self._rights = Trouble(logger, f"no heartbeat counts in group {group_id}")

    def start(self) -> None:
        """Join, and stay a member."""
        loop = asyncio.get_running_loop()
        self._rejoin.set()
        for work, name in ((self._stay(), "group"), (self._beat(), "heartbeats")):
            self._tasks.append(loop.create_task(work, name=f"sharecore upstream {name}"))

    def rejoin(self) -> None:
        """Join again with a new report."""
        self._rejoin.set()

    async def close(self) -> None:
        """Stop without leaving: a static member may return within its session."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.lease_from_ms = None

    async def leave(self) -> None:
        """Leave the group at once, even as a static member.

        A static member does not leave within `session_ms` of taking its place: its session expires instead.
        A running process with the same instance id may have had the place. It trusts its last heartbeat
        until the next, and nobody else may get the place meanwhile.

        Raises:
            KafkaError: the coordinator cannot be reached; it removes the member when the session expires.
        """
        member_id = self.member_id
        await self.close()
        self.generation, self.member_id = _NO_GENERATION, ""
        if not member_id:
            return
        since_ms = self._upstream.clock.monotonic_ms() - self._place_from_ms
        if self._instance_id is not None and since_ms < self._session_ms:
            text = "member %s does not leave group %s %d ms after it joined; its session expires"
            logger.info(text, member_id, self._group_id, since_ms)
            return
        try:
            async with asyncio.timeout(self._session_ms / 1000):
                await self._upstream.leave_group(self._group_id, member_id, self._instance_id)
        except TimeoutError:
            text = f"the coordinator of group {self._group_id} did not answer"
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, text) from None

    # joining

    async def _stay(self) -> None:
        backoff, refused = self._upstream.backoff(), Backoff(_REFUSED_MS, _REFUSED_MAX_MS)
        while True:
            await self._rejoin.wait()
            self._rejoin.clear()
            pause = backoff
            try:
                if self._is_fenced:
                    await asyncio.sleep(refused.seconds())
                    if await self._is_taken():
                        self._rejoin.set()
                        continue
                self._joining = True
                await self._join()
                backoff.reset()
                if self._joined.is_set():
                    refused.reset()
                continue
            except KafkaError as error:
                self._doubted = self._joins_at
                if self._is_refusal(error):
                    pause = refused
                    self._refuse(error)
                else:
                    self._note(error)
                if error.code in _REPLACED:
                    self.member_id = ""
                    self._lose(error)
            except Exception as error:
                logger.exception("group %s cannot be joined", self._group_id)
                self._lose(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, repr(error)))
            finally:
                self._joining, self._waiting = False, None
            self._rejoin.set()
            await asyncio.sleep(pause.seconds())

    async def _join(self) -> None:
        """Join the group and apply the assignment."""
        self._joins_at = await self._find(self._doubted)
        connection = await self._upstream.connect(self._joins_at, f"group {self._group_id}")
        self._waiting = connection
        sent_ms = self._upstream.clock.monotonic_ms()
        answer = await self._ask_to_join(connection)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            # KIP-394: a member without an id gets one, and joins with it
            self.member_id = answer.member_id
            sent_ms = self._upstream.clock.monotonic_ms()
            answer = await self._ask_to_join(connection)
        if answer.error_code:
            raise refusal(answer.error_code, "to let a member join group", self._group_id, "Read")
        if answer.member_id != self.member_id:
            self._place_from_ms = self._upstream.clock.monotonic_ms()
        self.member_id, self.generation = answer.member_id, answer.generation_id
        self.leads = answer.leader == answer.member_id
        assignments: list[dict[str, object]] = []
        if self.leads and not getattr(answer, "skip_assignment", False):
            members = [GroupMember(*each) for each in answer.members]
            given = self._listener.assign(answer.generation_id, members)
            assignments = [{"member_id": key, "assignment": value} for key, value in given.items()]
        await self._sync(connection, sent_ms, assignments)

    async def _ask_to_join(self, connection: Connection) -> JoinGroupResponse:
        message = {
            "group_id": self._group_id,
            "session_timeout_ms": self._session_ms,
            "rebalance_timeout_ms": self._rebalance_ms,
            "member_id": self.member_id,
            "group_instance_id": self._instance_id,
            "protocol_type": self._protocol_type,
            "protocols": [{"name": self._protocol, "metadata": self._listener.metadata()}],
            "reason": None,
        }
        try:
            return await connection.request(calls.JOIN_GROUP, message, wait_ms=self._rebalance_ms)
        except Disconnected:
            self._lost_join_ms = self._upstream.clock.monotonic_ms()
            raise

    def _may_be_its_own(self) -> bool:
        """Return whether the owner of this static member's place may be itself under another member id.

        A slow coordinator may accept an abandoned join. And the next coordinator does not know a member id
        assigned before the assignment was written.
        """
        lost_ms = self._lost_join_ms
        late = lost_ms is not None and self._upstream.clock.monotonic_ms() - lost_ms < self._rebalance_ms
        return late or self.member_id != self._assigned_id

    async def _sync(self, connection: Connection, sent_ms: int, assignments: list[dict[str, object]]) -> None:
        message = {
            **self._member(),
            "protocol_type": self._protocol_type,
            "protocol_name": self._protocol,
            "assignments": assignments,
        }
        try:
            async with asyncio.timeout(self._patience_ms / 1000):
                answer = await connection.request(calls.SYNC_GROUP, message)
        except TimeoutError:
            text = f"the leader of group {self._group_id} sent no assignment"
            # later requests on the connection wait behind this one
            connection.close(text)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, text) from None
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._rejoin.set()
            return
        if answer.error_code:
            raise refusal(answer.error_code, "to give an assignment in group", self._group_id, "Read")
        self._joining = False
        # the coordinator started its timer when the join was complete, after it was requested; it wrote the
        # assignment before answering
        self._good(sent_ms, stable=True)
        self._assigned_id = self.member_id
        self._joined.set()
        self.error = self.problem = None
        self._refusal.is_over()
        logger.info("member %s of group %s, generation %d", self.member_id, self._group_id, self.generation)
        self._listener.assigned(self.generation, answer.assignment)

    def _member(self) -> dict[str, object]:
        return {
            "group_id": self._group_id,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self._instance_id,
        }

    # heartbeats

    async def _beat(self) -> None:
        backoff = self._upstream.backoff()
        while True:
            await self._joined.wait()
            pause = self._heartbeat_ms / 1000
            try:
                await self._heartbeat()
                backoff.reset()
            except KafkaError as error:
                if self._is_refusal(error):
                    self._refuse(error)
                    continue
                self._note(error)
                if error.code in _REPLACED:
                    self.member_id = ""
                    self._lose(error)
                    self._rejoin.set()
                self._doubted = self._coordinator
                pause = min(backoff.seconds(), pause)
                if isinstance(error, Disconnected) and self._waiting is not None:
                    # it would wait for this coordinator longer than a heartbeat
                    self._waiting.close("its coordinator is lost")
            await asyncio.sleep(pause)

    async def _heartbeat(self) -> None:
        purpose = f"heartbeat {self._group_id}"
        connection = self._beating
        if connection is None or connection.closed:
            self._coordinator = await self._find(self._doubted)
            connection = await self._upstream.connect(self._coordinator, purpose)
            self._beating = connection
        sent_ms = self._upstream.clock.monotonic_ms()
        member = self._member()
        answer = await self._while_it_coordinates(connection, calls.HEARTBEAT, member)
        if not self._joined.is_set() or self.member_id != member["member_id"]:
            # abandoned in the meantime: its state is outdated
            return
        crossed = self._joining or self.generation != member["generation_id"]
        code = answer.error_code
        if code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            if code and not crossed:
                self._rejoin.set()
            if await self._confirm(connection):
                self._doubted = -1
                self.problem = None
                self._rights.is_over()
                self._good(sent_ms, stable=not code and not crossed)
        elif code not in OUT_OF_DATE:
            if code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                self._beating = None
            raise refusal(code, "a heartbeat in group", self._group_id, "Read")
        elif not crossed:
            # a pending join reports its own result
            self._rejoin.set()
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
                self._lose(refusal(code, "a heartbeat in group", self._group_id))

    async def _confirm(self, connection: Connection) -> bool:
        """Make the coordinator write, as only the current one can.

        Raises:
            KafkaError: it could not; another broker may be able to.
        """
        if self._confirmed_by is None or not connection.offers(ApiKey.OFFSET_COMMIT):
            return True
        member = self._member()
        member["generation_id_or_member_epoch"] = member.pop("generation_id")
        partition = {"partition_index": 0, "committed_offset": 0, "committed_metadata": ""}
        topics = [{"name": self._confirmed_by, "partitions": [partition]}]
        commit = {**member, "topics": topics}
        answer = await self._while_it_coordinates(connection, calls.OFFSET_COMMIT, commit)
        if not self._joined.is_set() or self.member_id != member["member_id"]:
            return False
        code = answer.topics[0].partitions[0].error_code
        if code == ErrorCode.REBALANCE_IN_PROGRESS or code in OUT_OF_DATE:
            # no commit is accepted between generations; heartbeats show whether this is still a member
            return False
        if code:
            self._beating = None
            self._upstream.stale()
            raise refusal(code, f"a commit in group {self._group_id} for", self._confirmed_by, "Read")
        return True

    async def _while_it_coordinates(
        self, connection: Connection, call: Call[Response], message: Mapping[str, object]
    ) -> Response:
        """Return the coordinator's answer; if it is silent, check that it still coordinates the group.

        A replaced coordinator that does not know it waits for replicas that do not follow it.

        Raises:
            Disconnected: the connection is lost, or another broker coordinates the group.
        """
        before = self._coordinator
        answer = await answer_unless(
            connection.request(call, message), lambda: self._is_replaced(before), PATIENCE_S
        )
        if answer is None:
            text = f"another broker coordinates group {self._group_id}"
            connection.close(text)
            raise Disconnected(text)
        return answer

    async def _is_replaced(self, coordinator: int) -> bool:
        try:
            return await self._find(coordinator) != self._coordinator
        except KafkaError:
            return False

    async def _find(self, doubted: int) -> int:
        return await self._upstream.find_coordinator(GROUP, self._group_id, doubted)

    def _good(self, sent_ms: int, *, stable: bool) -> None:
        """Record a confirmation sent at `sent_ms`."""
        if stable:
            self._stable_from_ms = max(self._stable_from_ms, sent_ms)
        else:
            # members that have not joined by then are evicted despite heartbeats
            sent_ms = min(sent_ms, self._stable_from_ms + self._rebalance_ms - self._session_ms)
        self.lease_from_ms = max(sent_ms, self.lease_from_ms or 0)

    # errors

    def _is_refusal(self, error: KafkaError) -> bool:
        if error.code is ErrorCode.FENCED_INSTANCE_ID and self._may_be_its_own():
            return False
        return error.code in _REFUSED or isinstance(error, AuthenticationFailed)

    def _note(self, error: KafkaError) -> None:
        """Log a transient error, or once one that needs a permission."""
        self.problem = error
        if error.code in NOT_ALLOWED:
            self._rights.goes_on(error)
        else:
            logger.info("%s", error)

    def _refuse(self, error: KafkaError) -> None:
        """Release everything, and retry the join."""
        self.error = error
        self._refusal.goes_on(error)
        if error.code is ErrorCode.FENCED_INSTANCE_ID:
            self.member_id = ""
        self._lose(error)
        self._rejoin.set()

    @property
    def _is_fenced(self) -> bool:
        return self.error is not None and self.error.code is ErrorCode.FENCED_INSTANCE_ID

    async def _is_taken(self) -> bool:
        """Return whether another process has joined with this instance id.

        Raises:
            KafkaError: the coordinator cannot be reached.
        """
        connection = await self._upstream.coordinator(GROUP, self._group_id, "ask")
        message = {"groups": [self._group_id], "include_authorized_operations": False}
        (found,) = (await connection.request(calls.DESCRIBE_GROUPS, message)).groups
        if found.error_code and found.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise refusal(found.error_code, "to describe group", self._group_id, "Describe")
        return any(getattr(each, "group_instance_id", None) == self._instance_id for each in found.members)

    def _lose(self, error: KafkaError) -> None:
        self._joined.clear()
        self.generation = _NO_GENERATION
        self.leads = False
        lost, self.lease_from_ms = self.lease_from_ms is not None, None
        if lost:
            self._listener.lost(error)
