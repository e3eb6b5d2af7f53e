"""Creating topics over the wire."""

from __future__ import annotations

from collections.abc import Mapping

from sharecore.client.configs import config_text
from sharecore.client.wire.transport import Transport
from sharecore.protocol import calls

TIMEOUT_MS = 30_000
"""How long a controller may take to change a topic."""
BROKER_DEFAULT = -1


async def create_topic(
    transport: Transport,
    name: str,
    *,
    partitions: int = BROKER_DEFAULT,
    replication_factor: int = BROKER_DEFAULT,
    configs: Mapping[str, object] | None = None,
    validate_only: bool = False,
) -> None:
    """Create a topic, and wait until a broker shows it.

    Args:
        partitions, replication_factor: -1: the broker's default.
        configs: settings of the topic, by Kafka's names.
        validate_only: only check whether it could be created.

    Raises:
        KafkaError: TOPIC_ALREADY_EXISTS, or the broker returned an error or did not respond.
    """
    topic = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replication_factor,
        "assignments": [],
        "configs": [{"name": key, "value": config_text(value)} for key, value in (configs or {}).items()],
    }
    message = {"topics": [topic], "timeout_ms": TIMEOUT_MS, "validate_only": validate_only}
    await transport.controller(calls.CREATE_TOPICS, message, lambda answer: answer.topics[0])
    if not validate_only:
        await transport.wait_for_topic(name)
