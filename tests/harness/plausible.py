"""Requests of every API that make sense, from the schemas, about as many things as are wanted."""

from __future__ import annotations

import base64
import socket
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.harness.batches import batch

from sharecore.protocol import ApiKey, codec
from sharecore.protocol.schema import FieldSpec, Struct

Message = dict[str, Any]


SETTINGS: Mapping[int, tuple[str, str]] = MappingProxyType(
    {
        2: ("retention.ms", "1000000"),
        4: ("log.retention.ms", "1000000"),
        8: ("org.apache.kafka", "INFO"),
        16: ("interval.ms", "60000"),
        32: ("share.auto.offset.reset", "earliest"),
    }
)
"""A setting of each type of resource."""


class Names(NamedTuple):
    """What requests are about.

    Attributes:
        topic_id: of the topic.
        settings: names and values of settings, by the number of the type of the resource.
    """

    topic: str
    topic_id: uuid.UUID
    group: str
    transactional_id: str
    user: str
    host: str = "localhost"
    settings: Mapping[int, tuple[str, str]] = SETTINGS


_TOPIC, _BROKER, _LOGGER, _METRICS, _GROUP = 2, 4, 8, 16, 32
_RESOURCES: list[Message] = [{"resource_type": kind} for kind in SETTINGS]
_VARIANTS: dict[ApiKey, list[Message]] = {
    ApiKey.DESCRIBE_CONFIGS: _RESOURCES,
    ApiKey.ALTER_CONFIGS: _RESOURCES,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _RESOURCES,
    ApiKey.FIND_COORDINATOR: [{"key_type": kind} for kind in (0, 1, 2)],
    ApiKey.LIST_OFFSETS: [{"timestamp": time} for time in (-1, -2, -3, -4, -5, 1)],
    ApiKey.CREATE_ACLS: [{"resource_type": kind} for kind in (2, 3, 4, 5)],
    ApiKey.DELETE_ACLS: [{"resource_type_filter": kind} for kind in (1, 2, 3, 4, 5)],
    ApiKey.DESCRIBE_ACLS: [{"resource_type_filter": kind} for kind in (1, 2, 3, 4, 5)],
    ApiKey.INIT_PRODUCER_ID: [{}, {"transactional_id": None}],
    ApiKey.PRODUCE: [{}, {"transactional_id": None}],
    ApiKey.SHARE_FETCH: [{"share_session_epoch": epoch} for epoch in (0, 1, -1)],
    ApiKey.SHARE_ACKNOWLEDGE: [{"share_session_epoch": epoch} for epoch in (0, 1, -1)],
    ApiKey.FETCH: [{"session_epoch": epoch} for epoch in (-1, 0, 1)],
    ApiKey.ALTER_CLIENT_QUOTAS: [{"entity_type": kind} for kind in ("user", "client-id", "ip")],
    ApiKey.DESCRIBE_CLIENT_QUOTAS: [{"entity_type": kind} for kind in ("user", "client-id", "ip")],
    ApiKey.CONSUMER_GROUP_HEARTBEAT: [{}, {"subscribed_topic_regex": ".*"}, {"member_epoch": -1}],
    ApiKey.SHARE_GROUP_HEARTBEAT: [{}, {"member_epoch": -1}],
    ApiKey.METADATA: [{}, {"name": None}, {"topics": None}],
    ApiKey.CREATE_TOPICS: [{"assignments": []}],
    ApiKey.CREATE_PARTITIONS: [{"assignments": None}],
    ApiKey.DELETE_TOPICS: [{}, {"name": None}],
    ApiKey.ELECT_LEADERS: [{}, {"topic_partitions": None}],
    ApiKey.DESCRIBE_LOG_DIRS: [{}, {"topics": None}],
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: [{}, {"users": None}],
    ApiKey.LIST_PARTITION_REASSIGNMENTS: [{}, {"topics": None}],
    ApiKey.OFFSET_FETCH: [{}, {"topics": None}],
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: [{}, {"topics": None}],
}
"""What makes one API several: fields, wherever they are."""
_BY_NAME_OR_ID = (ApiKey.DELETE_TOPICS, ApiKey.METADATA)
_NUMBERS: dict[str, int] = {
    "acks": -1,
    "compression_type": 0,
    "count": 9,
    "current_leader_epoch": -1,
    "delivery_count": 1,
    "endpoint_type": 1,
    "generation_id": -1,
    "generation_id_or_member_epoch": -1,
    "iterations": 4096,
    "last_fetched_epoch": -1,
    "leader_epoch": 0,
    "max_bytes": 1 << 20,
    "max_records": 10,
    "max_version_level": 1,
    "match_type": 0,
    "num_partitions": 1,
    "operation": 3,
    "partition_max_bytes": 1 << 20,
    "pattern_type_filter": 3,
    "permission_type": 3,
    "producer_id": -1,
    "producer_epoch": -1,
    "v3_and_below_producer_id": 0,
    "rebalance_timeout_ms": 60_000,
    "replica_id": -1,
    "replication_factor": 1,
    "resource_pattern_type": 3,
    "resource_type": _TOPIC,
    "resource_type_filter": _TOPIC,
    "response_partition_limit": 100,
    "session_timeout_ms": 10_000,
    "transaction_timeout_ms": 60_000,
    "upgrade_type": 1,
    "max_wait_ms": 0,
    "timeout_ms": 1_000,
    "value": 1000,
}
_BYTES: dict[str, bytes] = {
    "acknowledge_types": b"\1",
    "salt": b"salt-of-16-bytes",
    "salted_password": b"p" * 32,
}


