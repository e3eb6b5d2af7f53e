"""A standalone broker, which stores everything in a data directory and leads all partitions."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from sharecore._core import StoreEvents, is_proven
from sharecore.broker.cluster import Cluster, SingleBroker
from sharecore.broker.handlers import SERVED
from sharecore.broker.identity import identify, identify_home, repeat
from sharecore.broker.served import Served
from sharecore.broker.store.bucket_watch import BucketWatch
from sharecore.broker.store.cleaner import Cleaner
from sharecore.broker.store.home_nodes import HomeCluster, HomeNodes, leader_epoch, next_leader_epoch
from sharecore.broker.store.home_watch import LEASE_MS, HomeWatch, Lease, fenced_mark
from sharecore.broker.store.isolation import SILENT_MS, Isolation
from sharecore.broker.store.last_leases import LastLeases
from sharecore.broker.store.retention import Retention
from sharecore.config import BrokerConfig
from sharecore.coordinator_log.topic_log import TopicLog
from sharecore.errors import ErrorCode, KafkaError
from sharecore.persister import Persister
from sharecore.protocol import ApiKey
from sharecore.sharestate.coordinator import kafkas_partition
from sharecore.sharestate.keys import STATE_TOPIC, SharePartitionKey
from sharecore.storage import Catalog, Configs, DamagedBatch, Storage, StorageOptions, Topic, Topics
from sharecore.storage.bucket import BucketPlace, CopyOptions, bucket_url
from sharecore.storage.described import CacheUse
from sharecore.storage.identity import Identity
from sharecore.storage.topics import TopicChange
from sharecore.topic_names import INTERNAL_TOPICS

if TYPE_CHECKING:
    from sharecore._core import BucketStatus, Standby
    from sharecore.broker.backend import Host
    from sharecore.metrics.exposition import Exposition


logger = logging.getLogger("sharecore.broker")

_RETRY_S = 1.0
_STATE_BYTES = 32 << 20
"""Limit on unwritten internal data: state of groups, topics and configurations."""


class StoreBackend:
    """Backend with a data directory.

    Args:
        open_storage: opens the data directory.
        is_tried: the bucket of a home is known to be one that can be relied on.
        former: the leader of the home that has ended, if any: clients no longer get its address.
        standby: found that nobody leads the home; None if nothing was watched.
    """

    served: Mapping[ApiKey, Served] = SERVED
    feature_limits: Mapping[str, int] = MappingProxyType({})
    self_compacting = False
    has_successor = False
    identity: Identity
    catalog: Catalog
    configs: Configs
    topics: Topics
    cluster: Cluster
    commits: StoreEvents | None = None

    def __init__(
        self,
        open_storage: Callable[[Path, StorageOptions], Storage] = Storage,
        *,
        is_tried: bool = False,
        former: int | None = None,
        standby: Standby | None = None,
    ) -> None:
        self._open_storage = open_storage
        self._is_tried = is_tried
        self._former = former
        self._standby = standby
        self._cache_bound = 0
        self._nodes: HomeNodes | None = None
        self._retention: Retention | None = None
        self._cleaner: Cleaner | None = None
        self._copy: BucketWatch | None = None
        self._lease: Lease | None = None
        self._isolation: Isolation | None = None
        self._last_leases: LastLeases | None = None
        self._restoring: asyncio.Task[None] | None = None
        self._verifying: asyncio.Task[None] | None = None

    async def open(self, broker: Host) -> None:
        """Open the data directory.

        Raises:
            ConfigError: it belongs to another broker.
            OSError: it is not available.
            KafkaError: it cannot be written.
        """
        config = broker.config
        self._cache_bound = config.sharecore_bucket_cache_bytes
        self._data_dir = Path(config.data_dir)
        self._durability = config.sharecore_durability
        is_home = self._durability == "bucket"
        place = None if config.sharecore_bucket_url is None else bucket_place(config)
        if is_home:
            self.identity = await asyncio.to_thread(
                identify_home,
                self._data_dir,
                config.node_id,
                bucket_place(config),
                is_tried=self._is_tried,
                standby=self._standby,
            )
        else:
            self.identity = identify(self._data_dir, config.node_id)
        options = replace(_storage_options(config), copy=copy_options(config, self.identity, self._standby))
        if is_home:
            # it may fetch records of internal topics from the bucket, while probes are answered
            self.storage = await asyncio.to_thread(self._open_storage, self._data_dir, options)
        else:
            self.storage = self._open_storage(self._data_dir, options)
        self.storage.attach(asyncio.get_running_loop())
        self.commits = self.storage.events
        if place is not None:
            url = bucket_url(place.url)
            self._copy = (
                HomeWatch(url, self._copy_status, fenced_mark(self._data_dir))
                if is_home
                else BucketWatch(url, self._copy_status)
            )
            self._copy.start()
        self.catalog, self.configs = self.storage.catalog, self.storage.configs
        self.topics = self.storage.topics
        try:
            self.cluster = await self._cluster(broker)
            await repeat(self._data_dir, self.identity, self.catalog, of_cluster=is_home)
            await ensure_internal_topics(self.topics, config)
        except BaseException:
            if self._copy is not None:
                self._copy.stop()
            self.storage.close()
            raise

    async def _cluster(self, broker: Host) -> Cluster:
        rack = broker.config.broker_rack
        if not isinstance(self._copy, HomeWatch):
            epoch = leader_epoch(self.catalog)
            return SingleBroker(self.identity, lambda: broker.listeners, rack, epoch)
        epoch = await next_leader_epoch(self.catalog)
        self._nodes = nodes = HomeNodes(
            bucket_place(broker.config),
            self.identity.node_id,
            lambda: broker.listeners,
            rack,
            broker.clock,
            epoch=epoch,
            cache=self.cache_use,
        )
        store = self.storage.store
        self._isolation = Isolation(
            partial(is_proven, store, SILENT_MS),
            lambda: nodes.has_others,
            broker.send_clients_away,
            broker.welcome_clients,
        )
        return HomeCluster(
            self.identity,
            lambda: broker.listeners,
            rack,
            epoch,
            nodes,
            partial(is_proven, store, LEASE_MS),
        )

    async def join(self, broker: Host) -> None:
        """Learn which groups may still hold records acquired before this start."""
        if self._nodes is not None:
            fenced_mark(self._data_dir).unlink(missing_ok=True)
        if isinstance(self._copy, HomeWatch):
            self._lease = Lease(self.cluster.may_lease, broker.share.partitions)
            self._lease.start()
        if self._isolation is not None:
            self._isolation.start()
        self._last_leases = LastLeases(self.catalog, broker.share.partitions, broker.clock)
        has_topics = any(name not in INTERNAL_TOPICS for name in self.topics.names())
        await self._last_leases.begin(has_topics=has_topics)

    def _topic_changed(self, broker: Host, change: TopicChange, topic: Topic) -> None:
        """Recreate a deleted internal topic, as Kafka does: its coordinators start empty."""
        if change is TopicChange.DELETED and topic.name in INTERNAL_TOPICS:
            logger.warning("recreating deleted topic %s: its contents are lost", topic.name)
            if self._restoring is None or self._restoring.done():
                self._restoring = asyncio.get_running_loop().create_task(self._restore_topics(broker))

    async def _restore_topics(self, broker: Host) -> None:
        while any(self.topics.get(name) is None for name in INTERNAL_TOPICS):
            try:
                await ensure_internal_topics(self.topics, broker.config)
            except KafkaError as error:  # noqa: PERF203
                logger.error("cannot recreate an internal topic: %s", error)
                await asyncio.sleep(_RETRY_S)

    async def begin(self, broker: Host) -> None:
        """Start retention and compaction, and describe a home's broker to the others."""
        if self._nodes is not None:
            self._nodes.start(None if self._former == self.identity.node_id else self._former)
        self.topics.on_change(partial(self._topic_changed, broker))
        chores = self.storage, broker.topic_configs, lambda: broker.config, broker.clock
        self._retention, self._cleaner = Retention(*chores), Cleaner(*chores)
        self._retention.start()
        self._cleaner.start()
        self._verifying = asyncio.get_running_loop().create_task(self._verify())

    async def _verify(self) -> None:
        """Verify the share state, which is otherwise read on demand, to detect damage early."""
        try:
            await self.storage.verify(STATE_TOPIC)
        except KafkaError as error:
            logger.error("cannot read %s: %s", STATE_TOPIC, error)

    async def drain(self) -> None:
        """Remove the description of a home's broker; there is nothing else to hand over."""
        if self._nodes is not None:
            self.has_successor = await self._nodes.leave()

    def end(self) -> None:
        """Stop retention and compaction."""
        for task in (self._restoring, self._verifying):
            if task is not None:
                task.cancel()
        if self._retention is not None:
            self._retention.stop()
        if self._cleaner is not None:
            self._cleaner.stop()
        if self._copy is not None:
            self._copy.stop()
        if self._lease is not None:
            self._lease.stop()
        if self._isolation is not None:
            self._isolation.stop()
        if self._nodes is not None:
            self._nodes.stop()

    async def settle(self) -> None:
        """Wait for the disk; for a bucket no longer than it is worth."""
        if isinstance(self._copy, HomeWatch):
            await self._copy.settle(self.storage, self._last_leases)
            return
        if self._last_leases is not None:
            await self._last_leases.end()
        self.storage.sync()

    async def close(self) -> None:
        """Close the data directory."""
        self.storage.close()

    async def succeeded(self) -> None:
        """Wait shortly until the standby leads."""
        if self._nodes is not None:
            await self._nodes.succeeded()

    def trouble(self) -> str:
        """Return why answers wait for the bucket; without one nothing but the disk can be wrong, and a write
        finds that out.
        """
        return self._copy.outage() if isinstance(self._copy, HomeWatch) else ""

    def standby(self) -> str:
        """Return nothing: it serves."""
        return ""

    def describe(self) -> str:
        """Where everything is kept, for a person."""
        if isinstance(self._copy, HomeWatch):
            return f"data in {self._copy.url}, cached in {self._data_dir}"
        copied = f", copied to {self._copy.url}" if self._copy is not None else ""
        return f"data in {self._data_dir}, durability {self._durability}{copied}"

    def cache_use(self) -> CacheUse | None:
        """Return how a home uses its local disk; None without a bound."""
        status = self.storage.store.bucket_status() if self._cache_bound else None
        if status is None:
            return None
        return CacheUse(self._cache_bound, status.local_bytes, status.remote_bytes)

    def _copy_status(self) -> BucketStatus:
        status = self.storage.store.bucket_status()
        assert status is not None, "the store was opened with a bucket"
        return status

    def copy_trouble(self) -> str:
        """Return the problem of the copy in a bucket; empty without a problem or a bucket."""
        return "" if self._copy is None else self._copy.trouble()

    def logs(self, topic: str) -> Sequence[TopicLog]:
        """Return the partitions of a coordinator's topic; raise COORDINATOR_NOT_AVAILABLE without it."""
        found = self.topics.get(topic)
        if found is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"topic {topic} does not exist")
        return list(found.partitions)

    @property
    def owner_check(self) -> None:
        """None: this broker owns every partition."""

    def persister(self, local: Persister) -> Persister:
        return local

    def route(self, key: SharePartitionKey, partitions: int) -> int:
        """Return Kafka's state-topic partition of a share partition."""
        return kafkas_partition(key, partitions)

    def damage(self) -> Sequence[DamagedBatch]:
        """Return the damaged record batches found by readers."""
        return self.storage.damaged

    async def report(self, sheet: Exposition) -> None:
        """Add the metrics of the store."""
        # loaded only if metrics are requested
        from sharecore.broker.metrics.store import report

        disk = await asyncio.to_thread(shutil.disk_usage, self._data_dir)
        store = self.storage.store
        report(sheet, store.figures(), disk.free, len(self.storage.damaged), store.maintenance_failed)
        if self._copy is not None:
            self._copy.report(sheet)
        if self._nodes is not None:
            self._nodes.report(sheet)


