"""Kafka's broker keys that sharecore ignores, or refuses because users rely on their effect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from sharecore.config.keys import Status

_SECRET = re.compile(r"password|passphrase|secret|jaas|keystore\.key|\.certificate")
_ONE = "<one>"
_JVM = "Apache's threads and buffers; here one thread answers, one writes, and memory is bounded in bytes."
_SEGMENTS = "Files of a log; here all logs share one journal, and records are deleted batch by batch."
_FLUSH = "Syncing of a log's files; here every answer waits for the disk (see sharecore.durability)."
_REPLICAS = "Replication; this broker stands alone and keeps one copy."
_ONE_COPY = "Copies of internal topics; this broker stands alone and always keeps one."
_CONTROLLER = "Controllers of a cluster; this broker stands alone and keeps its own metadata."
_STATE_LOG = "Storage of internal topics; one journal stores all logs."
_TIERED = "Tiered storage, which is off (see remote.log.storage.system.enable)."
_STREAMS = "Streams groups are not supported; their members get an error."
_METRICS = "JVM metrics; sharecore does not run on a JVM."
_TOKENS = "delegation tokens are not supported"
_SASL = "not supported; see the sasl settings that work"
_SSL = "not supported; see the ssl settings that work"
_ACCESS = "the principal is always the name in the certificate or of the SASL user"
_QUOTAS = "quotas are set for users, client ids and addresses with kafka-configs"
_CODE = "Java classes cannot be loaded"

_IGNORED = {
    _JVM: """
        background.threads* fetch.purgatory.purge.interval.requests
        delete.records.purgatory.purge.interval.requests group.consumer.assignor.offload.enable*
        group.coordinator.background.threads group.coordinator.cached.buffer.max.bytes*
        group.coordinator.threads group.share.assignor.offload.enable* num.io.threads* num.network.threads*
        num.recovery.threads.per.data.dir* num.replica.alter.log.dirs.threads
        producer.purgatory.purge.interval.requests queued.max.requests
        share.coordinator.cached.buffer.max.bytes* share.coordinator.threads
        share.fetch.purgatory.purge.interval.requests server.max.startup.time.ms
    """,
    "Receive buffers of sockets; the operating system sizes them.": """
        socket.receive.buffer.bytes
    """,
    _SEGMENTS: """
        log.index.interval.bytes* log.index.size.max.bytes* log.preallocate* log.roll.hours
        log.roll.jitter.hours log.roll.jitter.ms* log.roll.ms*
        log.segment.delete.delay.ms* log.initial.task.delay.ms log.dir.failure.timeout.ms
    """,
    _FLUSH: """
        log.flush.interval.messages* log.flush.interval.ms* log.flush.offset.checkpoint.interval.ms
        log.flush.scheduler.interval.ms log.flush.start.offset.checkpoint.interval.ms
    """,
    _REPLICAS: """
        auto.leader.rebalance.enable broker.heartbeat.interval.ms broker.session.timeout.ms
        controlled.shutdown.enable controller.socket.timeout.ms early.start.listeners
        follower.replication.throttled.rate* initial.broker.registration.timeout.ms
        inter.broker.listener.name leader.imbalance.check.interval.seconds
        leader.replication.throttled.rate* num.replica.fetchers*
        replica.alter.log.dirs.io.max.bytes.per.second* alter.log.dirs.replication.quota.window.num
        alter.log.dirs.replication.quota.window.size.seconds replica.fetch.backoff.ms
        replica.fetch.max.bytes replica.fetch.min.bytes replica.fetch.response.max.bytes
        replica.fetch.wait.max.ms replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms
        replica.selector.class sasl.mechanism.controller.protocol sasl.mechanism.inter.broker.protocol*
        security.inter.broker.protocol replica.socket.receive.buffer.bytes replica.socket.timeout.ms
        replication.quota.window.num replication.quota.window.size.seconds request.timeout.ms
        socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
        unclean.leader.election.enable* unclean.leader.election.interval.ms
    """,
    _ONE_COPY: """
        offsets.topic.replication.factor share.coordinator.state.topic.min.isr
        share.coordinator.state.topic.replication.factor transaction.state.log.min.isr
        transaction.state.log.replication.factor
    """,
    _CONTROLLER: """
        controller.performance.always.log.threshold.ms controller.performance.sample.period.ms
        controller.quorum.append.linger.ms controller.quorum.auto.join.enable
        controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
        controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes
        controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms
        controller.quorum.retry.backoff.ms internal.metadata.delete.delay.millis
        internal.metadata.log.segment.bytes internal.metadata.max.batch.size.in.bytes metadata.log.dir
        metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms
        metadata.log.segment.bytes metadata.log.segment.ms metadata.max.idle.interval.ms
        metadata.max.retention.bytes metadata.max.retention.ms unstable.api.versions.enable
        unstable.feature.versions.enable
    """,
    _STATE_LOG: """
        group.coordinator.append.linger.ms offsets.commit.timeout.ms offsets.load.buffer.size
        offsets.topic.compression.codec offsets.topic.segment.bytes share.coordinator.append.linger.ms
        share.coordinator.load.buffer.size share.coordinator.state.topic.compression.codec
        share.coordinator.state.topic.segment.bytes transaction.state.log.load.buffer.size
        transaction.state.log.segment.bytes
    """,
    "Compression level for batches that the broker compresses with lz4; it has one level.": """
        compression.lz4.level*
    """,
    "Retries between brokers; here share state is initialized within the heartbeat that needs it.": """
        group.share.initialize.retry.interval.ms
    """,
    "Retries between brokers; here a partition joins its transaction in one step.": """
        add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
    """,
    "Interval of Apache's check; here each transaction has its own timer.": """
        transaction.abort.timed.out.transaction.cleanup.interval.ms
    """,
    "Interval of Apache's check; here it runs with retention (log.retention.check.interval.ms).": """
        producer.id.expiration.check.interval.ms
    """,
    _TIERED: """
        follower.fetch.last.tiered.offset.enable* log.local.retention.bytes* log.local.retention.ms*
        log.remote.copy.lag.bytes* log.remote.copy.lag.ms* remote.fetch.max.wait.ms*
        remote.list.offsets.request.timeout.ms* remote.log.index.file.cache.total.size.bytes*
        remote.log.index.file.cache.ttl.ms remote.log.manager.copier.thread.pool.size*
        remote.log.manager.copy.max.bytes.per.second* remote.log.manager.copy.quota.window.num
        remote.log.manager.copy.quota.window.size.seconds remote.log.manager.expiration.thread.pool.size*
        remote.log.manager.fetch.max.bytes.per.second* remote.log.manager.fetch.quota.window.num
        remote.log.manager.fetch.quota.window.size.seconds remote.log.manager.follower.thread.pool.size*
        remote.log.manager.task.interval.ms remote.log.manager.task.retry.backoff.max.ms
        remote.log.manager.task.retry.backoff.ms remote.log.manager.task.retry.jitter
        remote.log.manager.thread.pool.size remote.log.metadata.custom.metadata.max.bytes
        remote.log.metadata.manager.class.name remote.log.metadata.manager.class.path
        remote.log.metadata.manager.impl.prefix remote.log.metadata.manager.listener.name
        remote.log.reader.max.pending.tasks remote.log.reader.threads* remote.log.storage.manager.class.name
        remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix
    """,
    _STREAMS: """
        group.streams.acceptable.recovery.lag group.streams.assignment.interval.ms*
        group.streams.assignor.offload.enable* group.streams.assignors group.streams.heartbeat.interval.ms
        group.streams.initial.rebalance.delay.ms group.streams.max.assignment.interval.ms
        group.streams.max.heartbeat.interval.ms group.streams.max.session.timeout.ms group.streams.max.size
        group.streams.max.standby.replicas group.streams.max.warmup.replicas
        group.streams.min.assignment.interval.ms group.streams.min.heartbeat.interval.ms
        group.streams.min.session.timeout.ms group.streams.min.task.offset.interval.ms
        group.streams.num.standby.replicas group.streams.num.warmup.replicas
        group.streams.rack.aware.assignment.tags group.streams.session.timeout.ms
        group.streams.task.offset.interval.ms group.streams.topology.description.plugin.class
    """,
    _METRICS: """
        kafka.metrics.polling.interval.secs metrics.num.samples metrics.recording.level
        metrics.sample.window.ms
    """,
}
"""Why a key means nothing here, to the names that it is true of; * marks what may be altered at run time."""

_REFUSED = {
    _ACCESS: """
        principal.builder.class=org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder
    """,
    _SASL: """
        sasl.client.callback.handler.class= sasl.kerberos.kinit.cmd=/usr/bin/kinit
        sasl.kerberos.min.time.before.relogin=60000 sasl.kerberos.principal.to.local.rules=DEFAULT
        sasl.kerberos.service.name= sasl.kerberos.ticket.renew.jitter=0.05
        sasl.kerberos.ticket.renew.window.factor=0.8 sasl.login.callback.handler.class= sasl.login.class=
        sasl.login.connect.timeout.ms= sasl.login.read.timeout.ms= sasl.login.refresh.buffer.seconds=300
        sasl.login.refresh.min.period.seconds=60 sasl.login.refresh.window.factor=0.8
        sasl.login.refresh.window.jitter=0.05 sasl.login.retry.backoff.max.ms=10000
        sasl.login.retry.backoff.ms=100
        sasl.oauthbearer.allow.unverified.audience=false
        sasl.oauthbearer.allow.unverified.issuer=false sasl.oauthbearer.assertion.algorithm=RS256
        sasl.oauthbearer.assertion.claim.aud= sasl.oauthbearer.assertion.claim.exp.seconds=300
        sasl.oauthbearer.assertion.claim.iss= sasl.oauthbearer.assertion.claim.jti.include=false
        sasl.oauthbearer.assertion.claim.nbf.seconds=60 sasl.oauthbearer.assertion.claim.sub=
        sasl.oauthbearer.assertion.file= sasl.oauthbearer.assertion.private.key.file=
        sasl.oauthbearer.assertion.private.key.passphrase= sasl.oauthbearer.assertion.template.file=
        sasl.oauthbearer.client.credentials.client.id= sasl.oauthbearer.client.credentials.client.secret=
        sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms=10000
        sasl.oauthbearer.jwks.endpoint.retry.backoff.ms=100
        sasl.oauthbearer.jwt.retriever.class=org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
        sasl.oauthbearer.jwt.validator.class=org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
        sasl.oauthbearer.scope= sasl.oauthbearer.scope.claim.name=scope sasl.oauthbearer.token.endpoint.url=
        sasl.server.callback.handler.class=
    """,
    _SSL: """
        security.providers= ssl.allow.dn.changes=false
        ssl.allow.san.changes=false ssl.endpoint.identification.algorithm=https|
        ssl.engine.factory.class= ssl.keymanager.algorithm=SunX509 ssl.protocol=TLSv1.3 ssl.provider=
        ssl.secure.random.implementation= ssl.trustmanager.algorithm=PKIX
    """,
    _TOKENS: """
        delegation.token.expiry.check.interval.ms=3600000 delegation.token.expiry.time.ms=86400000
        delegation.token.max.lifetime.ms=604800000 delegation.token.secret.key=
    """,
    _QUOTAS: """
        client.quota.callback.class=
    """,
    _CODE: """
        alter.config.policy.class.name= create.topic.policy.class.name=
        group.share.dlq.manager.class.name=org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager
        metric.reporters=org.apache.kafka.common.metrics.JmxReporter kafka.metrics.reporters=
    """,
    "values are taken literally; write each value itself": """
        config.providers=
    """,
    "tiered storage is not supported; everything stays in log.dirs": """
        remote.log.storage.system.enable=false
    """,
    "this broker has one log directory": """
        cordoned.log.dirs=
    """,
    "this broker stands alone and joins no cluster": """
        controller.quorum.bootstrap.servers=<one> controller.quorum.voters=<one>
    """,
    "this process is a broker; controller is accepted beside it and has no effect": """
        process.roles=broker,controller|broker
    """,
    "two-phase commit is not supported": """
        transaction.two.phase.commit.enable=false
    """,
    "records are always verified to belong to an open transaction": """
        transaction.partition.verification.enable=true
    """,
    "a group can change its protocol only while it is empty": """
        group.consumer.migration.policy=disabled
    """,
    "the decompressed size of a batch is limited to 256 MiB": """
        max.decompressed.message.bytes=2147483639
    """,
}
"""Why a key is refused, to the names that it is true of, each with the value that asks for nothing."""

_REFUSED_PREFIXES = {
    # of Kafka 4.0
    "group.share.enable": "share groups are on unless group.coordinator.rebalance.protocols omits them",
    "group.share.max.groups": "the number of share groups is not limited",
    "config.providers.": "values are taken literally; write each value itself",
    "quota.": _QUOTAS,
    "sasl.": _SASL,
    "ssl.": _SSL,
}
"""Why every key of a family is refused that is not named above."""


@dataclass(frozen=True, slots=True)
class Unserved:
    """A key of Kafka's that does nothing here.

    Args:
        name: Kafka's name, or how a family's names begin.
        status: IGNORED or REFUSED.
        reason: why, for a person.
        harmless: of a refused key, the value that has no effect and is therefore accepted.
        dynamic: whether it may be altered at run time, to no effect.
    """

    name: str
    status: Status
    reason: str
    harmless: str = ""
    dynamic: bool = False


@cache
def unserved_keys() -> Mapping[str, Unserved]:
    """Every broker key of Kafka's that does nothing here, by name."""
    found = {}
    for reason, names in _IGNORED.items():
        for name in names.split():
            plain = name.rstrip("*")
            found[plain] = Unserved(plain, Status.IGNORED, reason, dynamic=plain != name)
    for reason, pairs in _REFUSED.items():
        for pair in pairs.split():
            name, _, harmless = pair.partition("=")
            found[name] = Unserved(name, Status.REFUSED, reason, harmless)
    return found