def variants(api: ApiKey) -> list[Message]:
    """Return what each request of an API sets, beside what all of them have."""
    return _VARIANTS.get(api, [{}])


def message(
    api: ApiKey,
    version: int,
    names: Names,
    fixed: Mapping[str, Any] | None = None,
    counts: Mapping[str, int] | None = None,
) -> Message:
    """Return a request.

    Args:
        names: what it is about.
        fixed: values of fields, wherever they are.
        counts: how many elements lists have, by their paths; others have one. They differ by name or number.
    """
    maker = _Maker(api, names, fixed or {}, counts or {})
    return maker.struct(codec(api, version).request.struct, "", 0)


def lists(api: ApiKey, version: int) -> list[str]:
    """Return the paths of the lists that a request has, such as `topics.partitions`."""
    return [path for path, spec in _fields(codec(api, version).request.struct) if spec.array]


def fields(api: ApiKey, version: int) -> list[tuple[str, FieldSpec]]:
    """Return all fields of a request with their paths."""
    return list(_fields(codec(api, version).request.struct))


def _fields(struct: Struct, prefix: str = "") -> Iterator[tuple[str, FieldSpec]]:
    for spec in struct.fields:
        path = prefix + spec.name
        yield path, spec
        if spec.struct is not None:
            yield from _fields(spec.struct, path + ".")


