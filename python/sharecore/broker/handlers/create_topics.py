"""CreateTopics: creates topics one by one; a failed one does not affect the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sharecore.broker.config_report import topic_entries
from sharecore.broker.context import EVERY_NAME, RequestContext
from sharecore.broker.topic_rules import (
    TIME_IS_OVER,
    check_collision,
    check_name,
    has_no_time,
    partition_count,
)
from sharecore.config import check_topic_config
from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.quotas import Mutations
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps

if TYPE_CHECKING:
    from sharecore.broker.services import Services


async def handle(context: RequestContext, request: Any) -> dict[str, Any]:
    named = Counter(topic.name for topic in request.topics)
    by_name = {topic.name: topic for topic in request.topics}
    creatable = await context.finish(_creatable(context, named))
    if has_no_time(request, named, creatable):
        return {"topics": [_refused(topic.name, TIME_IS_OVER) for topic in request.topics]}
    mutations, pace = context.mutations(strict_since=6), context.broker.turns.pace()
    answers = []
    config_answers = _ConfigAnswers(context.broker)
    for name, times in named.items():
        topic = by_name[name]
        await pace.step()
        try:
            if times > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            if name not in creatable:
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
            answers.append(
                await _create(context, topic, mutations, config_answers, validate_only=request.validate_only)
            )
        except KafkaError as error:
            answers.append(_refused(name, error))
    return {"throttle_time_ms": mutations.throttle_ms, "topics": answers}


def _refused(name: str, error: KafkaError) -> dict[str, Any]:
    return {
        "name": name,
        "error_code": error.code,
        "error_message": error.message or None,
        "num_partitions": -1,
        "replication_factor": -1,
        "configs": [],
    }


def _creatable(context: RequestContext, names: Iterable[str]) -> Steps[Container[str]]:
    """Return the topics that the client may create."""
    if context.may(Operation.CREATE, ResourceType.CLUSTER, quiet=True):
        return EVERY_NAME
    return (yield from context.may_each(Operation.CREATE, ResourceType.TOPIC, names))


class _ConfigAnswers:
    """Topic configurations in the answer; equal ones share a list."""

    def __init__(self, broker: Services) -> None:
        self._broker = broker
        self._known: dict[tuple[tuple[str, str], ...], list[dict[str, Any]]] = {}

    def of(self, configs: dict[str, str]) -> list[dict[str, Any]]:
        """Return each key with its value and source."""
        key = tuple(sorted(configs.items()))
        found = self._known.get(key)
        if found is None:
            entries = topic_entries(self._broker, configs)
            names = ("name", "value", "read_only", "config_source")
            found = self._known[key] = [{name: entry[name] for name in names} for entry in entries]
        return found


async def _create(
    context: RequestContext,
    topic: Any,
    mutations: Mutations,
    config_answers: _ConfigAnswers,
    *,
    validate_only: bool,
) -> dict[str, Any]:
    broker = context.broker
    check_name(topic.name)
    if broker.topics.get(topic.name) is not None:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    check_collision(topic.name, broker.topics)
    config = broker.config
    configs = _configs(topic)
    try:
        check_topic_config(configs, config)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, error.answer) from None
    count = partition_count(
        topic, config.num_partitions, config.default_replication_factor, broker.identity.node_id
    )
    mutations.take(count)
    topic_id = uuid4()  # no topic configuration in a validate-only request
    if not validate_only:
        topic_id = (await broker.topics.create(topic.name, count, configs)).topic_id
    answer = {
        "name": topic.name,
        "topic_id": topic_id,
        "error_message": None,
        "num_partitions": count,
        "replication_factor": 1,
        "configs": config_answers.of(configs),
    }
    if not context.may(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name):
        answer |= {
            "num_partitions": -1,
            "replication_factor": -1,
            "configs": None,
            "topic_config_error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        }
    return answer


def _configs(topic: Any) -> dict[str, str]:
    configs = {}
    for config in topic.configs:
        if config.value is None:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {config.name}"
            )
        configs[config.name] = config.value
    return configs
