"""A member of a classic group: joins, is given an assignment, and keeps its place with heartbeats.

The classic protocol is on every Kafka, and lets members bring an assignor of their own: the leader computes.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, NamedTuple, Protocol

from sharecore.client.errors import AuthenticationFailed, Disconnected
from sharecore.client.wire.cluster import Backoff
from sharecore.client.wire.connection import Connection
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey
from sharecore.upstream.asking import drop
from sharecore.upstream.cluster import GROUP, PATIENCE_S, Upstream
from sharecore.upstream.errors import NOT_ALLOWED, refusal
from sharecore.upstream.trouble import Trouble

logger = logging.getLogger(__name__)

SESSION_MS = 10_000
REBALANCE_MS = 30_000
HEARTBEAT_MS = 3_000
_NO_GENERATION = -1
_REPLACED = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}
_OUT_OF_DATE = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION}
_REFUSED = {
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.INVALID_SESSION_TIMEOUT,
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.SASL_AUTHENTICATION_FAILED,
}
"""Refusals that last until somebody has put something right, which may be soon."""
_REFUSED_MS, _REFUSED_MAX_MS = 1_000, 10_000
"""Pauses between attempts to join while it is refused."""


class GroupMember(NamedTuple):
    """A member, as the leader sees it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class Listener(Protocol):
    """Who is in the group. Called on the event loop, and must not wait."""

    def metadata(self) -> bytes:
        """Return what the leader is to know of this member; asked for at each join."""

    def assign(self, generation: int, members: list[GroupMember]) -> dict[str, bytes]:
        """Return what each member gets, by member id; asked of the leader alone."""

    def assigned(self, generation: int, assignment: bytes) -> None:
        """What this member got."""

    def lost(self, error: KafkaError) -> None:
        """The coordinator says that this is no member any more: nothing is its own. It joins again."""


