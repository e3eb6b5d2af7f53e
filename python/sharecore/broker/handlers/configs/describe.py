"""DescribeConfigs: topics, brokers, loggers, groups and client-metrics subscriptions."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from sharecore.broker.handlers.configs.loggers import logger_entries
from sharecore.broker.handlers.configs.report import (
    CLUSTER_WIDE,
    COPY_TROUBLE,
    DAMAGE,
    broker_entries,
    client_metrics_entries,
    cluster_entries,
    copy_entries,
    damage_entries,
    group_entries,
    held_back_entry,
    letter_entries,
    partition_entry,
    partition_topics,
    topic_entries,
)
from sharecore.broker.handlers.configs.rights import ConfigRights, config_rights
from sharecore.broker.handlers.configs.waiting import HELD_BACK
from sharecore.broker.identity import as_node_id
from sharecore.broker.requests.context import RequestContext, Result
from sharecore.broker.topic_rules import check_name
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation
from sharecore.security.acl import ResourceType as Protected
from sharecore.storage import ResourceType
from sharecore.waiting import Steps

if TYPE_CHECKING:
    from sharecore.broker.handlers.configs.report import Entry
    from sharecore.protocol import messages

_TYPES_SINCE = 1


def describe_configs(
    context: RequestContext, request: messages.DescribeConfigsRequest
) -> Result[messages.DescribeConfigsResponse]:
    """Return settings with their sources; refuse the whole request if it names an unknown type."""
    unknown = next((each for each in request.resources if each.resource_type not in _TYPES), None)
    if unknown is None:
        return context.run(_describe_all(context, request))
    text = f"There are no resources of type {unknown.resource_type}."
    return {
        "results": [
            _nothing(resource) | {"error_code": ErrorCode.INVALID_REQUEST, "error_message": text}
            for resource in request.resources
        ]
    }


_TYPES = {2, 4, 8, 16, 32}
"""Topics, brokers, broker loggers, client metrics, groups."""


def _nothing(resource: messages.DescribeConfigsResource) -> messages.DescribeConfigsResult:
    return {
        "error_message": "",
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
        "configs": [],
    }


def _describe_all(
    context: RequestContext, request: messages.DescribeConfigsRequest
) -> Steps[messages.DescribeConfigsResponse]:
    named = [(resource.resource_type, resource.resource_name) for resource in request.resources]
    rights = yield from config_rights(context, Operation.DESCRIBE_CONFIGS, named)
    results: list[messages.DescribeConfigsResult] = []
    described: dict[tuple[int, str, tuple[str, ...]], messages.DescribeConfigsResult] = {}
    for resource in request.resources:
        keys = tuple(resource.configuration_keys or ())
        ask = resource.resource_type, resource.resource_name, keys
        # a repeated resource takes no more memory
        if ask not in described:
            described[ask] = yield from _describe(context, request, resource, rights)
        results.append(described[ask])
        yield
    return {"results": results}


def _of_partitions(context: RequestContext, resource: messages.DescribeConfigsResource) -> Steps[list[Entry]]:
    """Return the requested settings of share partitions in topics that the client may describe."""
    topics = partition_topics(dict.fromkeys(resource.configuration_keys or ()))
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, topics.values(), quiet=True)
    entries = []
    for name, topic in topics.items():
        if topic in seen:
            entry = partition_entry(context.broker, resource.resource_name, name, topic)
            entries += [] if entry is None else [entry]
        yield
    return entries


def _describe(
    context: RequestContext,
    request: messages.DescribeConfigsRequest,
    resource: messages.DescribeConfigsResource,
    rights: ConfigRights,
) -> Steps[messages.DescribeConfigsResult]:
    answer = _nothing(resource)
    try:
        rights.require(resource.resource_type, resource.resource_name)
        wanted = set(resource.configuration_keys or ())
        entries = _entries(context, resource.resource_type, resource.resource_name, wanted)
        if resource.resource_type == ResourceType.GROUP and resource.configuration_keys:
            entries += letter_entries(context.broker, resource.resource_name, wanted)
            if HELD_BACK in resource.configuration_keys:
                entries.append(held_back_entry(context.broker, resource.resource_name))
            entries += yield from _of_partitions(context, resource)
        if resource.resource_type == ResourceType.BROKER and DAMAGE in (resource.configuration_keys or ()):
            entries += damage_entries(context.broker) if resource.resource_name else []
        if resource.resource_type == ResourceType.BROKER and COPY_TROUBLE in (
            resource.configuration_keys or ()
        ):
            entries += copy_entries(context.broker) if resource.resource_name else []
    except KafkaError as error:
        return answer | {"error_code": error.code, "error_message": error.message}
    configs = []
    for entry in entries:
        # for Kafka, an empty list means all keys, like null
        if not wanted or entry["name"] in wanted:
            configs.append(_trim(entry, request))
        yield
    answer["configs"] = configs
    return answer


def _trim(entry: Entry, request: messages.DescribeConfigsRequest) -> Entry:
    if not request.include_synonyms:
        entry["synonyms"] = []
    # a logger's text is always empty
    if not request.include_documentation and entry["documentation"]:
        entry["documentation"] = None
    return entry


def _entries(context: RequestContext, resource_type: int, name: str, wanted: Collection[str]) -> list[Entry]:
    """Return the settings of a resource, perhaps only those in `wanted`, if it names any."""
    broker = context.broker
    if resource_type == ResourceType.TOPIC:
        check_name(name)
        if broker.topics.get(name) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic_entries(broker, broker.configs.get(ResourceType.TOPIC, name))
    if resource_type == ResourceType.BROKER:
        if name == CLUSTER_WIDE:
            return cluster_entries(broker)
        _check_node(broker.identity.node_id, name, "or empty string, ")
        return broker_entries(broker)
    if resource_type == ResourceType.BROKER_LOGGER:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        _check_node(broker.identity.node_id, name)
        return logger_entries()
    if resource_type == ResourceType.GROUP:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return group_entries(broker, broker.configs.get(ResourceType.GROUP, name), wanted)
    if resource_type == ResourceType.CLIENT_METRICS:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
        return client_metrics_entries(broker.configs.get(ResourceType.CLIENT_METRICS, name))
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"Resource type {resource_type} has no configuration here.")


def _check_node(node_id: int, name: str, otherwise: str = "") -> None:
    """Raise KafkaError(INVALID_REQUEST) if a name is not this broker's node id."""
    asked = as_node_id(name)
    if asked is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if asked != node_id:
        text = f"Unexpected broker id, expected {node_id} {otherwise}but received {name}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)


def list_config_resources(
    context: RequestContext, request: messages.ListConfigResourcesRequest
) -> messages.ListConfigResourcesResponse:
    """Return the resources that have configurations; raise KafkaError without DESCRIBE_CONFIGS."""
    context.require(Operation.DESCRIBE_CONFIGS, Protected.CLUSTER)
    # version 0 requests only client-metrics subscriptions
    wanted = (
        set(request.resource_types) if context.api_version >= _TYPES_SINCE else {ResourceType.CLIENT_METRICS}
    )
    if not wanted <= set(ResourceType):
        return {"error_code": ErrorCode.UNSUPPORTED_VERSION, "config_resources": []}
    broker = context.broker
    names = {
        ResourceType.GROUP: broker.configs.names(ResourceType.GROUP),
        ResourceType.CLIENT_METRICS: broker.configs.names(ResourceType.CLIENT_METRICS),
        ResourceType.BROKER: [str(broker.identity.node_id)],
        ResourceType.TOPIC: broker.topics.names(),
    }
    return {
        "config_resources": [
            {"resource_name": name, "resource_type": kind}
            for kind in names
            if not wanted or kind in wanted
            for name in sorted(names[kind])
        ]
    }
