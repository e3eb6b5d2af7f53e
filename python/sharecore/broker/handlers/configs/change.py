"""Configuration changes: validated before they are persisted, all or nothing per resource."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from sharecore.broker.connections.limits import check_hosts
from sharecore.broker.handlers.configs.key_change import Change, KeyOperation
from sharecore.broker.handlers.configs.loggers import change_levels
from sharecore.broker.handlers.configs.report import CLUSTER_WIDE
from sharecore.broker.handlers.configs.rights import config_rights
from sharecore.broker.identity import as_node_id
from sharecore.broker.requests.context import RequestContext
from sharecore.broker.topic_rules import check_name
from sharecore.config import (
    ConfigKey,
    Dynamic,
    Kind,
    Status,
    broker_keys,
    check_group_config,
    check_topic_config,
    find_unserved,
    group_keys,
    ignored_keys,
    listener_key,
    remarks,
    split_listener,
    topic_keys,
)
from sharecore.config.client_metrics import check_client_metrics
from sharecore.coordinator.share.group import ShareGroup
from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.security.acl import Operation
from sharecore.storage import ResourceType

if TYPE_CHECKING:
    from sharecore.broker.requests.services import Services
    from sharecore.protocol import messages

    _Altered: TypeAlias = messages.AlterConfigsResponse
    Config_co = TypeVar("Config_co", covariant=True)

    class _Resource(Protocol[Config_co]):
        @property
        def resource_type(self) -> int: ...
        @property
        def resource_name(self) -> str: ...
        @property
        def configs(self) -> Sequence[Config_co]: ...

    class _Alteration(Protocol[Config_co]):
        @property
        def resources(self) -> Sequence[_Resource[Config_co]]: ...
        @property
        def validate_only(self) -> bool: ...

    from sharecore.protocol import messages


log = logging.getLogger("sharecore.config")


Config = TypeVar("Config")
_CHANGES_MAX = 5_000
"""Maximum changes of one resource; a broker has some hundred settings per listener."""
_NOT_ZERO = ("max.connections", "max.connection.creation.rate")
"""Settings for which Kafka accepts 0 only at startup."""


def changed(
    broker: Services, resource_type: int, name: str, changes: Sequence[Change], *, incremental: bool = True
) -> dict[str, str]:
    """Return a resource's own settings after validated changes.

    Args:
        broker: the broker.
        resource_type: a `ResourceType` or its number.
        name: the resource's name.
        changes: at most one change per key.
        incremental: False replaces all previous settings.

    Raises:
        KafkaError: the resource does not exist, or a change is not allowed.
    """
    if resource_type not in set(ResourceType) - {ResourceType.BROKER_LOGGER}:
        text = f"Unknown resource type {resource_type}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    if resource_type == ResourceType.BROKER and name != CLUSTER_WIDE:
        _check_node(broker.identity.node_id, name)
    settings = dict(broker.configs.get(resource_type, name)) if incremental else {}
    for change in changes:
        _apply(broker, resource_type, settings, change)
    _check_name(resource_type, name)
    _check(broker, resource_type, name, settings, {change.name for change in changes})
    if resource_type == ResourceType.TOPIC and broker.topics.get(name) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if resource_type == ResourceType.GROUP:
        _check_dead_letters(broker, name, settings)
    return settings


def _check_node(node_id: int, name: str, unexpected: str = "Unexpected broker id, expected") -> None:
    """Raise KafkaError(INVALID_REQUEST) if a name is not this broker's node id."""
    asked = as_node_id(name)
    if asked is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if asked != node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{unexpected} {node_id}, but received {name}")


def _check_dead_letters(broker: Services, group_id: str, settings: Mapping[str, str]) -> None:
    """Raise KafkaError(INVALID_CONFIG) for a group that would read its own dead-letter topic."""
    topic = settings.get("errors.deadletterqueue.topic.name", "").strip()
    group = broker.groups.registry.get(group_id)
    if topic and isinstance(group, ShareGroup) and topic in group.sources:
        text = (
            f"errors.deadletterqueue.topic.name: group {group_id} reads {topic}: a group cannot read its "
            "own dead-letter topic"
        )
        raise KafkaError(ErrorCode.INVALID_CONFIG, text)


