"""The standby of a home: it waits until no other broker leads, and meanwhile sends clients to the leader."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from sharecore.broker.broker import Broker
from sharecore.broker.cluster import NOBODY, Cluster, Leader
from sharecore.broker.features import Features
from sharecore.broker.identity import identify_home
from sharecore.broker.lobby.apis import lobby_apis
from sharecore.broker.served import Served
from sharecore.broker.store.backend import bucket_place
from sharecore.broker.store.bucket_watch import report_standby
from sharecore.broker.store.home_nodes import HomeNodes, LobbyCluster, leader_epoch
from sharecore.broker.store.home_watch import fenced_mark
from sharecore.config import BrokerConfig
from sharecore.coordinator_log.topic_log import TopicLog
from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.persister import Persister
from sharecore.protocol import ApiKey
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.storage import Catalogue, Configs, DamagedBatch, Topics
from sharecore.storage.bucket import SILENCE_MS, standby
from sharecore.storage.followed import FollowedCatalogue, FollowedTopics
from sharecore.storage.identity import IDENTITY, DamagedIdentity, Identity, decode_identity, read_identity

if TYPE_CHECKING:
    from sharecore.broker.backend import Host
    from sharecore.metrics.exposition import Sheet

logger = logging.getLogger("sharecore.broker")

_LOOK_S = 1.0
_WARM_S = 300.0
_WARM_PLACES = 500
"""Objects of the journal after which segments may have been sealed that this broker lacks."""
_BLIND_S = 5.0
"""A standby that has not seen the journal for so long is not ready."""
_FIRST_S = 30.0
"""A bucket that has never been read is tried for so long; then the settings are taken to be wrong."""
_PATIENCE = 3
"""A broker that was fenced waits for so many silences, so that two do not take turns."""


class Standing:
    """What a standby knows of the home: who leads, the catalogue, and for how long nothing was written.

    Args:
        config: the broker's configuration.
    """

    def __init__(self, config: BrokerConfig) -> None:
        self.place = bucket_place(config)
        self._config = config
        self.data_dir = Path(config.data_dir)
        fenced = fenced_mark(self.data_dir).exists()
        self.silence_ms = SILENCE_MS * (_PATIENCE if fenced else 1)
        """How long the leader is silent before this broker claims."""
        self._watching = standby(self.place, config.node_id, self.silence_ms)
        self.catalogue = FollowedCatalogue()
        self.leader = NOBODY
        self.claim = 0
        self._is_home = True
        self.takes_over = False
        """This broker no longer looks: another one of its process opens the storage."""
        self._began_s: float | None = None
        self._seen_s: float | None = None
        self._place = 0
        self._free_since_s: float | None = None
        self._trouble = ""
        self._line = ""

    async def look(self) -> bool:
        """Look at the journal; return whether this broker may claim. A failure is logged, and counts as no.

        Raises:
            OSError: the bucket has never been read, for 30 s.
        """
        loop = asyncio.get_running_loop()
        try:
            led, (self._place, silent_ms) = await asyncio.to_thread(self._look)
        except OSError as error:
            self._began_s = loop.time() if self._began_s is None else self._began_s
            if self._seen_s is None and loop.time() >= self._began_s + _FIRST_S:
                raise
            self._trouble, self._free_since_s = str(error), None
            self._say(f"{error}. This broker waits")
            return False
        self._seen_s, self._trouble = loop.time(), ""
        self._free_since_s = self._seen_s - silent_ms / 1000
        self.catalogue.take(self._watching.take_changed())
        if led is None:
            return True
        self.leader, self.claim, self._is_home = led
        self._say(f"{self.describe()}. This broker waits{' until that one stops' if self._is_home else ''}")
        return False

    def _look(self) -> tuple[tuple[int, int, bool] | None, tuple[int, int]]:
        return self._watching.look(), self._watching.silence()

    def _say(self, line: str) -> None:
        if line != self._line:
            logger.warning("%s", line)
            self._line = line

    def describe(self) -> str:
        """Return who leads, for a person."""
        if not self._is_home:
            return (
                f"node {self.leader} copies its data to {self.place.url} (epoch {self.claim}) "
                f"and may be running: to lead, stop it and start this broker with node.id={self.leader}"
            )
        return f"node {self.leader} leads {self.place.url} (epoch {self.claim})"

    def trouble(self) -> str:
        """Return why this broker cannot take over now; empty if it can."""
        if not self._is_home:
            return self.describe()
        if self.takes_over:
            return f"this broker takes over {self.place.url}"
        blind_s = asyncio.get_running_loop().time() - (self._seen_s or 0.0)
        if blind_s < _BLIND_S:
            return ""
        return f"{self.place.url} could not be read for {blind_s:.0f} s: {self._trouble or 'no answer'}"

    def silence(self) -> tuple[int, int]:
        """Return the next place of the journal, and for how many milliseconds nothing came there.

        It is known without the bucket: a look may be waiting for it.
        """
        if self._free_since_s is None:
            return self._place, 0
        return self._place, round((asyncio.get_running_loop().time() - self._free_since_s) * 1000)

    @property
    def cluster_id(self) -> str | None:
        """Whose home it is; None before its leader has written it."""
        found = decode_identity(self.catalogue.get(IDENTITY))
        return None if found is None else found.cluster_id

    @property
    def is_complete(self) -> bool:
        """Whether the leader of a new home has written what a standby needs: identity and feature levels."""
        return self.cluster_id is not None and Features.are_kept(self.catalogue)

    def check_directory(self) -> None:
        """Raise ConfigError if the data directory is another cluster's."""
        try:
            own = read_identity(self.data_dir) if self.data_dir.exists() else None
        except DamagedIdentity:
            own = None
        if own is not None and own.cluster_id != self.cluster_id:
            raise ConfigError(
                f"log.dirs={self.data_dir}: it holds data of cluster {own.cluster_id}, and {self.place.url} "
                f"of {self.cluster_id}; allowed: an empty directory, or another bucket"
            )


