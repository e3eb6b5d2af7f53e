"""What a node of a tier stands on: a cluster that keeps records and state, and the slots that are its own."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from sharecore.broker.cluster import Cluster
from sharecore.broker.coordinators import OFFSETS_TOPIC
from sharecore.broker.identity import Identity
from sharecore.broker.served import Served
from sharecore.client.settings import read_connection_settings
from sharecore.config import BrokerConfig
from sharecore.coordinator_log.topic_log import TopicLog
from sharecore.errors import ConfigError, KafkaError
from sharecore.protocol import ApiKey
from sharecore.sharestate.keys import STATE_TOPIC, SharePartitionKey
from sharecore.storage import Catalogue, Configs, Topics
from sharecore.tier.apis import OFFERED
from sharecore.tier.leadership import Leadership, Slot
from sharecore.tier.lease import Lease
from sharecore.tier.nodes import Nodes
from sharecore.tier.settings import SettingsCatalogue, TierConfigs
from sharecore.tier.slot_log import SlotLog
from sharecore.tier.slots import slot_of_partition
from sharecore.tier.sources import Sources
from sharecore.tier.topics import UpstreamTopics
from sharecore.tier.view import FIRST_NODE_ID, Standing, TierView
from sharecore.tier.window import Budget
from sharecore.upstream import Administration, ExclusiveWriter, Fetcher, Membership, Outlet, Upstream
from sharecore.waiting import Periodic

if TYPE_CHECKING:
    from sharecore.broker.ground import Host
    from sharecore.metrics.exposition import Sheet

logger = logging.getLogger(__name__)

_UPKEEP_MS = 60_000
_CLUSTER_IDS = UUID("0e6e2b0c-58d1-5c0b-9d2f-6f0f8f2f3b11")
SETTINGS_SUFFIX = ".settings"
_DEFAULTS = {"client.id": "sharecore-tier", "metadata.max.age.ms": "5000"}
"""Of the connection: new topics are seen within so long."""


class TierGround:
    """The cluster behind a node, and what the node does of it."""

    served: Mapping[ApiKey, Served] = OFFERED
    self_compacting = True
    identity: Identity
    catalogue: Catalogue
    configs: Configs
    topics: Topics
    cluster: Cluster

    async def open(self, broker: Host) -> None:
        """Connects, and makes the topics that a tier needs.

        Raises:
            ConfigError: settings of the connection that cannot stand.
            KafkaError: the cluster cannot be reached, or does not let this user do what is needed.
        """
        config = broker.config
        settings = read_connection_settings(_DEFAULTS | dict(config.upstream_settings))
        self._upstream = Upstream(settings, broker.clock)
        await self._upstream.start()
        try:
            await self._open(broker, config)
        except BaseException:
            await self._upstream.close()
            raise

    async def _open(self, broker: Host, config: BrokerConfig) -> None:
        upstream, self._config = self._upstream, config
        self._admin = admin = Administration(upstream)
        self._outlet = Outlet(upstream)
        self._fetchers: dict[bool, Fetcher] = {}
        self._sources = self.sources(config, admin)
        slots = await self._make_topics()
        await upstream.all_topics()
        cluster_id = _cluster_id(upstream.metadata.cluster_id, config.sharecore_tier_state_topic)
        self.identity = Identity(cluster_id, FIRST_NODE_ID + config.node_id)
        settings_topic = config.sharecore_tier_state_topic + SETTINGS_SUFFIX
        self.catalogue = catalogue = SettingsCatalogue(settings_topic, admin, self._send, broker.clock)
        await catalogue.load()
        self.configs = configs = TierConfigs(catalogue)
        catalogue.follow(self._fetching(committed=False), configs.told)
        self.topics = UpstreamTopics(upstream.metadata, self._sources, admin, self.configs)
        self._slots = [self._slot(broker, index) for index in range(slots)]
        lease = Lease(lambda: self._membership.lease_from_ms, broker.clock.monotonic_ms)
        self._leadership = Leadership(self._slots, lease)
        node_id = self.identity.node_id
        self._nodes = Nodes(
            node_id, lambda: _endpoints(broker), config.broker_rack, self._leadership, self._assigned
        )
        self.cluster = self._view = TierView(node_id, self._nodes.live, self._leadership)
        group = f"sharecore-{config.sharecore_tier_state_topic}"
        self._membership = Membership(upstream, group, self._nodes, instance_id=f"sharecore-{config.node_id}")
        self._upkeep = Periodic(self._leadership.upkeep, lambda: _UPKEEP_MS, "the upkeep of slots")

    def sources(self, config: BrokerConfig, admin: Administration) -> Sources:
        """What the logs of the cluster share, within the memory that is theirs."""
        return Sources(
            admin,
            self._fetching,
            self._send,
            Budget(config.sharecore_tier_cache_bytes),
            ahead_bytes=config.sharecore_tier_ahead_bytes,
        )

    def _slot(self, broker: Host, index: int) -> Slot:
        topic = self._config.sharecore_tier_state_topic
        writer = ExclusiveWriter(self._outlet, topic, index, f"sharecore-{topic}-{index}")
        log = SlotLog(topic, index, self._config.node_id, self._admin, writer, broker.clock, self._lost)
        return Slot(log, broker.clock)

    def _lost(self, log: SlotLog, error: KafkaError) -> None:
        self._leadership.lost(log, error)

    async def _make_topics(self) -> int:
        """Has the topics that a tier keeps its state in; returns the number of slots."""
        admin, topic = self._admin, self._config.sharecore_tier_state_topic
        for name, partitions, replicas, settings in topics_of(self._config):
            found = (await self._upstream.topics([name]))[name]
            if isinstance(found, KafkaError):
                await admin.create_topic(name, partitions, replicas, settings)
        found = (await self._upstream.topics([topic]))[topic]
        if isinstance(found, KafkaError):
            raise found
        policy = (await admin.topic_configs(topic)).get("cleanup.policy")
        if policy != "delete":
            raise ConfigError(
                f"sharecore.tier.state.topic={topic}: its cleanup.policy upstream is {policy}; "
                "allowed: delete, as state is written in updates that follow on each other"
            )
        return len(found.partitions)

    # the rest of what a broker asks of its ground

    async def begin(self, broker: Host) -> None:
        """Joins the tier, and takes the slots if they are this node's."""
        self._broker = broker
        self._leadership.begin(self)
        self._membership.start()
        await self._nodes.known.wait()
        await self._leadership.settled()
        self._upkeep.start()

    def take_over(self, slot: int) -> None:
        """Goes on with the groups and the share partitions of a slot."""
        self._broker.groups.records.load_partition(slot)
        self._broker.share.take_over(slot)

    def resign(self, slot: int) -> None:
        """Forgets the groups and the share partitions of a slot."""
        slots = len(self._slots)
        self._broker.share.resign(
            slot, lambda topic_id, partition: slot_of_partition(topic_id, partition, slots) == slot
        )

    async def drain(self) -> None:
        """Gives up the slots, and its place: another node has them at once."""
        await self.settle()
        self._leadership.assign({})
        with contextlib.suppress(KafkaError):
            await self._membership.leave()

    def end(self) -> None:
        """Looks after the slots no longer."""
        self._upkeep.stop()

    async def settle(self) -> None:
        """Waits for the writes under way."""
        await asyncio.gather(*(slot.log.idle() for slot in self._slots))

    async def close(self) -> None:
        """Gives up the slots, and closes all connections."""
        self._leadership.close()
        await self._membership.close()
        self._sources.close()
        for fetcher in self._fetchers.values():
            await fetcher.close()
        await self._upstream.close()

    def describe(self) -> str:
        """Where everything is kept, for a person."""
        at = self._config.upstream_settings.get("bootstrap.servers", "")
        return f"{len(self._slots)} slots of {self._config.sharecore_tier_state_topic} at {at}"

    def logs(self, topic: str) -> Sequence[TopicLog]:
        """The partitions of a coordinator's topic: each lies in a slot."""
        if topic == STATE_TOPIC:
            return [slot.state for slot in self._slots]
        if topic == OFFSETS_TOPIC:
            return [slot.groups for slot in self._slots]
        return ()

    def check_owner(self, partition: int) -> None:
        """Raises KafkaError(NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS) unless a slot is this node's."""
        self._leadership.check(partition)

    def route(self, key: SharePartitionKey, partitions: int) -> int:
        """The slot that holds the state of a share partition."""
        return slot_of_partition(key.topic_id, key.partition, partitions)

    def report(self, sheet: Sheet) -> None:
        """Figures of its own: none yet."""

    def _assigned(self, owner: int, epoch: int) -> None:
        self._view.assigned([Standing(owner, epoch)] * len(self._slots))

    def _fetching(self, committed: bool) -> Fetcher:
        if committed not in self._fetchers:
            rack = self._config.broker_rack or ""
            self._fetchers[committed] = Fetcher(self._upstream, committed=committed, rack=rack)
        return self._fetchers[committed]

    def _send(self, topic: str, partition: int, records: bytes) -> asyncio.Future[int]:
        return asyncio.ensure_future(self._sent(topic, partition, records))

    async def _sent(self, topic: str, partition: int, records: bytes) -> int:
        async def send() -> int:
            answer = await self._outlet.send(topic, partition, records)
            if answer.error is not None:
                raise answer.error
            return answer.base_offset

        return await self._upstream.retry(send)


def _endpoints(broker: Host) -> dict[str, tuple[str, int]]:
    return {name: (each.advertised_host, each.advertised_port) for name, each in broker.listeners.items()}


def topics_of(config: BrokerConfig) -> list[tuple[str, int, int, dict[str, str]]]:
    """The topics that a tier makes: name, partitions, replicas and settings of each."""
    common = {"min.insync.replicas": str(config.sharecore_tier_min_insync_replicas)}
    state = common | {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
    settings = common | {"cleanup.policy": "compact"}
    topic, replicas = config.sharecore_tier_state_topic, config.sharecore_tier_replication_factor
    return [
        (topic, config.sharecore_tier_slots, replicas, state),
        (topic + SETTINGS_SUFFIX, 1, replicas, settings),
    ]


def _cluster_id(upstream: str, topic: str) -> str:
    """The tier's own: the same on every node, and not the cluster's, whose brokers it does not show."""
    return base64.urlsafe_b64encode(uuid5(_CLUSTER_IDS, f"{upstream}/{topic}").bytes).decode().rstrip("=")
