"""Topics of the broker's own coordinators."""

from __future__ import annotations

from sharecore.config import BrokerConfig
from sharecore.storage import Topics


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