class _Maker:
    def __init__(
        self, api: ApiKey, names: Names, fixed: Mapping[str, Any], counts: Mapping[str, int]
    ) -> None:
        self._api = api
        self._names = names
        self._fixed = fixed
        self._counts = counts

    def struct(self, struct: Struct, prefix: str, number: int) -> Message:
        return {spec.name: self._value(spec, prefix + spec.name, number) for spec in struct.fields}

    def _value(self, spec: FieldSpec, path: str, number: int) -> Any:
        if spec.name in self._fixed:
            value = self._fixed[spec.name]
            if value is not None or spec.nullable:
                return value
        if spec.array:
            if spec.kind == "int8" and path not in self._counts:
                return _BYTES.get(spec.name, b"\2")
            count = self._counts.get(path, 1)
            if spec.kind == "int8":
                return b"\1" * count
            return [self._element(spec, path, number + each) for each in range(count)]
        return self._element(spec, path, number)

    def _element(self, spec: FieldSpec, path: str, number: int) -> Any:
        if spec.struct is not None:
            return self.struct(spec.struct, path + ".", number)
        if spec.kind == "string":
            return self._string(path, number)
        if spec.kind == "uuid":
            if spec.name != "topic_id":
                return uuid.UUID(int=7)
            if self._api in _BY_NAME_OR_ID and self._fixed.get("name", 0) is not None:
                return None
            return uuid.UUID(int=self._names.topic_id.int + number)
        if spec.kind == "bool":
            return False
        if spec.kind == "records":
            return _record()
        if spec.kind == "bytes":
            return _BYTES.get(spec.name, b"")
        if spec.name.startswith("partition") and spec.kind == "int32":
            return number
        value = _NUMBERS.get(spec.name, 0)
        return value + number if spec.array and spec.name != "resource_types" else value

    def _string(self, path: str, number: int) -> str:
        make = _STRINGS.get((self._api, path)) or _STRINGS.get((None, path.rpartition(".")[2]))
        text = make(self._names) if make else "a"
        if path.endswith(("configs.name", "configs.value", "configuration_keys")):
            kind = self._fixed.get("resource_type", _TOPIC)
            text = self._names.settings.get(kind, ("name", "value"))[path.endswith("value")]
        if path == "resources.resource_name" and self._fixed.get("resource_type", _TOPIC) in (
            _BROKER,
            _LOGGER,
        ):
            text = "1"
        elif path == "resources.resource_name" and self._fixed.get("resource_type") == _GROUP:
            text = self._names.group
        if self._api is ApiKey.FIND_COORDINATOR and path in ("key", "coordinator_keys"):
            text = self._coordinator_key()
        if number and path.endswith(("entity_name", "match")) and self._fixed.get("entity_type") == "ip":
            return socket.inet_ntoa(number.to_bytes(4, "big"))
        return text if number == 0 else f"{text}-{number}"

    def _coordinator_key(self) -> str:
        names = self._names
        keys = {1: names.transactional_id, 2: f"{names.group}:{url_safe(names.topic_id)}:0"}
        return keys.get(self._fixed.get("key_type", 0), names.group)


_STRINGS: dict[tuple[ApiKey | None, str], Callable[[Names], str]] = {
    (None, "name"): lambda names: names.topic,
    (None, "topic"): lambda names: names.topic,
    (None, "topic_name"): lambda names: names.topic,
    (None, "topic_names"): lambda names: names.topic,
    (None, "subscribed_topic_names"): lambda names: names.topic,
    (None, "resource_name"): lambda names: names.topic,
    (None, "resource_name_filter"): lambda names: names.topic,
    (None, "subscribed_topic_regex"): lambda names: names.topic,
    (None, "group_id"): lambda names: names.group,
    (None, "group_ids"): lambda names: names.group,
    (None, "groups"): lambda names: names.group,
    (None, "groups_names"): lambda names: names.group,
    (None, "member_id"): lambda names: "",
    (None, "transactional_id"): lambda names: names.transactional_id,
    (None, "v3_and_below_transactional_id"): lambda names: names.transactional_id,
    (None, "transactional_ids"): lambda names: names.transactional_id,
    (None, "transactional_id_pattern"): lambda names: names.transactional_id,
    (None, "principal"): lambda names: f"User:{names.user}",
    (None, "principal_filter"): lambda names: f"User:{names.user}",
    (None, "host"): lambda names: "*",
    (None, "host_filter"): lambda names: "*",
    (None, "protocol_type"): lambda names: "consumer",
    (None, "mechanism"): lambda names: "PLAIN",
    (None, "entity_type"): lambda names: "user",
    (None, "entity_name"): lambda names: names.host,
    (None, "match"): lambda names: names.host,
    (None, "feature"): lambda names: "share.version",
    (None, "server_assignor"): lambda names: "uniform",
    (None, "state_filters"): lambda names: "Ongoing",
    (None, "states_filter"): lambda names: "Stable",
    (None, "types_filter"): lambda names: "Classic",
    (ApiKey.ALTER_CLIENT_QUOTAS, "entries.ops.key"): lambda names: "connection_creation_rate",
    (ApiKey.JOIN_GROUP, "protocols.name"): lambda names: "range",
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "deletions.name"): lambda names: names.user,
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "upsertions.name"): lambda names: f"{names.user}-new",
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "users.name"): lambda names: names.user,
}


@cache
def _record() -> bytes:
    return bytes(batch([b"x"]))


def url_safe(topic_id: uuid.UUID) -> str:
    """Return an id as keys of coordinators have it."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
