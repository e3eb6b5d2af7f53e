"""The meaning of each field of a forwarded request, so that none reaches the cluster unchecked.

A field added to a schema, or a newly forwarded API, must be entered here: the tests fail until then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sharecore.protocol import ApiKey, schema
from sharecore.protocol.schema import FieldSpec, Struct


class Meaning(NamedTuple):
    """The fields of one API, as dotted paths.

    Attributes:
        topics, groups, transactions: names or IDs of resources that may be inaccessible.
        fixed: fields that mean more to a broker than to a client, and what the cluster gets instead.
        settled: fields that the node answers or changes itself, covered by other tests.
        passed: fields that mean the same from any client.
    """

    topics: str = ""
    groups: str = ""
    transactions: str = ""
    fixed: dict[str, Any] = {}  # noqa: RUF012
    settled: str = ""
    passed: str = ""

    def paths(self) -> set[str]:
        """All entered fields."""
        said = " ".join((self.topics, self.groups, self.transactions, self.settled, self.passed))
        return {*said.split(), *self.fixed}


_REPLICA = {"replica_id": -1}
_EPOCH = {"topics.partitions.current_leader_epoch": -1}
_COMMIT = (
    "topics.partitions.partition_index topics.partitions.committed_offset "
    "topics.partitions.committed_metadata topics.partitions.committed_leader_epoch"
)
_PRODUCER = "producer_id producer_epoch"

MEANINGS: dict[ApiKey, Meaning] = {
    ApiKey.PRODUCE: Meaning(
        topics="topic_data.name topic_data.topic_id",
        transactions="transactional_id",
        settled="acks",
        passed="timeout_ms topic_data.partition_data.index topic_data.partition_data.records",
    ),
    ApiKey.FETCH: Meaning(
        topics="topics.topic topics.topic_id",
        fixed={
            **_REPLICA,
            **_EPOCH,
            "replica_state.replica_id": -1,
            "replica_state.replica_epoch": -1,
            "cluster_id": None,
            "rack_id": "",
            "topics.partitions.log_start_offset": -1,
            "topics.partitions.replica_directory_id": None,
            "topics.partitions.high_watermark": 2**63 - 1,
        },
        # there are no sessions: a request with one is answered by the node
        settled="max_wait_ms max_bytes session_id session_epoch forgotten_topics_data.topic "
        "forgotten_topics_data.topic_id forgotten_topics_data.partitions",
        passed="min_bytes isolation_level topics.partitions.partition topics.partitions.fetch_offset "
        "topics.partitions.last_fetched_epoch topics.partitions.partition_max_bytes",
    ),
    ApiKey.LIST_OFFSETS: Meaning(
        topics="topics.name",
        fixed={**_REPLICA, **_EPOCH},
        passed="topics.partitions.partition_index topics.partitions.timestamp isolation_level timeout_ms",
    ),
    ApiKey.OFFSET_COMMIT: Meaning(
        topics="topics.name topics.topic_id",
        groups="group_id",
        passed=f"generation_id_or_member_epoch member_id group_instance_id retention_time_ms {_COMMIT}",
    ),
    ApiKey.OFFSET_FETCH: Meaning(
        groups="group_id groups.group_id",
        # the cluster is asked for a group's offsets, and hidden ones are left out of the response
        settled="topics.name groups.topics.name groups.topics.topic_id",
        passed="topics.partition_indexes require_stable groups.topics.partition_indexes groups.member_id "
        "groups.member_epoch",
    ),
    ApiKey.JOIN_GROUP: Meaning(
        groups="group_id",
        passed="session_timeout_ms member_id protocol_type protocols.name protocols.metadata "
        "rebalance_timeout_ms group_instance_id reason",
    ),
    ApiKey.HEARTBEAT: Meaning(groups="group_id", passed="generation_id member_id group_instance_id"),
    ApiKey.LEAVE_GROUP: Meaning(
        groups="group_id",
        passed="member_id members.member_id members.group_instance_id members.reason",
    ),
    ApiKey.SYNC_GROUP: Meaning(
        groups="group_id",
        passed="generation_id member_id assignments.member_id assignments.assignment group_instance_id "
        "protocol_type protocol_name",
    ),
    ApiKey.DESCRIBE_GROUPS: Meaning(groups="groups", passed="include_authorized_operations"),
    # the response is filtered
    ApiKey.LIST_GROUPS: Meaning(passed="states_filter types_filter"),
    ApiKey.CREATE_TOPICS: Meaning(
        topics="topics.name",
        passed="topics.num_partitions topics.replication_factor topics.assignments.partition_index "
        "topics.assignments.broker_ids topics.configs.name topics.configs.value timeout_ms validate_only",
    ),
    ApiKey.DELETE_TOPICS: Meaning(topics="topic_names topics.name topics.topic_id", passed="timeout_ms"),
    ApiKey.DELETE_RECORDS: Meaning(
        topics="topics.name",
        passed="topics.partitions.partition_index topics.partitions.offset timeout_ms",
    ),
    ApiKey.INIT_PRODUCER_ID: Meaning(
        transactions="transactional_id", passed=f"transaction_timeout_ms {_PRODUCER}"
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Meaning(
        topics="topics.topic",
        fixed={**_REPLICA, **_EPOCH},
        passed="topics.partitions.partition topics.partitions.leader_epoch",
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: Meaning(
        topics="v3_and_below_topics.name",
        transactions="v3_and_below_transactional_id",
        passed="v3_and_below_producer_id v3_and_below_producer_epoch v3_and_below_topics.partitions",
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: Meaning(groups="group_id", transactions="transactional_id", passed=_PRODUCER),
    ApiKey.END_TXN: Meaning(transactions="transactional_id", passed=f"{_PRODUCER} committed"),
    ApiKey.TXN_OFFSET_COMMIT: Meaning(
        topics="topics.name topics.topic_id",
        groups="group_id",
        transactions="transactional_id",
        passed=f"{_PRODUCER} generation_id member_id group_instance_id {_COMMIT}",
    ),
    ApiKey.DESCRIBE_CONFIGS: Meaning(
        topics="resources.resource_name",
        settled="resources.resource_type",
        passed="resources.configuration_keys include_synonyms include_documentation",
    ),
    ApiKey.ALTER_CONFIGS: Meaning(
        topics="resources.resource_name",
        settled="resources.resource_type",
        passed="resources.configs.name resources.configs.value validate_only",
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Meaning(
        topics="resources.resource_name",
        settled="resources.resource_type",
        passed="resources.configs.name resources.configs.config_operation resources.configs.value "
        "validate_only",
    ),
    ApiKey.CREATE_PARTITIONS: Meaning(
        topics="topics.name",
        passed="topics.count topics.assignments.broker_ids timeout_ms validate_only",
    ),
    ApiKey.ELECT_LEADERS: Meaning(
        topics="topic_partitions.topic", passed="election_type topic_partitions.partitions timeout_ms"
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Meaning(
        topics="topics.name",
        passed="timeout_ms allow_replication_factor_change topics.partitions.partition_index "
        "topics.partitions.replicas",
    ),
    # the response is filtered
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Meaning(
        topics="topics.name", passed="timeout_ms topics.partition_indexes"
    ),
    # the node answers for every other topic
    ApiKey.DESCRIBE_QUORUM: Meaning(settled="topics.topic_name", passed="topics.partitions.partition_index"),
    ApiKey.DELETE_GROUPS: Meaning(groups="groups_names"),
    ApiKey.OFFSET_DELETE: Meaning(
        topics="topics.name", groups="group_id", passed="topics.partitions.partition_index"
    ),
    ApiKey.DESCRIBE_PRODUCERS: Meaning(topics="topics.name", passed="topics.partition_indexes"),
    ApiKey.DESCRIBE_TRANSACTIONS: Meaning(transactions="transactional_ids"),
    # the response is filtered
    ApiKey.LIST_TRANSACTIONS: Meaning(
        passed="state_filters producer_id_filters duration_filter transactional_id_pattern"
    ),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Meaning(
        topics="subscribed_topic_names",
        groups="group_id",
        settled="subscribed_topic_regex",
        # a member's partitions: the coordinator knows which are valid
        passed="member_id member_epoch instance_id rack_id rebalance_timeout_ms server_assignor "
        "topic_partitions.topic_id topic_partitions.partitions",
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Meaning(groups="group_ids", passed="include_authorized_operations"),
}


def fields_of(struct: Struct, above: str = "") -> Iterator[tuple[str, FieldSpec]]:
    """Return the fields of a message that hold a value, as paths."""
    for field in struct.fields:
        if field.struct is None:
            yield above + field.name, field
        else:
            yield from fields_of(field.struct, f"{above}{field.name}.")


def request_fields(api: ApiKey, version: int) -> dict[str, FieldSpec]:
    """Return the fields of a request."""
    return dict(fields_of(schema.load(api, version, response=False).struct))


def filled(struct: Struct, values: dict[str, Any], above: str = "") -> dict[str, Any]:
    """Return a message with one element in each array.

    Args:
        values: by path; other fields get a neutral value.
    """
    message: dict[str, Any] = {}
    for field in struct.fields:
        path = above + field.name
        if field.struct is not None:
            value: Any = filled(field.struct, values, f"{path}.")
        elif path in values:
            value = values[path]
        else:
            value = _PLAIN.get(field.kind, 0)
        message[field.name] = [value] if field.array else value
    return message


_PLAIN: dict[str, Any] = {"string": "x", "bytes": b"x", "records": b"x", "bool": False, "uuid": None}


def values_at(message: Any, path: str) -> list[Any]:
    """Return all values of a field in a decoded message; none if an optional part is missing."""
    name, _, rest = path.partition(".")
    found = getattr(message, name)
    if not rest:
        return [found]
    if found is None:
        return []
    parts = found if isinstance(found, list | tuple) and not hasattr(found, "_fields") else [found]
    return [value for part in parts for value in values_at(part, rest)]
