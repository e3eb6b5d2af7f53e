"""Fetches of raw batches: each partition from its broker, within the caller's capacity."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import defaultdict
from typing import TYPE_CHECKING

from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey, calls
from sharecore.upstream.cluster import Upstream
from sharecore.upstream.errors import Truncated, refusal
from sharecore.upstream.fetched import Wanted, read_fetched
from sharecore.upstream.link import BrokerLink
from sharecore.upstream.metadata import Topic, TopicChange
from sharecore.upstream.subscription import Sink, Subscription

if TYPE_CHECKING:
    from sharecore.protocol.received import FetchPartitionData, OffsetForLeaderEpochEpochEndOffset

logger = logging.getLogger(__name__)

MAX_WAIT_MS = 500
MAX_BYTES = 16 * 1024 * 1024
PARTITION_BYTES = 1024 * 1024
_FINAL = {ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
_GONE = {TopicChange.DELETED, TopicChange.RECREATED}
_UNDEFINED = -1
_numbers = itertools.count()
"""Numbers connections: fetchers do not share them, since their requests wait at the broker."""


class Fetcher:
    """Fetch every subscribed partition with capacity, in one session per broker.

    Args:
        upstream: the cluster; it must know a topic before it is subscribed.
        committed: whether to read only committed records, with the list of aborted transactions. A session
            has one isolation level, so two levels need two fetchers.
        rack: rack of this node; the leader may name a follower in it (KIP-392).
        max_wait_ms: how long a broker waits for records.
        max_bytes: approximate maximum size of an answer.
        partition_bytes: approximate maximum per partition in an answer.
    """

    def __init__(
        self,
        upstream: Upstream,
        *,
        committed: bool,
        rack: str = "",
        max_wait_ms: int = MAX_WAIT_MS,
        max_bytes: int = MAX_BYTES,
        partition_bytes: int = PARTITION_BYTES,
    ) -> None:
        self.upstream = upstream
        self.name = f"fetch-{next(_numbers)}"
        self.committed = committed
        self.rack = rack
        self.max_wait_ms, self.max_bytes = max_wait_ms, max_bytes
        self._partition_bytes = partition_bytes
        self._subscriptions: dict[str, dict[int, Subscription]] = defaultdict(dict)
        self._links: dict[int, BrokerLink] = {}
        self._placed: dict[tuple[str, int], int] = {}
        self._doubtful: set[Subscription] = set()
        self._validating: asyncio.Task[None] | None = None
        self._finding: asyncio.Task[None] | None = None
        self._closed = False
        upstream.metadata.on_change(self._topic_changed)

    def subscribe(self, topic: str, partition: int, offset: int, room: int, sink: Sink) -> Subscription:
        """Fetch a partition from an offset on; see `Subscription.allow` for `room`.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION: it is not in the metadata.
            ValueError: it is already subscribed.
        """
        known = self.upstream.metadata.get(topic)
        if known is None or not 0 <= partition < len(known.partitions):
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{partition} is not known upstream"
            )
        if partition in self._subscriptions[topic]:
            raise ValueError(f"{topic}-{partition} is subscribed already")
        subscription = Subscription(known, partition, offset, room, sink, self._changed)
        self._subscriptions[topic][partition] = subscription
        self._place(subscription)
        return subscription

    async def close(self) -> None:
        """Stop all fetching; sinks are not called any more."""
        self._closed = True
        links, self._links = list(self._links.values()), {}
        for subscriptions in list(self._subscriptions.values()):
            for subscription in list(subscriptions.values()):
                subscription.close()
        tasks = [task for task in (self._validating, self._finding) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for link in links:
            await link.close()

    # choosing brokers

    def _changed(self, subscription: Subscription) -> None:
        """Handle a subscription that was closed, or may be fetched now."""
        if subscription.closed:
            if self._subscriptions[subscription.topic].get(subscription.partition) is subscription:
                del self._subscriptions[subscription.topic][subscription.partition]
                self._unplace(subscription)
        else:
            self._place(subscription)

    def _node_of(self, subscription: Subscription) -> int:
        replica = subscription.replica
        if replica >= 0:
            now_ms = self.upstream.clock.monotonic_ms()
            if replica in self.upstream.metadata.nodes and now_ms < subscription.replica_until_ms:
                return replica
            subscription.replica = -1
        return self.upstream.metadata.leader(*subscription.place)[0]

    def _place(self, subscription: Subscription) -> None:
        """Hand a subscription to the link of its broker, which fetches it if possible."""
        if self._closed:
            return
        node = self._node_of(subscription)
        if self._placed.get(subscription.place) != node:
            self._unplace(subscription)
        if node < 0:
            if self._finding is None:
                loop = asyncio.get_running_loop()
                self._finding = loop.create_task(self._find_leaders(), name="sharecore upstream leaders")
            return
        link = self._links.get(node)
        if link is None:
            link = self._links[node] = BrokerLink(node, self)
        self._placed[subscription.place] = node
        link.subscriptions[subscription.place] = subscription
        link.advance(subscription)

    def _unplace(self, subscription: Subscription) -> None:
        link = self._links.get(self._placed.pop(subscription.place, -1))
        if link is not None:
            link.subscriptions.pop(subscription.place, None)

    async def _find_leaders(self) -> None:
        """Refresh metadata until every fetchable subscription has a leader.

        An unchanged answer notifies nobody: several in a row may report no leader, and a reported leader that
        is not among the brokers counts once it is.
        """
        backoff = self.upstream.backoff()
        try:
            while missing := self._leaderless():
                await self.upstream.refreshed()
                for each in missing:
                    self._changed(each)
                await asyncio.sleep(backoff.seconds())
        finally:
            self._finding = None

    def _leaderless(self) -> list[Subscription]:
        everything = (each for some in self._subscriptions.values() for each in some.values())
        return [each for each in everything if each.ready and self._node_of(each) < 0]

    def _topic_changed(self, change: TopicChange, topic: Topic) -> None:
        for subscription in list(self._subscriptions[topic.name].values()):
            if change in _GONE:
                what = "was deleted" if change is TopicChange.DELETED else "is another topic now"
                error = KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"topic {topic.name} {what} upstream")
                subscription.fail(error)
            else:
                self._place(subscription)

    # callbacks of links

    def wanted(self, subscription: Subscription, node: int) -> Wanted | None:
        """Return the request for a subscription; None if another broker has it, or it needs a check first."""
        if self._node_of(subscription) != node:
            asyncio.get_running_loop().call_soon(self._changed, subscription)
            return None
        _, epoch = self.upstream.metadata.leader(*subscription.place)
        if 0 <= subscription.leader_epoch < epoch and self.upstream.has(ApiKey.OFFSET_FOR_LEADER_EPOCH):
            self._doubt(subscription)
            return None
        return subscription.wanted(epoch, self._partition_bytes)

    def answered(
        self, subscription: Subscription, node: int, wanted: Wanted, answer: FetchPartitionData
    ) -> None:
        """Process a broker's answer about a partition."""
        if wanted.offset != subscription.offset or wanted.topic_id != subscription.topic_id:
            return
        if answer.error_code:
            self._refused(subscription, node, answer.error_code)
            return
        replica = answer.preferred_read_replica
        subscription.take(read_fetched(answer, wanted.offset), wanted.leader_epoch)
        if replica >= 0 and replica != node and replica in self.upstream.metadata.nodes:
            subscription.replica = replica
            age_ms = self.upstream.settings.metadata_max_age_ms
            subscription.replica_until_ms = self.upstream.clock.monotonic_ms() + age_ms
            self._changed(subscription)

    def _refused(self, subscription: Subscription, node: int, code: int) -> None:
        topic = subscription.topic
        error = refusal(code, "to read", f"{topic}-{subscription.partition}", "Read", topic=topic)
        if subscription.replica == node:
            # a follower may be behind, or no longer a replica: the leader knows
            logger.info("broker %d: %s; asking the leader", node, error)
            subscription.replica = -1
            self._changed(subscription)
        elif error.code in _FINAL:
            subscription.fail(error)
        else:
            logger.info("broker %d: %s", node, error)
            self.upstream.stale()
            self._rest(subscription)

    def _rest(self, subscription: Subscription) -> None:
        """Pause fetching of a subscription."""
        subscription.resting = True

        def over() -> None:
            subscription.resting = False
            self._changed(subscription)

        asyncio.get_running_loop().call_later(self.upstream.settings.retry_backoff_ms / 1000, over)

    # check that a new leader has the records of the old one (KIP-320)

    def _doubt(self, subscription: Subscription) -> None:
        subscription.validating = True
        self._doubtful.add(subscription)
        if self._validating is None:
            loop = asyncio.get_running_loop()
            self._validating = loop.create_task(self._validate(), name="sharecore upstream epochs")

    async def _validate(self) -> None:
        try:
            while self._doubtful:
                doubtful, self._doubtful = self._doubtful, set()
                by_node: dict[int, list[Subscription]] = defaultdict(list)
                for each in doubtful:
                    by_node[self.upstream.metadata.leader(*each.place)[0]].append(each)
                await asyncio.gather(*(self._validate_at(node, some) for node, some in by_node.items()))
        finally:
            self._validating = None

    async def _validate_at(self, node: int, subscriptions: list[Subscription]) -> None:
        places = {each.place: each for each in subscriptions}
        epochs = {place: self.upstream.metadata.leader(*place)[1] for place in places}
        topics: dict[str, list[dict[str, int]]] = defaultdict(list)
        for (topic, index), each in places.items():
            epoch = {"current_leader_epoch": epochs[topic, index], "leader_epoch": each.leader_epoch}
            topics[topic].append({"partition": index, **epoch})
        message = {
            "replica_id": -1,
            "topics": [{"topic": name, "partitions": some} for name, some in topics.items()],
        }
        answers: dict[tuple[str, int], OffsetForLeaderEpochEpochEndOffset] = {}
        try:
            response = await self.upstream.request(node, calls.OFFSET_FOR_LEADER_EPOCH, message)
            answers = {
                (topic.topic, each.partition): each for topic in response.topics for each in topic.partitions
            }
        except KafkaError as error:
            logger.info("broker %d: %s", node, error)
        for place, each in places.items():
            self._validated(each, epochs[place], answers.get(place))

    def _validated(
        self, subscription: Subscription, epoch: int, answer: OffsetForLeaderEpochEpochEndOffset | None
    ) -> None:
        subscription.validating = False
        if answer is None or answer.error_code:
            self.upstream.stale()
            self._rest(subscription)
        elif _UNDEFINED != answer.end_offset < subscription.known_end and subscription.leader_epoch >= 0:
            subscription.fail(Truncated(*subscription.place, answer.end_offset))
        else:
            subscription.leader_epoch = epoch if subscription.leader_epoch >= 0 else -1
            self._changed(subscription)
