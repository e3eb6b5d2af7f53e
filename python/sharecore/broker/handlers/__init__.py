"""Handlers of the APIs that this broker serves, one module per domain.

A handler is a function named like its API

    def describe_groups(
        context: RequestContext, request: messages.DescribeGroupsRequest
    ) -> Result[messages.DescribeGroupsResponse]

`request` is a named tuple with the schema's field names in snake case, times in `_ms`, arrays of int8 as
`bytes`, topic ids as `uuid.UUID` or None. It has the fields of the version the client chose
(`context.api_version`), and those that only newer versions have with their defaults.

The answer is a `dict` with the names of the newest version. Fields unknown to an older version are omitted
when it is encoded, and missing fields get the schema's default, so that a handler sets only what differs.
Error codes are `ErrorCode` or int, arrays any iterable with a length, records `bytes`.
Produce and the share-group APIs answer with objects of `_core`, which encode themselves.

- Return the dict directly if it is known immediately: no task is created.
- Return a future (or a coroutine, which becomes a task) for a deferred answer. It belongs to the
  connection: it is cancelled when the client disconnects, so a shared future must be wrapped.
- Return None when Kafka sends no answer (Produce with acks=0).
- Raise `KafkaError` to refuse the whole request if the answer has a top-level error code; set partition
  errors in the answer. `Disconnect` closes the connection. Any other exception is logged and answered
  with UNKNOWN_SERVER_ERROR.

A handler that is created once per broker has a factory instead, `make_fetch(broker)`, which returns it.

`context.connection.on_close(hook)` notifies of a disconnect; `context.broker` has the services.
"""

from __future__ import annotations

from sharecore.broker.served import Served
from sharecore.protocol.apis import ApiKey

