"""Membership of the share group: heartbeats to the coordinator, and the assignment that they bring."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from sharecore.client.errors import AuthenticationFailed, Disconnected
from sharecore.client.metrics import Metrics
from sharecore.client.settings import Settings
from sharecore.client.wire.cluster import Backoff, Cluster, TopicIdPartition
from sharecore.client.wire.connection import Connection
from sharecore.client.wire.refusals import group_error
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import calls

if TYPE_CHECKING:
    from sharecore.protocol.received import ShareGroupHeartbeatResponse

logger = logging.getLogger(__name__)

JOIN, LEAVE = 0, -1
_LOST_COORDINATOR = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
_TRY_AGAIN = _LOST_COORDINATOR | {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REQUEST_TIMED_OUT}
_LEAVE_TRIES = 6
_ANSWER_SECONDS_MAX = 5.0
"""A coordinator that has not responded to a heartbeat for this long is in trouble."""
_FENCED = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}

Assigned = Callable[[frozenset[TopicIdPartition]], None]
Failed = Callable[[Exception, bool], None]


class Membership:
    """One member of a share group. `run` keeps up the membership while there is a subscription.

    Args:
        cluster: locates the coordinator.
        metrics: counts heartbeats and rebalances.
        assigned: called with the partitions after each change.
        failed: called with an error and whether it is permanent: after a permanent one the member stops.
        idle_ms: how long the application has not polled; the member leaves after `max.poll.interval.ms`, and
            rejoins at the next poll.
    """

    def __init__(
        self,
        cluster: Cluster[Settings],
        metrics: Metrics,
        assigned: Assigned,
        failed: Failed,
        idle_ms: Callable[[], float],
    ) -> None:
        self.member_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self.epoch = JOIN
        self.assignment: frozenset[TopicIdPartition] = frozenset()
        self._cluster = cluster
        self._settings = cluster.settings
        self._metrics = metrics
        self._assigned, self._failed, self._idle_ms = assigned, failed, idle_ms
        self._names: tuple[str, ...] = ()
        self._sent_names: tuple[str, ...] | None = None
        self._interval_ms = 1_000
        self._connection: Connection | None = None
        self._wake = asyncio.Event()
        self._joined = False
        self._asked_at: float | None = None
        """When the unanswered heartbeat was sent."""
        self._trouble: KafkaError | None = None
        """Why the last heartbeat failed."""
        self._known = False
        """Whether the coordinator may know this member: it was asked to join, and no leave was confirmed
        since.
        """

    def subscribe(self, names: tuple[str, ...]) -> None:
        """Set the subscribed topics; an empty set leaves the group."""
        if names != self._names:
            self._names = names
            self._wake.set()

    def polled(self) -> None:
        """Record a poll; a member that was idle too long rejoins."""
        if not self._joined:
            self._wake.set()

    def trouble(self) -> str:
        """Return why the coordinator does not accept this member now, or an empty string; thread-safe."""
        group, error, asked_at = self._settings.group_id, self._trouble, self._asked_at
        if error is not None:
            return f"heartbeats of group {group} fail: {error}"
        if asked_at is not None and (waited := self._metrics.clock() - asked_at) > _ANSWER_SECONDS_MAX:
            return f"the coordinator of group {group} has not responded for {waited:.0f} s"
        connection = self._connection
        if connection is not None and connection.closed:
            return f"the connection to the coordinator of group {group} has ended"
        return "" if self._joined else f"not a member of group {group} yet"

    async def run(self) -> None:
        """Send heartbeats until cancelled or a permanent error."""
        backoff = Backoff(self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms)
        while True:
            self._wake.clear()
            try:
                wait = await self._step()
                backoff.reset()
            except AuthenticationFailed as error:
                self._failed(error, True)
                return
            except KafkaError as error:
                self._trouble = error
                if not await self._recover(error):
                    return
                wait = backoff.seconds()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()

    async def _step(self) -> float | None:
        """Send a heartbeat if one is due; return the seconds until the next."""
        if not self._names:
            await self.leave()
            return None
        if self._idle_ms() > self._settings.max_poll_interval_ms:
            if self._joined:
                logger.warning(
                    "no poll for more than max.poll.interval.ms=%d: leaving group %s until the next one",
                    self._settings.max_poll_interval_ms,
                    self._settings.group_id,
                )
            await self.leave()
            return None
        self._asked_at = self._metrics.clock()
        try:
            response = await self._heartbeat(self.epoch)
        finally:
            self._asked_at = None
        if response.error_code:
            raise group_error(response, self._settings.group_id)
        self._trouble = None
        self._take(response)
        return self._interval_ms / 1000

    async def _heartbeat(self, epoch: int) -> ShareGroupHeartbeatResponse:
        if self._connection is None or self._connection.closed:
            self._connection = None
            self._sent_names = None
            self._connection = await self._cluster.coordinator(self._settings.group_id)
        message: dict[str, object] = {
            "group_id": self._settings.group_id,
            "member_id": self.member_id,
            "member_epoch": epoch,
        }
        names = self._names
        known_before = self._known
        if epoch == JOIN:
            self._known = True
            message["rack_id"] = self._settings.client_rack
        if epoch != LEAVE and (epoch == JOIN or names != self._sent_names):
            message["subscribed_topic_names"] = names
        began = self._metrics.clock()
        self._metrics.heartbeat_sent(began)
        response: ShareGroupHeartbeatResponse = await self._connection.request(
            calls.SHARE_GROUP_HEARTBEAT, message
        )
        self._metrics.heartbeat_answered(self._metrics.clock() - began)
        if epoch != LEAVE and not response.error_code:
            self._sent_names = names
        if epoch == JOIN and response.error_code not in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT):
            self._known = known_before
        return response

    def _take(self, response: ShareGroupHeartbeatResponse) -> None:
        if not self._joined:
            logger.info("member %s joined group %s", self.member_id, self._settings.group_id)
        self._joined = True
        self.epoch = response.member_epoch
        self._interval_ms = max(1, response.heartbeat_interval_ms)
        if response.assignment is not None:
            self._assign(
                frozenset(
                    TopicIdPartition(topic.topic_id, partition)
                    for topic in response.assignment.topic_partitions
                    for partition in topic.partitions
                    if topic.topic_id is not None
                )
            )

    def _assign(self, assignment: frozenset[TopicIdPartition]) -> None:
        if assignment != self.assignment:
            self.assignment = assignment
            self._metrics.rebalanced()
            self._assigned(assignment)

    async def _recover(self, error: KafkaError) -> bool:
        """Prepare a retry; return False if there is none."""
        if isinstance(error, Disconnected) or error.code in _LOST_COORDINATOR:
            logger.info("coordinator of group %s is lost: %s", self._settings.group_id, error)
            self._drop_connection()
            return True
        if error.code in _TRY_AGAIN:
            return True
        if error.code in _FENCED or (error.code is ErrorCode.GROUP_ID_NOT_FOUND and self.epoch != JOIN):
            # the group may have been deleted, or restored from an older backup
            logger.warning("group %s does not know this member any more: %s", self._settings.group_id, error)
            self.epoch, self._sent_names = JOIN, None
            self._assign(frozenset())
            return True
        if error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            self._sent_names = None
            self._failed(error, False)
            return True
        self._assign(frozenset())
        self._joined = False
        self._failed(error, True)
        return False

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._sent_names = None

    async def leave(self) -> None:
        """Leave the group, also if joining was not confirmed yet.

        Raises:
            KafkaError: the coordinator did not respond, or cannot now; without a retry, the session times
                out.
        """
        if not self._known:
            return
        self._joined = False
        self._assign(frozenset())
        self.epoch = JOIN
        try:
            try:
                response = await self._heartbeat(LEAVE)
            except Disconnected:
                # the connection may be an old one that has just ended
                response = await self._heartbeat(LEAVE)
        finally:
            self._sent_names = None
        if response.error_code in _TRY_AGAIN:
            raise group_error(response, self._settings.group_id)
        self._known = False
        logger.info("member %s left group %s", self.member_id, self._settings.group_id)

    async def close(self) -> None:
        """Leave, retrying a few times while the coordinator moves or loads.

        Raises:
            KafkaError: as `leave`.
        """
        backoff = Backoff(self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms)
        for tries_left in reversed(range(_LEAVE_TRIES)):
            try:
                await self.leave()
                return
            except KafkaError as error:
                if error.code not in _TRY_AGAIN or not tries_left:
                    raise
                if error.code in _LOST_COORDINATOR:
                    self._drop_connection()
            await asyncio.sleep(backoff.seconds())