def _storage_options(config: BrokerConfig) -> StorageOptions:
    # all data admitted from the network must fit into memory before it is written
    waiting = config.queued_max_request_bytes
    staging = (waiting if waiting >= 0 else config.socket_request_max_bytes * 4) + _STATE_BYTES
    return StorageOptions(
        durability=config.sharecore_durability,
        staging_bytes=staging,
        producer_bytes=config.sharecore_producer_ids_bytes_max,
        own_commit_clients=config.sharecore_loop_commit_clients_max,
    )


def copy_options(
    config: BrokerConfig, identity: Identity, standby: Standby | None = None
) -> CopyOptions | None:
    """Return what is asked of the copy in a bucket; None without one."""
    if config.sharecore_bucket_url is None:
        return None
    return CopyOptions(
        bucket_place(config),
        identity.cluster_id,
        identity.node_id,
        config.sharecore_bucket_interval_ms,
        config.sharecore_bucket_history_ms,
        config.sharecore_bucket_surplus_bytes,
        config.sharecore_bucket_linger_ms,
        config.sharecore_bucket_puts_per_second,
        is_tried=config.sharecore_durability == "bucket",
        standby=standby,
    )


def bucket_place(config: BrokerConfig) -> BucketPlace:
    """Return the bucket of a configuration that names one."""
    assert config.sharecore_bucket_url is not None, "the configuration was checked"
    return BucketPlace(
        config.sharecore_bucket_url,
        config.sharecore_bucket_endpoint,
        config.sharecore_bucket_region,
        config.sharecore_bucket_allow_http,
        config.sharecore_bucket_cache_bytes,
    )


async def ensure_internal_topics(topics: Topics, config: BrokerConfig) -> None:
    """Create missing internal topics, so that coordinators need not wait for them.

    Raises:
        KafkaError: KAFKA_STORAGE_ERROR.
    """
    wanted = {
        "__consumer_offsets": (config.offsets_topic_num_partitions, {"cleanup.policy": "compact"}),
        "__transaction_state": (
            config.transaction_state_log_num_partitions,
            {"cleanup.policy": "compact"},
        ),
        # snapshots make records redundant, and the coordinator deletes those itself
        "__share_group_state": (
            config.share_coordinator_state_topic_num_partitions,
            {"cleanup.policy": "delete", "retention.ms": "-1"},
        ),
    }
    for name, (partitions, settings) in wanted.items():
        if topics.get(name) is None:
            await topics.create(name, partitions, settings)