def check_number(changes: Sequence[object]) -> None:
    """Raise KafkaError if a request changes too many settings of a resource."""
    if len(changes) > _CHANGES_MAX:
        text = f"A request changes {_CHANGES_MAX} settings of a resource at most."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)


def _check_changes(changes: Sequence[Change]) -> None:
    """Raise KafkaError if a request contradicts itself, or names too many keys."""
    check_number(changes)
    if len({change.name for change in changes}) < len(changes):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    missing = [each.name for each in changes if each.value is None and each.operation != KeyOperation.DELETE]
    if missing:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(missing)}")


def _check_name(resource_type: int, name: str) -> None:
    """Raise KafkaError if the name is invalid for the resource type."""
    if resource_type == ResourceType.TOPIC:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        check_name(name)
    elif resource_type == ResourceType.GROUP and not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    elif resource_type == ResourceType.CLIENT_METRICS and not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")


def _apply(broker: Services, resource_type: int, settings: dict[str, str], change: Change) -> None:
    if change.operation == KeyOperation.DELETE:
        settings.pop(change.name, None)
        return
    assert change.value is not None
    if change.operation == KeyOperation.SET:
        settings[change.name] = change.value
    else:
        operation = KeyOperation(change.operation)
        key = _keys(resource_type).get(change.name)
        if key is None or key.kind is not Kind.LIST:
            text = f"Can't {operation.name} to key {change.name} because its type is not LIST."
            raise KafkaError(ErrorCode.INVALID_CONFIG, text)
        words, parts = _current_list(broker, settings, key), _parts(change.value)
        if operation is KeyOperation.APPEND:
            known = set(words)
            words += [word for word in dict.fromkeys(parts) if word not in known]
        else:
            words = _subtract(words, parts)
        settings[change.name] = ",".join(words)


def _subtract(words: Iterable[str], parts: Iterable[str]) -> list[str]:
    """Return the words without those in `parts`, counting repetitions."""
    gone, left = Counter(parts), []
    for word in words:
        if gone[word] > 0:
            gone[word] -= 1
        else:
            left.append(word)
    return left


def _parts(value: str) -> list[str]:
    """Return the parts of a list value; empty words count, except after the last comma."""
    parts = [part.strip() for part in value.split(",")]
    while value and parts and not parts[-1]:
        del parts[-1]
    return parts


@cache
def _keys(resource_type: int) -> dict[str, ConfigKey]:
    if resource_type == ResourceType.CLIENT_METRICS:
        return {}  # Kafka does not know that some of theirs are lists
    keys = {
        ResourceType.TOPIC: topic_keys,
        ResourceType.BROKER: broker_keys,
        ResourceType.GROUP: group_keys,
    }[ResourceType(resource_type)]()
    return {name: key for name, (_, key) in keys.items()}


def _current_list(broker: Services, settings: Mapping[str, str], key: ConfigKey) -> list[str]:
    if key.name in settings:
        value = key.parse(settings[key.name])
    elif key.name in broker_keys():
        value = broker.config.value(key.name)
    else:
        value = broker.config.value(key.synonym) if key.synonym else key.default
    return list(value) if isinstance(value, tuple) else []


def _check(
    broker: Services, resource_type: int, name: str, settings: Mapping[str, str], touched: set[str]
) -> None:
    try:
        if resource_type == ResourceType.TOPIC:
            check_topic_config(settings, broker.config)
            for each in sorted(touched & settings.keys()):
                if (key := topic_keys()[each][1]).status is Status.IGNORED:
                    log.info("no effect: %s: %s", each, key.doc)
        elif resource_type == ResourceType.GROUP:
            check_group_config(settings, broker.config)
        elif resource_type == ResourceType.CLIENT_METRICS:
            check_client_metrics(name, settings)
        else:
            _check_broker(broker, settings, touched)
    except ConfigError as error:
        code = ErrorCode.INVALID_REQUEST if resource_type == ResourceType.BROKER else ErrorCode.INVALID_CONFIG
        raise KafkaError(code, error.answer) from None


