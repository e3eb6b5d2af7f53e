"""Settings of Kafka's share consumer that are refused, or have no effect here."""

from __future__ import annotations

REFUSED = {
    "auto.offset.reset": "it belongs to the group: set the group's share.auto.offset.reset",
    "enable.auto.commit": "set share.acknowledgement.mode to implicit or explicit",
    "group.instance.id": "members of a share group are not static",
    "group.protocol": "a share consumer has its own",
    "group.remote.assignor": "the broker assigns partitions",
    "heartbeat.interval.ms": "it belongs to the group: set the group's share.heartbeat.interval.ms",
    "interceptor.classes": "it is for Java",
    "isolation.level": "it belongs to the group: set the group's share.isolation.level",
    "partition.assignment.strategy": "the broker assigns partitions",
    "session.timeout.ms": "it belongs to the group: set the group's share.session.timeout.ms",
}
"""Java's share consumer refuses them too."""

_INSTEAD = {
    "allow.auto.create.topics": ("false", "consumers do not create topics"),
    "auto.commit.interval.ms": (None, "acknowledgements go with polls and commits"),
    "check.crcs": ("true", "checksums are always checked"),
    "client.dns.lookup": ("use_all_dns_ips", "all addresses of a name are tried"),
    "connections.max.idle.ms": (None, "connections stay as long as the consumer"),
    "exclude.internal.topics": ("true", "topics are subscribed by name"),
    "max.partition.fetch.bytes": (None, "share fetches are bounded by fetch.max.bytes"),
    "metadata.recovery.strategy": ("rebootstrap", "bootstrap.servers are always tried again"),
    "metric.reporters": (None, "read them with metrics()"),
    "ssl.enabled.protocols": (None, "TLS 1.2 and newer are used, as configured in OpenSSL"),
    "ssl.protocol": (None, "TLS 1.2 and newer are used, as configured in OpenSSL"),
    "ssl.cipher.suites": (None, "OpenSSL's are used"),
}
"""The value that requests what happens anyway, and what that is."""

_NO_EFFECT = {
    "bootstrap.resolve.timeout.ms",
    "config.providers",
    "internal.throw.on.fetch.stable.offset.unsupported",
    "metadata.cluster.check.enable",
    "metadata.recovery.rebootstrap.trigger.ms",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "receive.buffer.bytes",
    "sasl.client.callback.handler.class",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.service.name",
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.oauthbearer.allow.unverified.audience",
    "sasl.oauthbearer.allow.unverified.issuer",
    "sasl.oauthbearer.assertion.algorithm",
    "sasl.oauthbearer.assertion.claim.aud",
    "sasl.oauthbearer.assertion.claim.exp.seconds",
    "sasl.oauthbearer.assertion.claim.iss",
    "sasl.oauthbearer.assertion.claim.jti.include",
    "sasl.oauthbearer.assertion.claim.nbf.seconds",
    "sasl.oauthbearer.assertion.claim.sub",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.assertion.template.file",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.header.urlencode",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.jwt.validator.class",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
    "security.providers",
    "send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms",
    "ssl.engine.factory.class",
    "ssl.keymanager.algorithm",
    "ssl.keystore.password",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
    "ssl.truststore.password",
}
UNUSED = _NO_EFFECT | set(_INSTEAD)
"""Accepted by Java's share consumer."""


def warning(name: str, value: object) -> str | None:
    """Return a warning about a setting in `UNUSED`; None if its value is what happens anyway."""
    asks_for, instead = _INSTEAD.get(name, (None, "it is for Java's client"))
    if asks_for is not None and str(value).lower() == asks_for:
        return None
    return f"{name}={value} has no effect: {instead}"
