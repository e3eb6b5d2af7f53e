"""The standby of a home: waits until no broker leads, and sends clients to the leader until then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from sharecore._core import StoreEvents
from sharecore.broker.broker import Broker
from sharecore.broker.cluster import NOBODY, Cluster, Leader
from sharecore.broker.identity import identify_home
from sharecore.broker.lobby.apis import lobby_apis
from sharecore.broker.lobby.fetches import FetchSchedule
from sharecore.broker.lobby.standing import Standing
from sharecore.broker.served import Served
from sharecore.broker.store.bucket_watch import report_standby
from sharecore.broker.store.home_nodes import HomeNodes, LobbyCluster, leader_epoch
from sharecore.config import BrokerConfig
from sharecore.coordinator_log.topic_log import TopicLog
from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.persister import Persister
from sharecore.protocol import ApiKey
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.storage import Catalog, Configs, DamagedBatch, Topics
from sharecore.storage.followed import FollowedTopics
from sharecore.storage.identity import Identity

if TYPE_CHECKING:
    from sharecore._core import Standby
    from sharecore.broker.backend import Host
    from sharecore.metrics.exposition import Exposition

logger = logging.getLogger("sharecore.broker")

_AGAIN_S = 60.0
"""A fetch that failed is repeated after so long."""


class LobbyBackend:
    """The backend of a standby: everything is with the leader."""

    feature_limits: Mapping[str, int] = MappingProxyType({})
    self_compacting = False
    has_successor = False
    commits: StoreEvents | None = None
    catalog: Catalog
    configs: Configs
    topics: Topics
    cluster: Cluster

    identity: Identity

    def __init__(self, standing: Standing) -> None:
        self.served: Mapping[ApiKey, Served] = lobby_apis()
        self._standing = standing
        self.catalog = standing.catalog

    async def open(self, broker: Host) -> None:
        """Begin with the leader's data in the bucket."""
        config, standing = broker.config, self._standing
        cluster_id = standing.cluster_id
        assert cluster_id is not None, "it is waited for"
        self.identity = Identity(cluster_id, config.node_id)
        self.configs = Configs(self.catalog)
        self.topics = FollowedTopics(standing.catalog)
        node_id = self.identity.node_id
        self.nodes = HomeNodes(
            standing.place,
            node_id,
            lambda: broker.listeners,
            config.broker_rack,
            broker.clock,
            lambda: standing.leader,
        )
        self.cluster = LobbyCluster(
            self.identity,
            lambda: broker.listeners,
            config.broker_rack,
            self.nodes,
            lambda: Leader(standing.leader, leader_epoch(self.catalog)),
        )

    async def join(self, broker: Host) -> None:
        """Do nothing: nothing is led."""

    async def begin(self, broker: Host) -> None:
        """Describe this broker in the bucket, and learn of the others; wait shortly for them."""
        self.nodes.start()
        await self.nodes.looked()

    async def drain(self) -> None:
        """Do nothing: there is nothing to hand over."""

    def end(self) -> None:
        """Stop looking at the other brokers."""
        self.nodes.stop()

    async def settle(self) -> None:
        """Do nothing: nothing is written."""

    async def close(self) -> None:
        """Do nothing: nothing is open."""

    async def succeeded(self) -> None:
        """Do nothing: nothing is led."""

    async def withdraw(self) -> None:
        """Remove this broker's description: it ends."""
        self.nodes.stop()
        await self.nodes.withdraw()

    def trouble(self) -> str:
        """Return why this broker could not take over now; empty if it could."""
        return self._standing.trouble()

    def standby(self) -> str:
        """Return who leads."""
        return self._standing.describe()

    def describe(self) -> str:
        """Return who leads, for a person."""
        return self._standing.describe()

    def cache_use(self) -> None:
        """Return nothing: it stands by."""

    def copy_trouble(self) -> str:
        """Return why this broker could not take over now; empty if it could."""
        return self.trouble()

    def logs(self, topic: str) -> Sequence[TopicLog]:
        """Return nothing: the leader has the logs."""
        return ()

    @property
    def owner_check(self) -> Callable[[int], None]:
        """Refuse each partition."""
        return self._refuse

    def _refuse(self, partition: int) -> None:
        raise KafkaError(ErrorCode.NOT_COORDINATOR)

    def persister(self, local: Persister) -> Persister:
        """Return the local one, which is never used."""
        return local

    def route(self, key: SharePartitionKey, partitions: int) -> int:
        """Return any partition: none is here."""
        return 0

    def damage(self) -> Sequence[DamagedBatch]:
        """Return nothing: no records are here."""
        return ()

    async def report(self, sheet: Exposition) -> None:
        """Add how the home stands."""
        report_standby(sheet, self._standing.claim, *self._standing.silence())