def _check_broker(broker: Services, settings: Mapping[str, str], touched: set[str]) -> None:
    names = sorted(touched & settings.keys())
    for name in names:
        known = broker_keys().get(listener_key(name))
        unserved = find_unserved(listener_key(name)) if known is None else None
        if unserved is not None and unserved.dynamic:
            ignored_keys()[unserved.name].parse(settings[name])
            log.info("%s", *remarks([unserved.name]))
        elif known is None or known[1].dynamic is Dynamic.READ_ONLY:
            reason = "" if unserved is None else f": {unserved.reason}"
            text = f"Cannot update these configs dynamically: [{name}]{reason}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    broker.config.with_properties(settings)
    served = {None, *map(str.lower, broker.listeners)}
    for name in names:
        listener, key = split_listener(name)
        if listener in served and key in _NOT_ZERO and int(settings[name]) == 0:
            raise ConfigError(f"{name}=0: nobody could connect to change it back; allowed: at least 1")


async def _check_files(broker: Services, settings: Mapping[str, str]) -> None:
    """Raise KafkaError if files or addresses named by broker settings cannot be used."""
    config = broker.config.with_properties(settings)
    try:
        await check_hosts(broker.hosts, config)
        await broker.transport.check(config)
        await broker.mechanisms.check(config)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, error.answer) from None


async def alter(
    context: RequestContext,
    request: _Alteration[Config],
    change: Callable[[Config], Change],
    *,
    incremental: bool,
) -> _Altered:
    """Change resources one by one; return the answer.

    Args:
        request: (Incremental)AlterConfigs.
        change: returns the change of one of its entries.
        incremental: False replaces all previous settings.
    """
    broker = context.broker
    pace = broker.turns.pace()
    wanted: list[tuple[int, str, list[Change]]] = []
    times = Counter[tuple[int, str]]()
    types, strange = set(ResourceType), set[int]()
    for resource in request.resources:
        changes = []
        for config in resource.configs:
            changes.append(change(config))
            await pace.step()
        wanted.append((resource.resource_type, resource.resource_name, changes))
        times[resource.resource_type, resource.resource_name] += 1
        if resource.resource_type in types:
            strange.update(each.operation for each in changes)
        await pace.step()
    strange -= set(KeyOperation)
    rights = await context.finish(config_rights(context, Operation.ALTER_CONFIGS, times))
    answers: list[messages.AlterConfigsResponseAlterConfigsResourceResponse] = []
    for resource_type, name, changes in wanted:
        await pace.step()
        answer: messages.AlterConfigsResponseAlterConfigsResourceResponse = {
            "error_message": None,
            "resource_type": resource_type,
            "resource_name": name,
        }
        answers.append(answer)
        try:
            if strange:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"There is no operation {min(strange)}.")
            if times[resource_type, name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            _check_changes(changes)
            levels = incremental and resource_type == ResourceType.BROKER_LOGGER
            make = partial(changed, broker, resource_type, name, changes, incremental=incremental)
            # as on Apache Kafka, a broker validates its own settings first: that needs only the request
            is_own = resource_type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER)
            settings = make() if is_own and not levels else None
            rights.require(resource_type, name, said=not levels)
            if levels:
                _check_node(broker.identity.node_id, name, "Unexpected node id. Expected")
                change_levels(changes, validate_only=request.validate_only)
                continue
            if settings is not None:
                await _check_files(broker, settings)
            elif request.validate_only:
                make()
            if not request.validate_only:
                await broker.configs.alter(resource_type, name, make)
                if resource_type == ResourceType.BROKER:
                    await broker.transport.settled()
                    await broker.mechanisms.settled()
        except KafkaError as error:
            answer["error_code"], answer["error_message"] = error.code, error.message or None
    return {"responses": answers}


async def alter_configs(
    context: RequestContext, request: messages.AlterConfigsRequest
) -> messages.AlterConfigsResponse:
    """Replace all settings of each resource."""

    def change(config: messages.AlterConfigsAlterableConfig) -> Change:
        return Change(config.name, KeyOperation.SET, config.value)

    return await alter(context, request, change, incremental=False)


async def incremental_alter_configs(
    context: RequestContext, request: messages.IncrementalAlterConfigsRequest
) -> messages.IncrementalAlterConfigsResponse:
    """Change single settings of each resource (KIP-339)."""

    def change(config: messages.IncrementalAlterConfigsAlterableConfig) -> Change:
        return Change(config.name, config.config_operation, config.value)

    return await alter(context, request, change, incremental=True)
