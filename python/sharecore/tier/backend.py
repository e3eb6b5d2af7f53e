"""The backend of a tier node: a cluster that stores records and state, and the node's slots."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from sharecore._core import StoreEvents
from sharecore.broker.cluster import Cluster
from sharecore.broker.coordinators.groups import OFFSETS_TOPIC
from sharecore.broker.served import Served
from sharecore.client.settings import read_connection_settings
from sharecore.config import BrokerConfig
from sharecore.coordinator_log.topic_log import TopicLog
from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.persister import Persister
from sharecore.protocol import ApiKey
from sharecore.sharestate.keys import STATE_TOPIC, SharePartitionKey
from sharecore.storage import Catalog, Configs, DamagedBatch, Topic, Topics
from sharecore.storage.identity import Identity
from sharecore.tier.apis import OFFERED
from sharecore.tier.forward import Forwarding, Own, ask_offers
from sharecore.tier.membership.nodes import Nodes
from sharecore.tier.membership.peers import Peers, inter_node_listener, inter_node_settings
from sharecore.tier.membership.view import FIRST_NODE_ID, TierView
from sharecore.tier.names import group_of, settings_topic, transactional_id
from sharecore.tier.persister import TierPersister
from sharecore.tier.settings.own_topics import WrongSetting, find_wrong, oversized, set_right
from sharecore.tier.settings.placement_rules import PlacementRules
from sharecore.tier.settings.topic import Send, SettingsCatalog, TierConfigs, make_own_topic, topics_of
from sharecore.tier.slots import slot_of_group, slot_of_partition
from sharecore.tier.slots.claim_watcher import ClaimWatcher
from sharecore.tier.slots.duties import SlotDuties
from sharecore.tier.slots.leadership import Leadership, Slot
from sharecore.tier.slots.lease import Lease, LeaseEnd
from sharecore.tier.slots.log import SlotLog
from sharecore.tier.upstream.sending import Sending
from sharecore.tier.upstream.sources import Sources
from sharecore.tier.upstream.topics import UpstreamTopics, id_under
from sharecore.tier.upstream.window import Budget
from sharecore.upstream import LATEST, Administration, ExclusiveWriter, Fetcher, Membership, Outlet, Upstream
from sharecore.upstream import Topic as UpstreamTopic
from sharecore.upstream import TopicChange as UpstreamChange
from sharecore.waiting import Periodic

if TYPE_CHECKING:
    from sharecore.broker.backend import Host
    from sharecore.metrics.exposition import Exposition

logger = logging.getLogger("sharecore.tier")

_UPKEEP_MS = 60_000
_TOPICS_MS = 3_600_000
"""Interval between checks of the tier topics' settings, which operators may alter."""
_HEARTBEAT_MS = 1_000
"""Time until a node learns of joins and releases."""
_REBALANCE_MS = 3_000
"""Maximum duration of a rebalance without failures."""
_LAG_S = 2.0
"""Time until every upstream broker knows a topic known to one of them."""
_CLUSTER_IDS = UUID("0e6e2b0c-58d1-5c0b-9d2f-6f0f8f2f3b11")
_DEFAULTS = {"client.id": "sharecore-tier", "metadata.max.age.ms": "5000", "request.timeout.ms": "10000"}
"""Connection defaults: new topics are seen within the metadata age; a broker may be silent for a session."""


