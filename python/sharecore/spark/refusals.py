"""What to do about an error that ends a query."""

from __future__ import annotations

from sharecore.errors import ErrorCode, KafkaError
from sharecore.spark.options import Options


def explain(error: KafkaError, options: Options) -> str:
    """Return the error, and what to do about it."""
    servers = ", ".join(f"{host}:{port}" for host, port in options.client.bootstrap_servers)
    group, topics = options.client.group_id, ", ".join(options.topics)
    hints = {
        ErrorCode.NETWORK_EXCEPTION: f"no broker answers at kafka.bootstrap.servers={servers}",
        ErrorCode.GROUP_AUTHORIZATION_FAILED: f"the user may not read group {group}: grant READ on the group",
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: f"the user may not read {topics}: grant READ on each topic",
        ErrorCode.SASL_AUTHENTICATION_FAILED: (
            f"{servers} and this client do not accept each other: see to kafka.security.protocol, "
            "kafka.sasl.* and kafka.ssl.*"
        ),
        ErrorCode.UNSUPPORTED_VERSION: "share groups need Kafka 4.2 or later, with share.version 1",
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "create the topic first, or correct the option subscribe",
    }
    hint = hints.get(error.code)
    return f"{hint} ({error})" if hint else str(error)
