"""Dead-letter writing, wired to the broker's topics."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from sharecore.broker.cluster import Cluster
from sharecore.broker.configs.groups import GroupConfigs
from sharecore.broker.configs.topics import TopicConfigs
from sharecore.broker.features import Features
from sharecore.broker.topic_rules import check_collision, check_name
from sharecore.clock import Clock
from sharecore.config import BrokerConfig
from sharecore.deadletters import DeadLetterService, Destinations
from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import Configs, ResourceType, Topics
from sharecore.waiting import CallLater


def dead_letter_service(
    config: Callable[[], BrokerConfig],
    topics: Topics,
    configs: Configs,
    topic_configs: TopicConfigs,
    group_configs: GroupConfigs,
    features: Features,
    cluster: Cluster,
    clock: Clock,
    call_later: CallLater,
) -> DeadLetterService:
    """Return the dead-letter service of all share groups, which retries when a relevant topic changes."""

    async def create(name: str, settings: dict[str, str]) -> None:
        check_name(name)
        check_collision(name, topics)
        if config().default_replication_factor != 1:
            raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "this cluster has 1 broker")
        await topics.create(name, config().num_partitions, settings)

    def leads(topic_id: UUID, partition: int) -> bool:
        try:
            cluster.check_leader(topic_id, partition)
        except KafkaError:
            return False
        return True

    def changed(kind: int, name: str) -> None:
        service.changed()
        if kind == ResourceType.GROUP:
            service.warn(name)

    service = DeadLetterService(
        Destinations(topics, group_configs.get, topic_configs.get, config, create),
        lambda: features.has_dead_letters,
        clock,
        call_later,
        leads,
    )
    topics.on_change(lambda change, topic: service.changed())
    configs.on_change(changed)
    return service