class TierBackend:
    """The cluster behind a node, and the node's slots in it."""

    served: Mapping[ApiKey, Served] = OFFERED
    feature_limits: Mapping[str, int] = MappingProxyType({})
    self_compacting = True
    has_successor = False
    commits: StoreEvents | None = None
    identity: Identity
    catalog: Catalog
    configs: Configs
    topics: Topics
    cluster: Cluster

    async def open(self, broker: Host) -> None:
        """Connect, and create the topics of the tier.

        Raises:
            ConfigError: invalid connection settings.
            KafkaError: the cluster cannot be reached, or this user lacks a permission.
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
        self._sending = Sending(upstream, self._outlet)
        self._fetchers: dict[bool, Fetcher] = {}
        self._forwarding: Forwarding | None = None
        self._said: set[WrongSetting] = set()
        self._sources = self.sources(config, admin, self._sending.send)
        slots = await self._make_topics()
        await upstream.all_topics()
        cluster_id = _cluster_id(upstream.metadata.cluster_id, config.sharecore_tier_state_topic)
        self.identity = Identity(cluster_id, FIRST_NODE_ID + config.node_id)
        state_topic = config.sharecore_tier_state_topic
        topic, group = settings_topic(state_topic), group_of(state_topic)
        self.catalog = catalog = SettingsCatalog(topic, admin, self._sending.write, broker.clock)
        await catalog.load()
        await catalog.check_slots(slots)
        self.configs = TierConfigs(catalog)
        catalog.follow(self._fetching(committed=False))
        self._settings = catalog
        self._placement = PlacementRules(catalog)
        self._placement.on_change(self._placement_changed)
        shown = {state_topic: (STATE_TOPIC, OFFSETS_TOPIC)} if config.sharecore_tier_pass_through else {}
        self.topics = UpstreamTopics(upstream.metadata, self._sources, admin, self.configs, shown)
        self._slots = [self._slot(broker, index) for index in range(slots)]
        self._state_is_gone = False
        self._join(broker, group)
        self._upkeep = Periodic(self._leadership.upkeep, lambda: _UPKEEP_MS, "slot maintenance")
        self._looks = Periodic(self._look_at_topics, lambda: _TOPICS_MS, "the check of the tier's topics")
        if config.sharecore_tier_pass_through:
            own = Own(
                {group},
                lambda name: name.startswith(f"{group}-"),
                {STATE_TOPIC: state_topic},
                {OFFSETS_TOPIC},
                {state_topic, topic},
            )
            self._forwarding = forwarding = Forwarding(upstream, own, await ask_offers(upstream))
            self.served = {**OFFERED, **forwarding.served}
            self.feature_limits = forwarding.feature_limits

    def _join(self, broker: Host, group: str) -> None:
        """Prepare this node for its tier; it is not a member yet."""
        config, node_id, clock = broker.config, self.identity.node_id, broker.clock
        self._lease = lease = Lease(lambda: self._membership.lease_from_ms, clock.monotonic_ms)
        self._leadership = Leadership(self._slots, lease, node_id, lambda: self._fetching(committed=False))
        self._nodes = Nodes(
            node_id,
            lambda: _endpoints(broker),
            config.broker_rack,
            self._leadership,
            clock,
            rejoin=lambda: self._membership.rejoin(),
            watch=lambda slots: claim_watcher.watch(slots),
            pins=self._pins,
        )
        logs = [slot.log for slot in self._slots]
        claim_watcher = ClaimWatcher(logs, lambda: self._fetching(committed=False), self._nodes.seen)
        self._nodes.drain(config.node_id in self._placement.drained())
        self.cluster = self._view = TierView(node_id, self._nodes, self._leadership, self._slot_of)
        listener = inter_node_listener(config, broker.listeners.values())
        self._peers = Peers(inter_node_settings(config, listener), lambda: self._nodes.live(listener.name))
        self._membership = Membership(
            self._upstream,
            group,
            self._nodes,
            instance_id=f"sharecore-{config.node_id}",
            heartbeat_ms=_HEARTBEAT_MS,
            confirmed_by=config.sharecore_tier_state_topic,
        )

    def sources(self, config: BrokerConfig, admin: Administration, send: Send) -> Sources:
        """Return the shared resources of upstream logs, within their memory limit."""
        return Sources(
            admin,
            self._fetching,
            send,
            Budget(config.sharecore_tier_cache_bytes),
            ahead_bytes=config.sharecore_tier_ahead_bytes,
        )

    def _slot(self, broker: Host, index: int) -> Slot:
        topic = self._config.sharecore_tier_state_topic
        writer = ExclusiveWriter(self._outlet, topic, index, transactional_id(topic, index))
        node_id = self.identity.node_id
        log = SlotLog(topic, index, node_id, self._admin, writer, broker.clock, self._lost)
        return Slot(log, broker.clock)

    def _lost(self, log: SlotLog, error: KafkaError) -> None:
        self._leadership.lost(log, error)

    async def _make_topics(self) -> int:
        """Create the state topic if needed; return the number of slots."""
        admin, topic = self._admin, self._config.sharecore_tier_state_topic
        wanted = topics_of(self._config)
        there = await self._upstream.topics(name for name, *_ in wanted)
        missing = [each for each in wanted if isinstance(there[each[0]], KafkaError)]
        gone = [name for name, *_ in missing]
        if gone == [topic]:
            raise ConfigError(
                f"sharecore.tier.state.topic={topic}: it is gone upstream, though the tier's settings are "
                "there; allowed: to make it anew with `sharecore tier repair`, where groups then begin anew"
            )
        if gone == [settings_topic(topic)] and await self._holds_state():
            raise ConfigError(
                f"sharecore.tier.state.topic={topic}: {settings_topic(topic)} is gone upstream, and with it "
                "users, rights and what groups had set, such as share.auto.offset.reset; allowed: to make it "
                "(one partition, cleanup.policy=compact), and to set them anew"
            )
        for name, partitions, replicas, settings in missing:
            await make_own_topic(admin, name, partitions, replicas, settings)
        # one broker has confirmed the topic: others may not know it yet
        found = self._upstream.metadata.get(topic)
        assert found is not None
        await self._check_topics()
        self._note_state_topic(UpstreamChange.CREATED, found)
        # before any client learns of a recreated topic and requests its leader
        self._upstream.metadata.on_change(self._note_state_topic)
        return len(found.partitions)

    def _note_state_topic(self, change: UpstreamChange, topic: UpstreamTopic) -> None:
        """Store the ids under which clients request slots; a recreated topic has new ones."""
        if topic.name == self._config.sharecore_tier_state_topic and change is not UpstreamChange.DELETED:
            self._state_ids = {topic.topic_id, id_under(OFFSETS_TOPIC, topic.topic_id)}

    async def _check_topics(self) -> None:
        """Refuse tier topics with settings that lose share state; correct and log other settings.

        Raises:
            ConfigError: a setting must be corrected first.
        """
        if text := oversized(self._config):
            logger.warning("%s", text)
        wrong = await find_wrong(self._admin, self._config)
        if fatal := next((each for each in wrong if each.is_fatal), None):
            raise ConfigError(
                f"sharecore.tier.state.topic={fatal.topic}: its {fatal.name} upstream is {fatal.found}; "
                f"allowed: {fatal.wanted}, as {fatal.why}"
            )
        for each, error in await self._set_right(wrong):
            text = f"{each}. This node cannot set it: {error}. Set it upstream"
            if each.costs_data:
                raise ConfigError(text)
            logger.warning("%s", text)

    async def _set_right(self, wrong: Sequence[WrongSetting]) -> list[tuple[WrongSetting, KafkaError]]:
        """Correct the tier's own settings, and log each once; return those that failed."""
        failed = await set_right(self._admin, wrong)
        kept = {each for each, _ in failed}
        for each in wrong:
            if each.is_ours and each not in kept:
                logger.warning("%s; it was set to %s", each, each.wanted)
            elif not each.is_ours and each not in self._said:
                logger.warning("%s", each)
        self._said = set(wrong)
        return failed

    async def _look_at_topics(self) -> None:
        """Correct settings altered since, or log what an operator must correct."""
        try:
            wrong = await find_wrong(self._admin, self._config)
            said = self._said
            for each, error in await self._set_right([each for each in wrong if not each.is_fatal]):
                if each not in said:
                    logger.error("%s; this node cannot set it: %s", each, error)
            for each in wrong:
                if each.is_fatal and each not in said:
                    logger.error("%s; stop the nodes and run `sharecore tier repair --yes`", each)
            self._said = set(wrong)
        except KafkaError as error:
            logger.warning("cannot check the settings of the tier's topics: %s", error)

    async def _holds_state(self) -> bool:
        """Return whether slots have records without settings, which no new tier has."""
        name = self._config.sharecore_tier_state_topic
        # another node may be creating the topics, and brokers learn of them one by one
        await asyncio.sleep(_LAG_S)
        there = await self._upstream.topics([name, settings_topic(name)])
        topic = there[name]
        settings = there[settings_topic(name)]
        is_gone = isinstance(settings, KafkaError) and settings.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if isinstance(topic, KafkaError) or not is_gone:
            return False
        ends = await self._admin.list_offsets(
            {(name, index): LATEST for index in range(len(topic.partitions))}
        )
        return any(isinstance(end, KafkaError) or end.offset > 0 for end in ends.values())

    # the rest of broker.backend.Backend

    async def join(self, broker: Host) -> None:
        """Join the tier, and learn the slot owners.

        Until then no leader is known: a client would drop its records acquired on other nodes.
        """
        self._duties = SlotDuties(
            broker.groups,
            broker.share,
            broker.clock,
            self._slot_of,
            lambda group_id: slot_of_group(group_id, len(self._slots)),
            self._config.sharecore_tier_drain_timeout_ms,
            self._upstream.refreshed,
        )
        self._lease_end = LeaseEnd(self._lease, self._lease_ended, asyncio.get_running_loop())
        self._nodes.moved = self._duties.moved
        self._leadership.begin(self._duties, self._nodes.changed)
        self.topics.on_change(self._topic_changed)
        self._upstream.metadata.on_change(self._upstream_changed)
        self._membership.start()
        await self._nodes.known.wait()

    async def begin(self, broker: Host) -> None:
        """Take this node's slots."""
        await self._leadership.settled()
        self._upkeep.start()
        self._looks.start()
        self._lease_end.start()

    async def drain(self) -> None:
        """Hand over the slots one by one as members acknowledge their records, then leave the group.

        Without another node, members may still acknowledge their records.
        """
        time_ms = self._config.sharecore_tier_drain_timeout_ms + _REBALANCE_MS
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(time_ms / 1000):
                await self._nodes.leave()
                await self._leadership.left()
        await self._leadership.rest()
        await self.settle()
        self._nodes.close()
        self._leadership.close()
        with contextlib.suppress(KafkaError):
            await self._membership.leave()

    def end(self) -> None:
        """Stop slot maintenance."""
        self._duties.close()
        self._upkeep.stop()
        self._looks.stop()
        self._lease_end.stop()

    async def settle(self) -> None:
        """Wait for pending writes."""
        await asyncio.gather(*(slot.log.idle() for slot in self._slots))

    async def succeeded(self) -> None:
        """Do nothing: the other nodes took the slots one by one."""

    async def close(self) -> None:
        """Release the slots, and close all connections."""
        self._nodes.close()
        self._leadership.close()
        if self._forwarding is not None:
            self._forwarding.close()
        self._settings.close()
        await self._peers.close()
        await self._membership.close()
        self._sources.close()
        for fetcher in self._fetchers.values():
            await fetcher.close()
        await self._upstream.close()

    def trouble(self) -> str:
        """Return why this node may not lead now; empty if it may."""
        if self._lease.holds:
            return ""
        cause = self._membership.error or self._membership.problem or self._upstream.problem
        why = str(cause) if cause else "no heartbeat was answered in time"
        return f"this node leads nothing until the cluster confirms it as a member of its tier: {why}"

    def standby(self) -> str:
        """Return nothing: it serves."""
        return ""

    def describe(self) -> str:
        """Return a human-readable description of the storage."""
        at = self._config.upstream_settings.get("bootstrap.servers", "")
        return f"{len(self._slots)} slots of {self._config.sharecore_tier_state_topic} at {at}"

    def logs(self, topic: str) -> Sequence[TopicLog]:
        """Return the partitions of a coordinator topic: each is in a slot."""
        if topic == STATE_TOPIC:
            return [slot.state for slot in self._slots]
        if topic == OFFSETS_TOPIC:
            return [slot.groups for slot in self._slots]
        return ()

    @property
    def owner_check(self) -> Callable[[int], None]:
        """Check that this node owns a partition; raises KafkaError if it does not."""
        return self.check_owner

    def check_owner(self, partition: int) -> None:
        """Raise KafkaError (NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS) unless this node owns a slot."""
        self._leadership.check(partition)

    def persister(self, local: Persister) -> Persister:
        """Return a persister that stores share state on the slot's owner."""
        return TierPersister(
            local,
            self._view,
            self.identity.node_id,
            self._peers,
            asyncio.get_running_loop(),
            self._upstream.clock.monotonic_ms,
            self._peers.settings.default_api_timeout_ms,
        )

    def route(self, key: SharePartitionKey, partitions: int) -> int:
        """Return the slot with the state of a share partition."""
        return self._slot_of(key.topic_id, key.partition)

    def _slot_of(self, topic_id: UUID, partition: int) -> int:
        """Return the slot of a topic partition; partitions of the state topic are slots themselves."""
        if topic_id in self._state_ids and 0 <= partition < len(self._slots):
            return partition
        return slot_of_partition(topic_id, partition, len(self._slots))

    def cache_use(self) -> None:
        """Return nothing: a node stores nothing."""

    def copy_trouble(self) -> str:
        """Return nothing: a node has no data to copy."""
        return ""

    def damage(self) -> Sequence[DamagedBatch]:
        """Return nothing: the cluster stores the records."""
        return ()

    async def report(self, sheet: Exposition) -> None:
        """Add metrics of slots and fetches."""
        leadership, nodes = self._leadership, len(self._nodes.others) + 1
        leadership.figures.report(sheet, leadership.count(), self._lease, self._sources.budget, nodes)

    def _lease_ended(self) -> None:
        logger.warning("refusing clients: %s", self.trouble())
        self._duties.lease_ended()

    def _topic_changed(self, change: object, topic: Topic) -> None:
        if self.topics.by_id(topic.topic_id) is None:
            self._duties.topic_gone(topic.topic_id)

    def _upstream_changed(self, change: UpstreamChange, topic: UpstreamTopic) -> None:
        """Log the loss of the state topic, as clients do not learn why acknowledgements fail.

        When it is there again, slots are claimed again: the state in memory is not in the log.
        """
        if topic.name != self._config.sharecore_tier_state_topic:
            return
        lost = f"{topic.name} was deleted upstream, and with it the state of share groups"
        if change is UpstreamChange.DELETED:
            self._state_is_gone = True
            logger.error("%s: acknowledgements fail until `sharecore tier repair --yes` recreates it", lost)
        elif change is UpstreamChange.RECREATED or (change is UpstreamChange.CREATED and self._state_is_gone):
            self._state_is_gone = False
            logger.error("%s: it exists again; each group starts by its reset policy", lost)
            if len(topic.partitions) != len(self._slots):
                logger.error(
                    "%s has %d partitions, and this tier has %d slots: delete it, and run "
                    "`sharecore tier repair --yes`, which recreates it with as many",
                    topic.name,
                    len(topic.partitions),
                    len(self._slots),
                )
            another = KafkaError(ErrorCode.NOT_COORDINATOR, f"{topic.name} is another topic now")
            for index, slot in enumerate(self._slots):
                if self._leadership.owns(index):
                    self._leadership.lost(slot.log, another)

    def _pins(self) -> dict[int, int]:
        return {slot: FIRST_NODE_ID + node for slot, node in self._placement.pins().items()}

    def _placement_changed(self) -> None:
        """Apply changed placement rules."""
        self._nodes.drain(self._config.node_id in self._placement.drained())
        self._nodes.report()

    def _fetching(self, committed: bool) -> Fetcher:
        if committed not in self._fetchers:
            rack = self._config.broker_rack or ""
            self._fetchers[committed] = Fetcher(self._upstream, committed=committed, rack=rack)
        return self._fetchers[committed]


def _endpoints(broker: Host) -> dict[str, tuple[str, int]]:
    return {name: (each.advertised_host, each.advertised_port) for name, each in broker.listeners.items()}


def _cluster_id(upstream: str, topic: str) -> str:
    """Return the tier's own cluster id: the same on every node, but not the upstream cluster's."""
    return base64.urlsafe_b64encode(uuid5(_CLUSTER_IDS, f"{upstream}/{topic}").bytes).decode().rstrip("=")
