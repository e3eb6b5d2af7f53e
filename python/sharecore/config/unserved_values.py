"""Types and limits of Kafka's broker keys without effect, which are validated nevertheless."""

from __future__ import annotations

from functools import cache

from sharecore.config.keys import ConfigKey, Kind, Limits, Status
from sharecore.config.unserved import unserved_keys

_VALUES = {
    "BOOLEAN": """
        auto.leader.rebalance.enable controlled.shutdown.enable controller.quorum.auto.join.enable
        follower.fetch.last.tiered.offset.enable group.consumer.assignor.offload.enable
        group.share.assignor.offload.enable group.streams.assignor.offload.enable log.preallocate
        unclean.leader.election.enable unstable.api.versions.enable unstable.feature.versions.enable
    """,
    "DOUBLE 0..0.5": """
        remote.log.manager.task.retry.jitter
    """,
    "INT": """
        broker.heartbeat.interval.ms broker.session.timeout.ms controller.socket.timeout.ms
        delete.records.purgatory.purge.interval.requests fetch.purgatory.purge.interval.requests
        initial.broker.registration.timeout.ms internal.metadata.log.segment.bytes
        internal.metadata.max.batch.size.in.bytes num.replica.alter.log.dirs.threads
        offsets.topic.compression.codec producer.purgatory.purge.interval.requests
        replica.fetch.min.bytes replica.fetch.wait.max.ms replica.socket.receive.buffer.bytes
        replica.socket.timeout.ms request.timeout.ms share.coordinator.state.topic.compression.codec
        share.fetch.purgatory.purge.interval.requests socket.receive.buffer.bytes
    """,
    "INT -1..": """
        group.coordinator.append.linger.ms share.coordinator.append.linger.ms
    """,
    "INT 0..": """
        add.partitions.to.txn.retry.backoff.max.ms controller.quorum.append.linger.ms
        controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
        controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms
        controller.quorum.retry.backoff.ms group.streams.assignment.interval.ms
        group.streams.initial.rebalance.delay.ms group.streams.max.assignment.interval.ms
        group.streams.max.standby.replicas group.streams.max.warmup.replicas
        group.streams.min.assignment.interval.ms group.streams.num.standby.replicas
        group.streams.num.warmup.replicas log.flush.offset.checkpoint.interval.ms
        log.flush.start.offset.checkpoint.interval.ms log.index.interval.bytes log.roll.jitter.hours
        metadata.max.idle.interval.ms remote.log.metadata.custom.metadata.max.bytes
        replica.fetch.backoff.ms replica.fetch.max.bytes replica.fetch.response.max.bytes
    """,
    "INT 1..": """
        share.coordinator.state.topic.min.isr transaction.state.log.min.isr
        add.partitions.to.txn.retry.backoff.ms alter.log.dirs.replication.quota.window.num
        alter.log.dirs.replication.quota.window.size.seconds background.threads
        controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes
        group.coordinator.background.threads group.coordinator.threads
        group.share.initialize.retry.interval.ms group.streams.heartbeat.interval.ms
        group.streams.max.heartbeat.interval.ms group.streams.max.session.timeout.ms
        group.streams.max.size group.streams.min.heartbeat.interval.ms
        group.streams.min.session.timeout.ms group.streams.min.task.offset.interval.ms
        group.streams.session.timeout.ms group.streams.task.offset.interval.ms
        kafka.metrics.polling.interval.secs log.roll.hours metrics.num.samples num.io.threads
        num.network.threads num.recovery.threads.per.data.dir num.replica.fetchers
        offsets.commit.timeout.ms offsets.load.buffer.size offsets.topic.segment.bytes
        producer.id.expiration.check.interval.ms queued.max.requests remote.fetch.max.wait.ms
        remote.log.manager.copier.thread.pool.size remote.log.manager.copy.quota.window.num
        remote.log.manager.copy.quota.window.size.seconds remote.log.manager.expiration.thread.pool.size
        remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds
        remote.log.manager.follower.thread.pool.size remote.log.manager.thread.pool.size
        remote.log.reader.max.pending.tasks remote.log.reader.threads replication.quota.window.num
        replication.quota.window.size.seconds share.coordinator.load.buffer.size
        share.coordinator.state.topic.segment.bytes share.coordinator.threads
        transaction.abort.timed.out.transaction.cleanup.interval.ms
        transaction.state.log.load.buffer.size transaction.state.log.segment.bytes
    """,
    "INT 1..17": """
        compression.lz4.level
    """,
    "INT 4..": """
        log.index.size.max.bytes
    """,
    "INT 524288..": """
        group.coordinator.cached.buffer.max.bytes share.coordinator.cached.buffer.max.bytes
    """,
    "INT 8388608..": """
        metadata.log.segment.bytes
    """,
    "LIST": """
        early.start.listeners group.streams.assignors group.streams.rack.aware.assignment.tags
    """,
    "LONG": """
        internal.metadata.delete.delay.millis log.flush.interval.ms log.flush.scheduler.interval.ms
        log.roll.jitter.ms log.roll.ms metadata.log.segment.ms metadata.max.retention.bytes
        metadata.max.retention.ms replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms
        socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
    """,
    "LONG -1..": """
        log.remote.copy.lag.bytes log.remote.copy.lag.ms remote.log.index.file.cache.ttl.ms
    """,
    "LONG -2..": """
        log.local.retention.bytes log.local.retention.ms
    """,
    "LONG 0..": """
        controller.performance.always.log.threshold.ms follower.replication.throttled.rate
        group.streams.acceptable.recovery.lag leader.replication.throttled.rate
        log.initial.task.delay.ms log.segment.delete.delay.ms metadata.log.max.snapshot.interval.ms
        replica.alter.log.dirs.io.max.bytes.per.second server.max.startup.time.ms
    """,
    "LONG 1..": """
        leader.imbalance.check.interval.seconds log.dir.failure.timeout.ms log.flush.interval.messages
        metadata.log.max.record.bytes.between.snapshots metrics.sample.window.ms
        remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
        remote.log.manager.copy.max.bytes.per.second remote.log.manager.fetch.max.bytes.per.second
        remote.log.manager.task.interval.ms remote.log.manager.task.retry.backoff.max.ms
        remote.log.manager.task.retry.backoff.ms unclean.leader.election.interval.ms
    """,
    "LONG 100..": """
        controller.performance.sample.period.ms
    """,
    "SHORT 1..": """
        offsets.topic.replication.factor share.coordinator.state.topic.replication.factor
        transaction.state.log.replication.factor
    """,
    "STRING": """
        group.streams.topology.description.plugin.class inter.broker.listener.name metadata.log.dir
        metrics.recording.level remote.log.metadata.manager.class.name
        remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
        remote.log.metadata.manager.listener.name remote.log.storage.manager.class.name
        remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix
        replica.selector.class sasl.mechanism.controller.protocol sasl.mechanism.inter.broker.protocol
    """,
    "STRING PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL": """
        security.inter.broker.protocol
    """,
}
"""Names by type and limits, as Kafka 4.4.0 declares them: lowest and highest value, or the words."""


@cache
def ignored_keys() -> dict[str, ConfigKey]:
    """Every broker key of Kafka's that has no effect here, by name."""
    found = {}
    for declared, names in _VALUES.items():
        kind, _, limits = declared.partition(" ")
        for name in names.split():
            unserved = unserved_keys()[name]
            found[name] = ConfigKey(
                name=name,
                kind=Kind[kind],
                default=None,
                doc=unserved.reason,
                **_limits(limits),
            )
    return found


def _limits(text: str) -> Limits:
    if "|" in text:
        return {"status": Status.IGNORED, "choices": tuple(text.split("|"))}
    low, _, high = text.partition("..")
    limits: Limits = {"status": Status.IGNORED}
    if low:
        limits["low"] = _number(low)
    if high:
        limits["high"] = _number(high)
    return limits


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)
