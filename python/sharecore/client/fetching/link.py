"""The link to one broker: its share session, and the requests that go to it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from sharecore.client.errors import AuthenticationFailed, Disconnected, LeaseLost
from sharecore.client.fetching.host import Demand, Host, Request
from sharecore.client.fetching.lease import Lease
from sharecore.client.fetching.outbox import Outbox, PendingAcks
from sharecore.client.fetching.session import ShareSession
from sharecore.client.settings import RECORD_LIMIT
from sharecore.client.wire.apis import RENEW_VERSION
from sharecore.client.wire.cluster import Backoff, TopicIdPartition
from sharecore.client.wire.connection import Connection, Response
from sharecore.client.wire.refusals import accept
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey, calls
from sharecore.protocol.calls import Call

if TYPE_CHECKING:
    from sharecore.client.wire.cluster import Endpoint
    from sharecore.protocol import received

logger = logging.getLogger(__name__)

IN_FLIGHT_MAX = 2
"""Concurrent requests: a broker that has answered one already has the next."""
BUSY_WAIT_MAX_MS = 100
"""The longest wait of a fetch while records are held: their acknowledgements queue behind it."""

_SESSION_LOST = {ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH}
_MOVED = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.KAFKA_STORAGE_ERROR,
}
_FINAL = {ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.UNSUPPORTED_VERSION}


class BrokerLink:
    """Fetches from one broker and sends acknowledgements to it.

    Everything is done in callbacks: actions of the application, responses and timers call `advance`, which
    sends what is due. Requests of a share session are numbered, so they use one connection, and if one is
    refused as a whole, later ones fail too.

    Args:
        node: the broker.
        host: the consumer.
    """

    def __init__(self, node: int, host: Host) -> None:
        self.node = node
        self.wanted: frozenset[TopicIdPartition] = frozenset()
        self.leases: set[Lease] = set()
        self.fetch_began_ms = 0
        """When the fetch was sent whose response is being processed."""
        self.outbox = Outbox(host.results, host.now_ms)
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self.host = host
        self._settings = host.cluster.settings
        self._session = ShareSession(self._settings.group_id, host.member_id)
        self._connection: Connection | None = None
        self._in_flight: deque[Request] = deque()
        self._flushes: list[asyncio.Future[None]] = []
        self._commit = False
        self._closing = False
        self._drained = False
        self._advancing = False
        self._busy = False
        """A task is connecting, or waits until the connection is ready."""
        self._backoff = Backoff(self._settings.reconnect_backoff_ms, self._settings.reconnect_backoff_max_ms)
        self._pause: asyncio.TimerHandle | None = None

    # calls by the consumer

    def want(self, partitions: frozenset[TopicIdPartition]) -> None:
        """Set the share partitions to fetch."""
        if partitions != self.wanted:
            self.wanted = partitions
            self._drained = False
            self.advance()

    def mark(self, lease: Lease, low: int, high: int, kind: int) -> None:
        """Mark positions of a lease of this leader; they are sent with the next fetch or commit."""
        if lease.lost is None:
            lease.mark(low, high, kind)
            self.leases.add(lease)
            self.outbox.add(lease)
            lease.queued = True
        else:
            self.host.results.settled(lease, lease.spans(low, high), lease.lost, later=True)

    def commit(self) -> None:
        """Send the marked positions, with a fetch if one is due."""
        self._commit = True
        self.advance()

    async def flush(self) -> None:
        """Send the marked positions; return when all are answered or have failed."""
        flushed: asyncio.Future[None] = self._loop.create_future()
        if self.outbox:
            self._flushes.append(flushed)
            self.commit()
        elif self._in_flight:
            self._in_flight[-1].flushes.append(flushed)
        else:
            return
        await flushed

    @property
    def renews(self) -> bool:
        """Whether the broker can renew locks."""
        connection = self._connection
        return connection is not None and connection.version(ApiKey.SHARE_ACKNOWLEDGE) >= RENEW_VERSION

    def need_renewal(self) -> None:
        """Raise KafkaError UNSUPPORTED_VERSION if the broker is known not to support renewal."""
        if self._connection is not None and not self.renews:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"broker {self.node} cannot renew locks")

    def expire(self, now_ms: int) -> None:
        """Mark leases whose locks expired."""
        for lease in list(self.leases):
            lease.expire(now_ms)
            if not lease.open:
                self.leases.discard(lease)
                lease.queued = False

    def close(self) -> None:
        """Send the marked positions, close the session, and then set `closed`."""
        self._closing = True
        self.advance()

    def abandon(self) -> None:
        """Give up requests that could not be completed in time."""
        self._closing = True
        self._end_session(
            KafkaError(ErrorCode.REQUEST_TIMED_OUT, "the consumer was closed before the response")
        )
        self._finished()

    # due work

    def advance(self) -> None:
        """Send what is due."""
        if self._advancing:
            return
        self._advancing = True
        while self._try_step():
            pass
        self._advancing = False

    def _try_step(self) -> bool:
        try:
            return self._step()
        except KafkaError as error:
            self._failed(error)
            return self._closing
        except Exception as error:
            self._break(error)
            return self._closing

    def _step(self) -> bool:
        """Send at most one request; return whether one was sent."""
        if (
            self.closed.done()
            or self._busy
            or self._pause is not None
            or len(self._in_flight) >= IN_FLIGHT_MAX
        ):
            return False
        if self._connection is not None and self._connection.closed:
            raise Disconnected(f"broker {self.node} closed the connection")
        if self._closing:
            return self._step_to_the_end()
        requested = sum(request.records for request in self._in_flight)
        demand = self.host.demand(requested=requested, drained=self._drained) if self.wanted else None
        if not self.outbox:
            self._flush_nothing()
        opened = self._session.opened
        leaves = opened and not self.wanted and not self.leases and not self._in_flight
        alone = bool(self.outbox) and self._must_go_alone(demand)
        if self.outbox and not opened and not self.wanted:
            self._lose_all(KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND, "the share session is closed"))
            return False
        if self.outbox and not opened and demand is None and self._commit and not self._in_flight:
            # only a fetch can open the session that the acknowledgements need
            demand = Demand(0, 1)
        if (demand is None and not alone and not leaves) or not self._ready():
            return False
        if opened and (alone or leaves):
            return self._acknowledge(final=leaves)
        if demand is None or (not opened and self._in_flight):
            return False
        self._fetch(demand)
        return True

    def _must_go_alone(self, demand: Demand | None) -> bool:
        """Return whether acknowledgements need their own request: no fetch is due, one waits for them, or a
        fetch may not carry them.
        """
        if self._flushes or (self._commit and demand is None):
            return True
        return self.outbox.urgent or not self.outbox.keys() <= self.wanted or self.outbox.renews

    def _step_to_the_end(self) -> bool:
        if self._connection is None or not self._session.opened:
            if not self._in_flight:
                self._end_session(KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND, "the consumer is closed"))
                self._finished()
            return False
        if not self._ready():
            return False
        if self.outbox:
            return self._acknowledge()
        return not self._in_flight and self._acknowledge(final=True)

    def _ready(self) -> bool:
        """Return whether a connection accepts a request now; otherwise prepare one."""
        if self._connection is not None and self._connection.ready:
            return True
        self._busy = True
        self.host.spawn(self._prepare(), f"connection to broker {self.node}")
        return False

    async def _prepare(self) -> None:
        try:
            if self._connection is None:
                connection = await self.host.cluster.connect(self.node)
                connection.lost.add_done_callback(lambda _: self.advance())
                self._connection = connection
            await self._connection.prepare()
        except KafkaError as error:
            self._failed(error)
        except Exception as error:
            self._break(error)
        finally:
            self._busy = False
        self.advance()

    # requests

    def _fetch(self, demand: Demand) -> None:
        acks = self.outbox.collect() if self._session.opened and self.outbox else PendingAcks({})
        wait_ms = demand.wait_ms
        if self.leases:
            wait_ms = min(wait_ms, BUSY_WAIT_MAX_MS, self.host.lock_ms // 10)
        settings, opens = self._settings, not self._session.opened
        message = self._session.fetch(self.wanted, acks.spans) | {
            "max_wait_ms": wait_ms,
            "min_bytes": settings.fetch_min_bytes,
            "max_bytes": settings.fetch_max_bytes,
            "max_records": demand.records,
            "batch_size": demand.records,
            "share_acquire_mode": int(settings.share_acquire_mode == RECORD_LIMIT),
        }
        request = Request(acks, self.host.metrics.clock(), opens=opens, records=demand.records)
        self._send(request, calls.SHARE_FETCH, message, self._fetched, wait_ms)

    def _acknowledge(self, *, final: bool = False) -> bool:
        acks = self.outbox.collect()
        if not acks and not final:
            return bool(self.outbox)
        if acks.renews and not self.renews:
            self.outbox.put_back(acks)
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"broker {self.node} cannot renew locks")
        message = self._session.acknowledge(acks.spans, final=final) | {"is_renew_ack": acks.renews}
        request = Request(acks, self.host.metrics.clock(), final=final)
        self._send(request, calls.SHARE_ACKNOWLEDGE, message, self._acknowledged)
        return True

    def _send(
        self,
        request: Request,
        call: Call[Response],
        message: dict[str, object],
        take: Callable[[Request, Response], None],
        wait_ms: int = 0,
    ) -> None:
        if not self.outbox:
            self._commit = False
            request.flushes, self._flushes = self._flushes, []
        self._session.sent()
        self._in_flight.append(request)
        assert self._connection is not None
        answered = partial(self._answered, request, take)
        self._connection.send(call, message, answered, wait_ms=wait_ms)

    # answers

    def _answered(
        self, request: Request, take: Callable[[Request, Response], None], response: Response | KafkaError
    ) -> None:
        if not self._in_flight or self._in_flight[0] is not request:
            # it failed with an earlier one, and was completed then
            return
        try:
            if isinstance(response, KafkaError):
                raise response
            accept(response)
            self._in_flight.popleft()
            self._backoff.reset()
            if (lock_ms := getattr(response, "acquisition_lock_timeout_ms", 0)) > 0:
                self.host.lock_ms = lock_ms
            take(request, response)
            self._release_flushes(request)
        except KafkaError as error:
            self._keep_unanswered(request)
            self._failed(error, request)
        except Exception as error:
            self._keep_unanswered(request)
            self._break(error)
        self.advance()

    def _keep_unanswered(self, request: Request) -> None:
        """Count a request as in flight again if its response could not be read to the end."""
        if not self._in_flight or self._in_flight[0] is not request:
            self._in_flight.appendleft(request)

    def _fetched(self, request: Request, response: received.ShareFetchResponse) -> None:
        size = records = 0
        acks = request.acks
        # the clock counts whole milliseconds: unrounded, the value may lie after the response
        self.fetch_began_ms = round(request.began * 1000)
        for topic in response.responses:
            if topic.topic_id is None:
                continue
            for answer in topic.partitions:
                key = TopicIdPartition(topic.topic_id, answer.partition_index)
                if key in acks.entries:
                    self._settle(acks, key, answer.acknowledge_error_code, answer.acknowledge_error_message)
                if answer.error_code:
                    self._partition_failed(key, answer, response.node_endpoints)
                elif answer.acquired_records:
                    self.host.refusals.clear(key)
                    size += len(answer.records or b"")
                    records += self.host.take_in(key, answer, self, self.host)
        self._settle_unanswered(acks)
        self._drained = records == 0
        metrics = self.host.metrics
        metrics.fetched(metrics.clock() - request.began, size, records, response.throttle_time_ms)

    def _acknowledged(self, request: Request, response: received.ShareAcknowledgeResponse) -> None:
        for topic in response.responses:
            if topic.topic_id is None:
                continue
            for answer in topic.partitions:
                key = TopicIdPartition(topic.topic_id, answer.partition_index)
                if key in request.acks.entries:
                    self._settle(request.acks, key, answer.error_code, answer.error_message)
                if answer.error_code in _MOVED:
                    self._partition_failed(key, answer, response.node_endpoints)
        self._settle_unanswered(request.acks)
        if request.final:
            self._session.reset()
            if self._closing:
                self._end_session(KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND, "the consumer is closed"))
                self._finished()

    def _settle(self, acks: PendingAcks, key: TopicIdPartition, code: int, message: str | None) -> None:
        error = KafkaError(code, message or "") if code else None
        settled = self.outbox.settle(acks, key, error, self.host.lock_ms)
        if settled:
            self.host.metrics.acknowledged(settled, error is not None)
        self.leases -= {lease for lease, _ in acks.entries.pop(key) if not lease.open}

    def _settle_unanswered(self, acks: PendingAcks) -> None:
        for key in list(acks.entries):
            self._settle(acks, key, ErrorCode.UNKNOWN_SERVER_ERROR, "the response lacks the partition")

    # failures

    def _partition_failed(
        self,
        key: TopicIdPartition,
        answer: received.ShareFetchPartitionData | received.ShareAcknowledgePartitionData,
        endpoints: Iterable[Endpoint],
    ) -> None:
        host = self.host
        error = KafkaError(answer.error_code, answer.error_message or "")
        if error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            host.fail(error, False)
        host.refusals.add(key, error)
        logger.info("broker %d, partition %d of topic %s: %s", self.node, key.partition, key.topic_id, error)
        if error.code not in _MOVED:
            self._rest()
            return
        if not host.cluster.learn_leader(key, answer.current_leader, endpoints):
            host.cluster.forget_leader(key)
        if error.code != ErrorCode.KAFKA_STORAGE_ERROR:
            for lease in [lease for lease in self.leases if lease.key == key]:
                self._lose(lease, LeaseLost(error.code, "the leader of the share partition has changed"))
        self.wanted -= {key}
        host.refresh()

    def _failed(self, error: KafkaError, request: Request | None = None) -> None:
        """Handle a request refused as a whole, or an unreachable broker."""
        if request is not None and error.code in _SESSION_LOST and not request.opens:
            logger.info("broker %d: %s; opening a new share session", self.node, error)
            self._take_back()
            self._session.reset()
            self._commit = True
            self._rest()
            return
        level = logging.INFO if isinstance(error, Disconnected) else logging.WARNING
        logger.log(level, "broker %d: %s", self.node, error)
        self._end_session(error)
        if isinstance(error, AuthenticationFailed) or error.code in _FINAL:
            self.host.fail(error, True)
        else:
            self._rest()
            self.host.refresh()

    def _break(self, error: Exception) -> None:
        """End the session for an unexpected error; pending requests get no response."""
        logger.error("broker %d: the share session ends", self.node, exc_info=error)
        self._end_session(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{type(error).__name__}: {error}"))
        self.host.fail(error, True)

    def _take_back(self) -> None:
        """Handle requests in flight that will get no response, or only the same error."""
        requests, self._in_flight = self._in_flight, deque()
        for request in requests:
            self.outbox.put_back(request.acks)
            self._flushes += request.flushes

    def _end_session(self, error: KafkaError) -> None:
        """End the session: the connection, and all that it acquired, is lost."""
        self._take_back()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        self._session.reset()
        self._lose_all(error)

    def _lose_all(self, error: KafkaError) -> None:
        why = error.message or error.code.name
        for lease in self.leases | self.outbox.leases:
            self._lose(lease, LeaseLost(error.code, f"the share session ended: {why}"))
        self._flush_nothing()

    def _lose(self, lease: Lease, error: KafkaError) -> None:
        self.outbox.drop(lease)
        self.leases.discard(lease)
        failed = lease.lose(error)
        if failed:
            self.host.results.settled(lease, failed, error)
            self.host.metrics.acknowledged(sum(len(span.types) for span in failed), True)
        self.host.lose(lease)

    def _rest(self) -> None:
        """Pause sending for a while."""
        if self._pause is None and not self._closing:
            self._pause = self._loop.call_later(self._backoff.seconds(), self._rested)

    def _rested(self) -> None:
        self._pause = None
        self.advance()

    # waiting callers

    def _flush_nothing(self) -> None:
        """Complete waiting flushes: there is nothing left to send."""
        self._commit = False
        flushes, self._flushes = self._flushes, []
        if self._in_flight:
            self._in_flight[-1].flushes += flushes
        else:
            _release(flushes)

    def _release_flushes(self, request: Request) -> None:
        if self.outbox.urgent:
            self._flushes += request.flushes
        else:
            _release(request.flushes)

    def _finished(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        if not self.closed.done():
            self.closed.set_result(None)


def _release(flushes: Iterable[asyncio.Future[None]]) -> None:
    for flushed in flushes:
        if not flushed.done():
            flushed.set_result(None)
