"""Fetches from one broker: a session with one pending request, and a connection for urgent fetches."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from sharecore.client.wire.connection import Connection
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey, calls
from sharecore.upstream.apis import FETCH_BY_NAME
from sharecore.upstream.cluster import Upstream
from sharecore.upstream.errors import refusal
from sharecore.upstream.fetched import FetchOptions, Wanted, fetch_message
from sharecore.upstream.session import FetchSession
from sharecore.upstream.subscription import Subscription

if TYPE_CHECKING:
    from sharecore.protocol.received import FetchPartitionData, FetchResponse

logger = logging.getLogger(__name__)

BESIDE_WAIT_MS = 50
_SESSION_GONE = {ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH}


class Host(Protocol):
    """Interface of a link to its fetcher."""

    upstream: Upstream
    name: str
    committed: bool
    rack: str
    max_wait_ms: int
    max_bytes: int

    def wanted(self, subscription: Subscription, node: int) -> Wanted | None:
        """Return the request for a subscription; None if this broker is not to be asked now."""

    def answered(
        self, subscription: Subscription, node: int, wanted: Wanted, answer: FetchPartitionData
    ) -> None:
        """Process the broker's answer about a partition."""


class BrokerLink:
    """Fetch subscriptions with capacity.

    The session's request waits at the broker for records. A subscription that gets capacity meanwhile would
    wait behind it, so it is fetched on another connection until the session's next request includes it. If
    both return the same batches, the second answer is dropped.

    Args:
        node: the broker.
        host: parameters of fetches, and receiver of answers.
    """

    def __init__(self, node: int, host: Host) -> None:
        self.node = node
        self.subscriptions: dict[tuple[str, int], Subscription] = {}
        self._host = host
        self._session = FetchSession()
        self._spoken = 0
        self._how: FetchOptions = {
            "committed": host.committed,
            "max_bytes": host.max_bytes,
            "rack": host.rack,
        }
        self._wake = asyncio.Event()
        self._under_way: dict[tuple[str, int], Wanted] | None = None
        loop = asyncio.get_running_loop()
        self._main = loop.create_task(self._run(), name=f"sharecore upstream fetch {node}")
        self._beside: asyncio.Task[None] | None = None

    def advance(self, subscription: Subscription) -> None:
        """Fetch a subscription that has become fetchable."""
        self._wake.set()
        if self._under_way is not None and self._beside is None and self._uncovered([subscription]):
            self._beside = asyncio.get_running_loop().create_task(
                self._catch_up(), name=f"sharecore upstream fetch beside {self.node}"
            )

    async def close(self) -> None:
        """Cancel pending requests."""
        tasks = [task for task in (self._main, self._beside) if task is not None]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _wanted(self, subscriptions: Iterable[Subscription]) -> list[Wanted]:
        found = (self._host.wanted(each, self.node) for each in subscriptions if each.ready)
        return [each for each in found if each is not None]

    def _uncovered(self, subscriptions: Iterable[Subscription]) -> list[Wanted]:
        """Return the requests that the pending fetch does not include."""
        covered = self._under_way or {}
        return [
            each
            for each in self._wanted(subscriptions)
            if (asked := covered.get((each.topic, each.partition))) is None or asked.offset != each.offset
        ]

    async def _run(self) -> None:
        upstream = self._host.upstream
        backoff = upstream.backoff()
        while True:
            self._wake.clear()
            if not self._wanted(self.subscriptions.values()):
                await self._wake.wait()
                continue
            try:
                await self._fetch()
                backoff.reset()
            except KafkaError as error:
                self._session.reset()
                if error.code not in _SESSION_GONE:
                    logger.info("broker %d: %s", self.node, error)
                    upstream.stale()
                    await asyncio.sleep(backoff.seconds())

    async def _fetch(self) -> None:
        """Send the session's next request."""
        host = self._host
        connection = await host.upstream.connect(self.node, host.name)
        wanted = self._wanted(self.subscriptions.values())
        newest = self._newest(connection, wanted)
        if newest != self._spoken:
            # a session cannot switch between names and ids
            self._spoken = newest
            self._session.reset()
        message = self._session.message(wanted, max_wait_ms=host.max_wait_ms, **self._how)
        self._under_way = {(each.topic, each.partition): each for each in wanted}
        try:
            answer = await connection.request(calls.FETCH, message, wait_ms=host.max_wait_ms, newest=newest)
        finally:
            self._under_way = None
        if answer.error_code:
            raise refusal(answer.error_code, "a fetch session on broker", str(self.node))
        self._session.answered(answer.session_id)
        self._deliver(wanted, answer)

    async def _catch_up(self) -> None:
        """Fetch on the second connection while the session's request waits."""
        upstream = self._host.upstream
        try:
            connection = await upstream.connect(self.node, f"{self._host.name} beside")
            while self._under_way is not None and (wanted := self._uncovered(self.subscriptions.values())):
                message = fetch_message(wanted, max_wait_ms=BESIDE_WAIT_MS, **self._how)
                newest = self._newest(connection, wanted)
                answer = await connection.request(calls.FETCH, message, wait_ms=BESIDE_WAIT_MS, newest=newest)
                if answer.error_code:
                    return
                self._deliver(wanted, answer)
        except KafkaError as error:
            logger.info("broker %d: %s", self.node, error)
        finally:
            self._beside = None

    def _newest(self, connection: Connection, wanted: Iterable[Wanted]) -> int:
        """Return the highest usable version: one with names if a topic has no id."""
        topics = (self._host.upstream.metadata.get(each.topic) for each in wanted)
        by_name = any(topic is None or not topic.has_id for topic in topics)
        return connection.version(ApiKey.FETCH, FETCH_BY_NAME if by_name else None)

    def _deliver(self, asked: Sequence[Wanted], answer: FetchResponse) -> None:
        names: dict[UUID | None, str] = {each.topic_id: each.topic for each in asked}
        by_place = {(each.topic, each.partition): each for each in asked}
        for topic in answer.responses:
            name = topic.topic if hasattr(topic, "topic") else names.get(topic.topic_id, "")
            for part in topic.partitions:
                wanted = by_place.get((name, part.partition_index))
                subscription = self.subscriptions.get((name, part.partition_index))
                if wanted is not None and subscription is not None:
                    self._host.answered(subscription, self.node, wanted, part)