SERVED: dict[ApiKey, Served] = {
    # older librdkafka checks version 0 to detect compression support; Kafka advertises it too
    ApiKey.PRODUCE: Served(3, 13, "produce", "make_produce", is_factory=True, offered_min_version=0),
    ApiKey.FETCH: Served(4, 18, "fetch", "make_fetch", is_factory=True),
    ApiKey.LIST_OFFSETS: Served(1, 11, "log_offsets", "list_offsets"),
    ApiKey.METADATA: Served(0, 13, "cluster.metadata", "metadata"),
    ApiKey.OFFSET_COMMIT: Served(2, 10, "offsets", "offset_commit"),
    ApiKey.OFFSET_FETCH: Served(1, 10, "offsets", "offset_fetch"),
    ApiKey.FIND_COORDINATOR: Served(0, 6, "cluster.nodes", "find_coordinator"),
    ApiKey.JOIN_GROUP: Served(0, 9, "groups", "join_group"),
    ApiKey.HEARTBEAT: Served(0, 4, "groups", "heartbeat"),
    ApiKey.LEAVE_GROUP: Served(0, 5, "groups", "leave_group"),
    ApiKey.SYNC_GROUP: Served(0, 5, "groups", "sync_group"),
    ApiKey.DESCRIBE_GROUPS: Served(0, 6, "groups", "describe_groups"),
    ApiKey.SASL_HANDSHAKE: Served(0, 1, "access.sasl", "sasl_handshake"),
    ApiKey.API_VERSIONS: Served(0, 5, "cluster.nodes", "api_versions"),
    ApiKey.CREATE_TOPICS: Served(2, 7, "topics", "create_topics"),
    ApiKey.DELETE_TOPICS: Served(1, 6, "topics", "delete_topics"),
    ApiKey.DELETE_RECORDS: Served(0, 2, "topics", "delete_records"),
    ApiKey.INIT_PRODUCER_ID: Served(0, 5, "transactions", "init_producer_id"),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Served(2, 4, "log_offsets", "offset_for_leader_epoch"),
    ApiKey.ADD_PARTITIONS_TO_TXN: Served(0, 3, "transactions", "add_partitions_to_txn"),
    ApiKey.ADD_OFFSETS_TO_TXN: Served(0, 4, "transactions", "add_offsets_to_txn"),
    ApiKey.END_TXN: Served(0, 5, "transactions", "end_txn"),
    ApiKey.TXN_OFFSET_COMMIT: Served(0, 6, "offsets", "txn_offset_commit"),
    ApiKey.DESCRIBE_ACLS: Served(1, 3, "access.acls", "describe_acls"),
    ApiKey.CREATE_ACLS: Served(1, 3, "access.acls", "create_acls"),
    ApiKey.DELETE_ACLS: Served(1, 3, "access.acls", "delete_acls"),
    ApiKey.DESCRIBE_CONFIGS: Served(1, 4, "configs.describe", "describe_configs"),
    ApiKey.ALTER_CONFIGS: Served(0, 2, "configs.change", "alter_configs"),
    ApiKey.DESCRIBE_LOG_DIRS: Served(1, 5, "cluster.nodes", "describe_log_dirs"),
    ApiKey.SASL_AUTHENTICATE: Served(0, 2, "access.sasl", "sasl_authenticate"),
    ApiKey.CREATE_PARTITIONS: Served(0, 3, "topics", "create_partitions"),
    ApiKey.ELECT_LEADERS: Served(0, 2, "cluster.replicas", "elect_leaders"),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Served(0, 1, "configs.change", "incremental_alter_configs"),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Served(0, 1, "cluster.replicas", "alter_partition_reassignments"),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Served(0, 0, "cluster.replicas", "list_partition_reassignments"),
    ApiKey.DESCRIBE_QUORUM: Served(0, 2, "cluster.nodes", "describe_quorum"),
    ApiKey.OFFSET_DELETE: Served(0, 0, "offsets", "offset_delete"),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Served(0, 0, "access.scram", "describe_user_scram_credentials"),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Served(0, 0, "access.scram", "alter_user_scram_credentials"),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Served(0, 1, "access.quotas", "describe_client_quotas"),
    ApiKey.ALTER_CLIENT_QUOTAS: Served(0, 1, "access.quotas", "alter_client_quotas"),
    ApiKey.UPDATE_FEATURES: Served(0, 2, "cluster.nodes", "update_features"),
    ApiKey.DESCRIBE_CLUSTER: Served(0, 2, "cluster.nodes", "describe_cluster"),
    ApiKey.DESCRIBE_PRODUCERS: Served(0, 0, "transactions", "describe_producers"),
    ApiKey.DESCRIBE_TRANSACTIONS: Served(0, 0, "transactions", "describe_transactions"),
    ApiKey.LIST_TRANSACTIONS: Served(0, 2, "transactions", "list_transactions"),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Served(0, 1, "consumer_groups", "consumer_group_heartbeat"),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Served(0, 1, "consumer_groups", "consumer_group_describe"),
    ApiKey.LIST_CONFIG_RESOURCES: Served(0, 1, "configs.describe", "list_config_resources"),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Served(0, 0, "cluster.metadata", "describe_topic_partitions"),
    ApiKey.LIST_GROUPS: Served(0, 5, "groups", "list_groups"),
    ApiKey.DELETE_GROUPS: Served(0, 3, "groups", "delete_groups"),
    ApiKey.SHARE_GROUP_HEARTBEAT: Served(1, 1, "share.groups", "share_group_heartbeat"),
    ApiKey.SHARE_GROUP_DESCRIBE: Served(1, 1, "share.groups", "share_group_describe"),
    ApiKey.SHARE_FETCH: Served(1, 2, "share.records", "make_share_fetch", is_factory=True),
    ApiKey.SHARE_ACKNOWLEDGE: Served(1, 2, "share.records", "make_share_acknowledge", is_factory=True),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: Served(0, 0, "share_state", "initialize_share_group_state"),
    ApiKey.READ_SHARE_GROUP_STATE: Served(0, 0, "share_state", "read_share_group_state"),
    ApiKey.WRITE_SHARE_GROUP_STATE: Served(0, 1, "share_state", "write_share_group_state"),
    ApiKey.DELETE_SHARE_GROUP_STATE: Served(0, 0, "share_state", "delete_share_group_state"),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: Served(0, 1, "share_state", "read_share_group_state_summary"),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: Served(0, 1, "share.offsets", "describe_share_group_offsets"),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: Served(0, 0, "share.offsets", "alter_share_group_offsets"),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: Served(0, 0, "share.offsets", "delete_share_group_offsets"),
}

TELEMETRY: dict[ApiKey, Served] = {
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: Served(0, 0, "telemetry", "get_telemetry_subscriptions"),
    ApiKey.PUSH_TELEMETRY: Served(0, 0, "telemetry", "push_telemetry"),
}
"""APIs on offer if client metrics are requested."""