class LobbyBackend:
    """The backend of a standby: everything is with the leader."""

    feature_limits: Mapping[str, int] = MappingProxyType({})
    self_compacting = False
    catalogue: Catalogue
    configs: Configs
    topics: Topics
    cluster: Cluster

    identity: Identity

    def __init__(self, standing: Standing) -> None:
        self.served: Mapping[ApiKey, Served] = lobby_apis()
        self._standing = standing
        self.catalogue = standing.catalogue

    async def open(self, broker: Host) -> None:
        """Begin with what the leader has written so far."""
        config, standing = broker.config, self._standing
        cluster_id = standing.cluster_id
        assert cluster_id is not None, "it is waited for"
        self.identity = Identity(cluster_id, config.node_id)
        self.configs = Configs(self.catalogue)
        self.topics = FollowedTopics(standing.catalogue)
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
            lambda: Leader(standing.leader, leader_epoch(self.catalogue)),
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

    async def report(self, sheet: Sheet) -> None:
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
        self._warmed_place = -_WARM_PLACES
        self._warming: asyncio.Task[None] | None = None
        self._warmed_s = float("-inf")
        self.is_tried = False
        """The bucket was tried while this broker waited."""
        self.broker: Broker | None = None
        """Answers clients until another broker takes over its server; None if it never waited."""

    @property
    def former(self) -> int | None:
        """The node that led while this broker waited; None if it never waited."""
        return None if self._standing.leader == NOBODY else self._standing.leader

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
            ConfigError: the bucket cannot be reached with these settings, or the directory is another's.
            OSError: the bucket could not be read for the first 30 s, or an address is not available.
        """
        standing = self._standing
        while not await standing.look():
            if standing.is_complete:
                await asyncio.to_thread(standing.check_directory)
                await self._stand_by(announce)
                return
            await asyncio.sleep(_LOOK_S)

    async def _stand_by(self, announce: Callable[[str], object]) -> None:
        broker = self._broker
        await broker.start()
        takes_over = False
        try:
            announce(broker.describe())
            while not await self._standing.look():
                self._warm()
                await asyncio.sleep(_LOOK_S)
            takes_over = True
        finally:
            if takes_over:
                # clients and probes are answered until the broker has started
                self.broker = broker
                self._standing.takes_over = True
            else:
                await self._backend.withdraw()
                await broker.stop()
            if self._warming is not None:
                await self._warming

    def _warm(self) -> None:
        """Fetch sealed segments from time to time, so that taking over takes no longer than a start."""
        now_s, place = asyncio.get_running_loop().time(), self._standing.silence()[0]
        is_due = now_s >= self._warmed_s + _WARM_S and place >= self._warmed_place + _WARM_PLACES
        if is_due and (self._warming is None or self._warming.done()):
            self._warmed_s, self._warmed_place = now_s, place
            self._warming = asyncio.get_running_loop().create_task(self._fetch())

    async def _fetch(self) -> None:
        standing, node_id = self._standing, self._config.node_id
        try:
            await asyncio.to_thread(
                identify_home, standing.data_dir, node_id, standing.place, is_tried=self.is_tried
            )
        except (OSError, ConfigError) as error:
            logger.warning("cannot fetch what the home has: %s. It is fetched when this broker leads", error)
            return
        self.is_tried = True