def unserved_families() -> list[Unserved]:
    """Families of keys that are refused whatever their values."""
    return [Unserved(prefix, Status.REFUSED, reason) for prefix, reason in _REFUSED_PREFIXES.items()]


def find_unserved(name: str) -> Unserved | None:
    """Return the explanation of a key without effect; None if the name is not Kafka's."""
    known = unserved_keys().get(name)
    if known is not None:
        return known
    return next((family for family in unserved_families() if name.startswith(family.name)), None)


def refusals(properties: Mapping[str, str]) -> list[str]:
    """Return a line with advice for each refused setting."""
    lines = []
    for name, text in sorted(properties.items()):
        known = find_unserved(name)
        if known is None or known.status is not Status.REFUSED or _asks_for_nothing(text, known.harmless):
            continue
        if known.harmless == _ONE:
            instead = "name one address, or leave it out"
        elif known.harmless:
            instead = f"set {known.harmless.split('|')[0]}, or leave it out"
        else:
            instead = "leave it out"
        lines.append(f"{name}={_shown(name, text)}: {known.reason}; {instead}")
    return lines


def remarks(names: Iterable[str]) -> list[str]:
    """One line for each reason why settings mean nothing here, with their names before it."""
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        known = find_unserved(name)
        if known is not None:
            found.setdefault(known.reason, []).append(name)
    return [f"no effect: {', '.join(named)}: {reason}" for reason, named in found.items()]


def _asks_for_nothing(text: str, harmless: str) -> bool:
    """Return whether a list of words, in any order and case, means the default."""
    words = _words(text)
    if harmless == _ONE:
        return len(words) <= 1
    return any(words == _words(allowed) for allowed in harmless.split("|"))


def _shown(name: str, text: str) -> str:
    """Return a value for printing, unless it may be secret."""
    return "***" if _SECRET.search(name) else text


def _words(text: str) -> list[str]:
    return sorted(word.strip().lower() for word in text.split(",") if word.strip())