class Lobby:
    """Waits until no other broker leads a home, and answers clients meanwhile.

    Args:
        config: the broker's configuration.
    """

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._standing = Standing(config)
        self._backend = LobbyBackend(self._standing)
        self._broker = Broker(config, backend=self._backend, is_lobby=True)
        self._fetches = FetchSchedule()
        self._is_stopped = False
        self._fetching: asyncio.Task[None] | None = None
        self.is_tried = False
        """The bucket was tried while this broker waited."""
        self.broker: Broker | None = None
        """Answers clients until another broker takes over its server; None if it never waited."""

    @property
    def former(self) -> int | None:
        """The node that led while this broker waited; None if it never waited."""
        return None if self._standing.leader == NOBODY else self._standing.leader

    @property
    def watching(self) -> Standby:
        """Return the standby; after `wait`, it has found no leader."""
        return self._standing.watching

    @property
    def nodes(self) -> HomeNodes:
        """The brokers of the home, while it waits."""
        return self._backend.nodes

    @property
    def port(self) -> int:
        """Port of the first listener while it waits."""
        return next(iter(self._broker.listeners.values())).port

    @property
    def metrics_port(self) -> int:
        """Port of the metrics while it waits; 0 without them."""
        return self._broker.metrics_port

    async def wait(self, announce: Callable[[str], object]) -> None:
        """Wait until this broker may lead.

        Args:
            announce: called once this broker answers clients.

        Raises:
            ConfigError: the bucket cannot be reached with these settings, or the directory cannot be used.
            OSError: the bucket could not be read for the first 30 s, or an address or the directory is not
                available.
        """
        standing = self._standing
        while not await standing.look():
            if standing.is_complete:
                await asyncio.to_thread(standing.check_directory)
                await self._stand_by(announce)
                return
            await asyncio.sleep(standing.due_s())

    async def _stand_by(self, announce: Callable[[str], object]) -> None:
        broker = self._broker
        await broker.start()
        takes_over = False
        try:
            announce(broker.describe())
            while not await self._standing.look():
                self._fetch_if_due()
                await asyncio.sleep(self._standing.due_s())
            takes_over = True
        finally:
            if takes_over:
                # clients and probes are answered until the broker has started
                self.broker = broker
                self._standing.takes_over = True
            else:
                # a fetch may take minutes, and nobody needs it
                self._is_stopped = True
                self.watching.stop()
                await self._backend.withdraw()
                await broker.stop()
            if self._fetching is not None:
                await self._fetching

    def _fetch_if_due(self) -> None:
        """Fetch sealed segments from time to time, so that taking over takes no longer than a start."""
        if self._fetching is not None and not self._fetching.done():
            return
        loop = asyncio.get_running_loop()
        now_s, place = loop.time(), self._standing.silence()[0]
        if self._fetches.is_due(now_s, place, self._standing.segment):
            self._fetches.begin(now_s, place)
            self._fetching = loop.create_task(self._fetch())

    async def _fetch(self) -> None:
        standing, node_id = self._standing, self._config.node_id
        try:
            await asyncio.to_thread(
                identify_home,
                standing.data_dir,
                node_id,
                standing.place,
                is_tried=self.is_tried,
                standby=standing.watching,
            )
        except (OSError, ConfigError) as error:
            if self._is_stopped:
                return
            logger.warning("cannot fetch what the home has: %s. Trying again in %d s", error, _AGAIN_S)
            standing.fetch_trouble = f"this broker could not take over now: {error}"
            self._fetches.fail(asyncio.get_running_loop().time() + _AGAIN_S)
            return
        standing.fetch_trouble = ""
        self.is_tried = True