class Membership:
    """One member of a classic group.

    Heartbeats have a connection of their own: a join waits at the coordinator until all members have joined,
    and a member whose heartbeats stopped meanwhile would have to take itself for dead. A heartbeat that is
    answered while the group rebalances counts as a good one, but not for longer than the coordinator waits
    for members that do not join, counted from the last one before.

    A coordinator that was replaced, and does not know, goes on answering heartbeats while its successor gives
    the place away. So a heartbeat counts once its coordinator has also written: it commits an offset of this
    group, which takes all replicas in sync, and they do not follow a leader that was replaced.

    Between the end of a join and the leader's assignment nothing is committed. A leader that ended just then
    would let the places of all grow old until its own session is over: who has waited for a third of a
    session joins again, and the coordinator takes commits while it waits for joins.

    A member that is refused tries again for ever, in growing pauses. One whose place another process has
    taken, under the same instance id, waits until that has gone: else they would take it from each other.

    Args:
        upstream: where the group is.
        group_id: its name.
        listener: is asked and told.
        protocol_type, protocol: what the group is for, and the version of metadata and assignments.
        instance_id: a static member's; it comes back to its place within `session_ms`.
        session_ms: after so long without a heartbeat the coordinator gives the place away.
        rebalance_ms: how long the coordinator waits for members to join.
        heartbeat_ms: between heartbeats.
        confirmed_by: a topic, which must be there, of whose first partition offsets are committed; the user
            needs Read on it. Heartbeats alone count where none is given, or the cluster has no OffsetCommit.

    Attributes:
        member_id: empty until the coordinator gave one.
        generation: -1 outside of the group.
        leads: whether this member computes the assignment.
        lease_from_ms: monotonic time at which the last heartbeat that counts was sent: the place is not given
            away before `session_ms` are over. It grows old while no coordinator can be reached, and is young
            again where the next one knows this member. None outside of the group.
        error: why it is refused; None where it is not.
        problem: why the last heartbeat did not count, or the last join failed; None where they did not.
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
        """Join, and stays a member."""
        loop = asyncio.get_running_loop()
        self._rejoin.set()
        for work, name in ((self._stay(), "group"), (self._beat(), "heartbeats")):
            self._tasks.append(loop.create_task(work, name=f"sharecore upstream {name}"))

    def rejoin(self) -> None:
        """Join again: this member has something else to say, or give something back."""
        self._rejoin.set()

    async def close(self) -> None:
        """End without leaving: a static member has the session's time to come back."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.lease_from_ms = None

    async def leave(self) -> None:
        """Give the place away at once, a static member's, too.

        Raises:
            KafkaError: the coordinator could not be told; it finds out by itself when the session times out.
        """
        member_id = self.member_id
        await self.close()
        self.generation, self.member_id = _NO_GENERATION, ""
        if not member_id:
            return
        member = {"member_id": member_id, "group_instance_id": self._instance_id}
        message = {"group_id": self._group_id, "member_id": member_id, "members": [member]}

        async def ask() -> None:
            connection = await self._upstream.coordinator(GROUP, self._group_id, "ask")
            answer = await connection.request(ApiKey.LEAVE_GROUP, message)
            if answer.error_code and answer.error_code not in _OUT_OF_DATE:
                raise refusal(answer.error_code, "to let a member leave group", self._group_id, "Read")

        try:
            async with asyncio.timeout(self._session_ms / 1000):
                await self._upstream.retry(ask)
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
        """Join the group, and take the assignment."""
        self._joins_at = await self._find(self._doubted)
        connection = await self._upstream.connect(self._joins_at, f"group {self._group_id}")
        self._waiting = connection
        sent_ms = self._upstream.clock.monotonic_ms()
        answer = await self._ask_to_join(connection)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            # KIP-394: who has no id is given one, and joins with that
            self.member_id = answer.member_id
            sent_ms = self._upstream.clock.monotonic_ms()
            answer = await self._ask_to_join(connection)
        if answer.error_code:
            raise refusal(answer.error_code, "to let a member join group", self._group_id, "Read")
        self.member_id, self.generation = answer.member_id, answer.generation_id
        self.leads = answer.leader == answer.member_id
        assignments = []
        if self.leads and not getattr(answer, "skip_assignment", False):
            members = [GroupMember(*each) for each in answer.members]
            given = self._listener.assign(answer.generation_id, members)
            assignments = [{"member_id": key, "assignment": value} for key, value in given.items()]
        await self._sync(connection, sent_ms, assignments)

    async def _ask_to_join(self, connection: Connection) -> Any:
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
            return await connection.request(ApiKey.JOIN_GROUP, message, wait_ms=self._rebalance_ms)
        except Disconnected:
            self._lost_join_ms = self._upstream.clock.monotonic_ms()
            raise

    def _may_be_its_own(self) -> bool:
        """Whether who has taken the place of this static member may be itself, under another member id.

        A coordinator that was slow takes a join that was given up all the same. And one that has followed
        another does not know a member id that was given before the assignment was.
        """
        lost_ms = self._lost_join_ms
        late = lost_ms is not None and self._upstream.clock.monotonic_ms() - lost_ms < self._rebalance_ms
        return late or self.member_id != self._assigned_id

    async def _sync(self, connection: Connection, sent_ms: int, assignments: list[dict[str, Any]]) -> None:
        message = {
            **self._member(),
            "protocol_type": self._protocol_type,
            "protocol_name": self._protocol,
            "assignments": assignments,
        }
        try:
            async with asyncio.timeout(self._patience_ms / 1000):
                answer = await connection.request(ApiKey.SYNC_GROUP, message)
        except TimeoutError:
            text = f"the leader of group {self._group_id} says nothing"
            # what is sent there waits behind the request
            connection.close(text)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, text) from None
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._rejoin.set()
            return
        if answer.error_code:
            raise refusal(answer.error_code, "to give an assignment in group", self._group_id, "Read")
        self._joining = False
        # the coordinator began to count when the join was complete, which was after it was asked for; it has
        # written what was assigned before it told
        self._good(sent_ms, stable=True)
        self._assigned_id = self.member_id
        self._joined.set()
        self.error = self.problem = None
        self._refusal.is_over()
        logger.info("member %s of group %s, generation %d", self.member_id, self._group_id, self.generation)
        self._listener.assigned(self.generation, answer.assignment)

    def _member(self) -> dict[str, Any]:
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
        answer = await self._while_it_coordinates(connection, ApiKey.HEARTBEAT, member)
        if not self._joined.is_set() or self.member_id != member["member_id"]:
            # it was given up meanwhile: what it was is over
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
        elif code not in _OUT_OF_DATE:
            if code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                self._beating = None
            raise refusal(code, "a heartbeat in group", self._group_id, "Read")
        elif not crossed:
            # a join that is under way tells by itself
            self._rejoin.set()
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
                self._lose(refusal(code, "a heartbeat in group", self._group_id))

    async def _confirm(self, connection: Connection) -> bool:
        """Has the coordinator write, as only the one that counts can.

        Raises:
            KafkaError: it could not; another one may be able to.
        """
        if self._confirmed_by is None or not connection.offers(ApiKey.OFFSET_COMMIT):
            return True
        member = self._member()
        member["generation_id_or_member_epoch"] = member.pop("generation_id")
        partition = {"partition_index": 0, "committed_offset": 0, "committed_metadata": ""}
        topics = [{"name": self._confirmed_by, "partitions": [partition]}]
        commit = {**member, "topics": topics}
        answer = await self._while_it_coordinates(connection, ApiKey.OFFSET_COMMIT, commit)
        if not self._joined.is_set() or self.member_id != member["member_id"]:
            return False
        code = answer.topics[0].partitions[0].error_code
        if code == ErrorCode.REBALANCE_IN_PROGRESS or code in _OUT_OF_DATE:
            # between two generations nothing is committed; whether this is still a member, heartbeats tell
            return False
        if code:
            self._beating = None
            self._upstream.stale()
            raise refusal(code, f"a commit in group {self._group_id} for", self._confirmed_by, "Read")
        return True

    async def _while_it_coordinates(
        self, connection: Connection, api_key: ApiKey, message: dict[str, Any]
    ) -> Any:
        """Return what the coordinator answers. Where it is silent others are asked whether it still is the
        one: one that was replaced, and does not know, waits for replicas that do not follow it.

        Raises:
            Disconnected: the connection is lost, or another broker coordinates the group.
        """
        asked = asyncio.ensure_future(connection.request(api_key, message))
        looking: asyncio.Future[int] | None = None
        try:
            while True:
                await asyncio.wait(
                    [asked] if looking is None else [asked, looking],
                    timeout=PATIENCE_S if looking is None else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if asked.done():
                    return asked.result()
                if looking is None:
                    looking = asyncio.ensure_future(self._find(self._coordinator))
                elif looking.done():
                    if not looking.exception() and looking.result() != self._coordinator:
                        text = f"another broker coordinates group {self._group_id}"
                        connection.close(text)
                        raise Disconnected(text)
                    looking = None
        finally:
            drop(asked)
            if looking is not None:
                drop(looking)

    async def _find(self, doubted: int) -> int:
        return await self._upstream.find_coordinator(GROUP, self._group_id, doubted)

    def _good(self, sent_ms: int, *, stable: bool) -> None:
        """The coordinator counted this member in after `sent_ms`."""
        if stable:
            self._stable_from_ms = max(self._stable_from_ms, sent_ms)
        else:
            # who has not joined by then is put out however well it beats
            sent_ms = min(sent_ms, self._stable_from_ms + self._rebalance_ms - self._session_ms)
        self.lease_from_ms = max(sent_ms, self.lease_from_ms or 0)

    # what goes wrong

    def _is_refusal(self, error: KafkaError) -> bool:
        if error.code is ErrorCode.FENCED_INSTANCE_ID and self._may_be_its_own():
            return False
        return error.code in _REFUSED or isinstance(error, AuthenticationFailed)

    def _note(self, error: KafkaError) -> None:
        """Log what passes by itself, or once where somebody has to give this node a right."""
        self.problem = error
        if error.code in NOT_ALLOWED:
            self._rights.goes_on(error)
        else:
            logger.info("%s", error)

    def _refuse(self, error: KafkaError) -> None:
        """Give everything up, and join again where it is let."""
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
        """Return whether another process is in the group under the instance id of this one.

        Raises:
            KafkaError: the coordinator cannot be asked.
        """
        connection = await self._upstream.coordinator(GROUP, self._group_id, "ask")
        message = {"groups": [self._group_id], "include_authorized_operations": False}
        (found,) = (await connection.request(ApiKey.DESCRIBE_GROUPS, message)).groups
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
