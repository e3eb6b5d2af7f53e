"""The forwarded APIs, and their routes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Never, TypeAlias

from sharecore.broker.handlers.transactions import producer_refusal
from sharecore.broker.requests.context import RequestContext
from sharecore.broker.topic_rules import check_name
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey
from sharecore.security.acl import Operation, ResourceType
from sharecore.tier.forward.beside import Handle, about_many, about_one, listing
from sharecore.tier.forward.by_coordinator import ByCoordinator, both, group, transactional_id
from sharecore.tier.forward.by_keys import ByKeys
from sharecore.tier.forward.by_leader import ByLeader, without_leader, without_offset_epoch
from sharecore.tier.forward.changes import create_partitions, create_topics, delete_topics
from sharecore.tier.forward.consumer_fields import partition_as_consumer
from sharecore.tier.forward.described import adapt_classic_group, adapt_consumer_group, adapt_transaction
from sharecore.tier.forward.everywhere import Everywhere
from sharecore.tier.forward.fetching import Fetching
from sharecore.tier.forward.forwarder import RequestForwarder
from sharecore.tier.forward.offset_answers import KEYS as OFFSETS_OF_GROUPS
from sharecore.tier.forward.offset_answers import adapt_group, adapt_groups_own, refuse_group
from sharecore.tier.forward.placement import adapt_quorum, elect, list_reassignments, reassign
from sharecore.tier.forward.producing import Producing
from sharecore.tier.forward.settings import alter_configs, describe_configs
from sharecore.tier.forward.shapes import Keys, Places, Repeated
from sharecore.tier.forward.subscriptions import Heartbeats
from sharecore.upstream.cluster import GROUP, TRANSACTION

if TYPE_CHECKING:
    from sharecore.protocol import messages, received

_NULL_PROTOCOL_SINCE = 7
_SYNC_MS = 300_000
"""A member waits in SyncGroup as long as its leader takes; the request has no timeout."""
_COMMITTED = Places(ids_since=10, repeated=Repeated.MERGED)
_TRANSACTED = Places(ids_since=6, repeated=Repeated.MERGED)
_PLACES = Places(repeated=Repeated.MERGED)


def _check_producer(
    forwarder: RequestForwarder, context: RequestContext, request: messages.InitProducerIdRequest
) -> None:
    code = producer_refusal(context, request)
    if code is not None:
        raise KafkaError(code)
    name = request.transactional_id
    if name is not None and forwarder.own.is_transactional_id(name):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def _sees_group(forwarder: RequestForwarder, context: RequestContext, each: received.ListedGroup) -> bool:
    share = getattr(each, "group_type", "").lower() == "share" or each.protocol_type == "share"
    if share or each.group_id in forwarder.own.groups:
        return False
    return context.may(Operation.DESCRIBE, ResourceType.CLUSTER, quiet=True) or context.may(
        Operation.DESCRIBE, ResourceType.GROUP, each.group_id, quiet=True
    )


def _sees_transaction(
    forwarder: RequestForwarder, context: RequestContext, each: received.ListTransactionsTransactionState
) -> bool:
    name = each.transactional_id
    return not forwarder.own.is_transactional_id(name) and context.may(
        Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, name, quiet=True
    )


def _refuse_join(
    context: RequestContext, request: messages.JoinGroupRequest, code: ErrorCode
) -> messages.JoinGroupResponse:
    protocol = None if context.api_version >= _NULL_PROTOCOL_SINCE else ""
    return {"error_code": code, "member_id": request.member_id, "protocol_name": protocol}


_IN_GROUP = group(Operation.READ)
_IN_TRANSACTION = transactional_id(Operation.WRITE)

# a table of routes does not know the types of each API's messages: `Never` accepts any function of them
_Coordinated: TypeAlias = ByCoordinator[Never, Never]
_Keyed: TypeAlias = ByKeys[Never, Never]

BY_COORDINATOR: dict[ApiKey, _Coordinated] = {
    ApiKey.JOIN_GROUP: _Coordinated(
        GROUP, "group_id", _IN_GROUP, "rebalance_timeout_ms", refuse=_refuse_join
    ),
    ApiKey.SYNC_GROUP: _Coordinated(GROUP, "group_id", _IN_GROUP, _SYNC_MS),
    ApiKey.HEARTBEAT: _Coordinated(GROUP, "group_id", _IN_GROUP),
    ApiKey.LEAVE_GROUP: _Coordinated(GROUP, "group_id", _IN_GROUP),
    ApiKey.OFFSET_COMMIT: _Coordinated(GROUP, "group_id", _IN_GROUP, places=_COMMITTED, right=Operation.READ),
    ApiKey.OFFSET_DELETE: _Coordinated(
        GROUP, "group_id", group(Operation.DELETE), places=_PLACES, right=Operation.READ, whole=True
    ),
    ApiKey.TXN_OFFSET_COMMIT: _Coordinated(
        GROUP, "group_id", both(_IN_TRANSACTION, _IN_GROUP), places=_TRANSACTED, right=Operation.READ
    ),
    ApiKey.INIT_PRODUCER_ID: _Coordinated(TRANSACTION, "transactional_id", _check_producer),
    ApiKey.ADD_PARTITIONS_TO_TXN: _Coordinated(
        TRANSACTION,
        "v3_and_below_transactional_id",
        transactional_id(Operation.WRITE, "v3_and_below_transactional_id"),
        places=Places(
            topics="v3_and_below_topics",
            index="",
            answered_topics="results_by_topic_v3_and_below",
            answered_partitions="results_by_partition",
            error="partition_error_code",
            repeated=Repeated.ONCE,
        ),
        right=Operation.WRITE,
        writes=True,
        all_or_none=True,
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: _Coordinated(
        TRANSACTION, "transactional_id", both(_IN_TRANSACTION, _IN_GROUP)
    ),
    ApiKey.END_TXN: _Coordinated(TRANSACTION, "transactional_id", _IN_TRANSACTION),
}
"""APIs about one group or transactional ID."""

BY_KEYS: dict[ApiKey, _Keyed] = {
    ApiKey.DESCRIBE_GROUPS: _Keyed(
        GROUP, Keys("groups", "groups", "group_id"), Operation.DESCRIBE, adapt_classic_group
    ),
    ApiKey.DELETE_GROUPS: _Keyed(
        GROUP, Keys("groups_names", "results", "group_id", once=True), Operation.DELETE
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: _Keyed(
        TRANSACTION,
        Keys("transactional_ids", "transaction_states", "transactional_id"),
        Operation.DESCRIBE,
        adapt_transaction,
    ),
}
"""APIs about several groups or transactional IDs."""

OFFSET_FETCH_OF_ONE = ByCoordinator(
    GROUP, "group_id", group(Operation.DESCRIBE), adapt=adapt_group, refuse=refuse_group
)
OFFSET_FETCH = ByKeys(GROUP, OFFSETS_OF_GROUPS, Operation.DESCRIBE, adapt_groups_own)
_GROUPS_SINCE = 8

_LED: dict[ApiKey, ByLeader] = {
    ApiKey.LIST_OFFSETS: ByLeader(
        Places(
            failed={"offset": -1, "timestamp": -1, "leader_epoch": -1},
            repeated=Repeated.ONCE,
            as_named=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ),
        Operation.DESCRIBE,
        repeated=ErrorCode.INVALID_REQUEST,
        ask=partition_as_consumer,
        adapt=without_offset_epoch,
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: ByLeader(
        Places(name="topic", index="partition", answered_index="partition",
               failed={"leader_epoch": -1, "end_offset": -1}),
        Operation.DESCRIBE,
        instead=Operation.CLUSTER_ACTION,
        ask=partition_as_consumer,
    ),
    ApiKey.DELETE_RECORDS: ByLeader(
        Places(failed={"low_watermark": -1}, empty=False, repeated=Repeated.ONCE),
        Operation.DELETE, writes=True, wait="timeout_ms",
        after_loss=ErrorCode.REQUEST_TIMED_OUT,
    ),
    ApiKey.DESCRIBE_PRODUCERS: ByLeader(
        Places(partitions="partition_indexes", index="", text="error_message"), Operation.READ,
        check=check_name,
    ),
}  # fmt: skip
PRODUCED = ByLeader(
    Places(
        "topic_data",
        "name",
        "partition_data",
        "index",
        13,
        "responses",
        "partition_responses",
        "index",
        failed={"base_offset": -1},
        repeated=Repeated.ONCE,
    ),
    Operation.WRITE,
    writes=True,
    wait="timeout_ms",
    after_loss=ErrorCode.REQUEST_TIMED_OUT,
    adapt=without_leader,
)
FETCHED = ByLeader(
    Places("topics", "topic", "partitions", "partition", 13, "responses",
           failed={"high_watermark": -1, "aborted_transactions": (), "records": b""},
           repeated=Repeated.ONCE),
    Operation.READ,
    ask=partition_as_consumer,
    adapt=without_leader,
)  # fmt: skip


_OFFSETS_OF_ONE = about_one(OFFSET_FETCH_OF_ONE.handle)
_OFFSETS_OF_MANY = about_many(OFFSET_FETCH.handle, OFFSET_FETCH.keys)


async def _offset_fetch(
    forwarder: RequestForwarder, context: RequestContext, request: messages.OffsetFetchRequest
) -> Mapping[str, object] | None:
    several = context.api_version >= _GROUPS_SINCE
    return await (_OFFSETS_OF_MANY if several else _OFFSETS_OF_ONE)(forwarder, context, request)


def routes() -> dict[ApiKey, Handle[Never]]:
    """Return the handler of each forwarded API."""
    found: dict[ApiKey, Handle[Never]] = {}
    found.update((api, route.handle) for api, route in _LED.items())
    for api, one in BY_COORDINATOR.items():
        handle: Handle[Never] = one.handle
        found[api] = about_one(handle) if one.kind == GROUP else handle
    for api, many in BY_KEYS.items():
        found[api] = about_many(many.handle, many.keys) if many.kind == GROUP else many.handle
    heartbeats = Heartbeats()
    described = ByKeys(
        GROUP,
        Keys("group_ids", "groups", "group_id"),
        Operation.DESCRIBE,
        partial(adapt_consumer_group, heartbeats.get),
    )
    own_first = about_one(heartbeats.handle)
    found[ApiKey.CONSUMER_GROUP_HEARTBEAT] = own_first
    found[ApiKey.CONSUMER_GROUP_DESCRIBE] = about_many(described.handle, described.keys)
    found[ApiKey.PRODUCE] = Producing(PRODUCED).handle
    found[ApiKey.FETCH] = Fetching(FETCHED).handle
    found[ApiKey.OFFSET_FETCH] = _offset_fetch
    found[ApiKey.LIST_GROUPS] = listing(Everywhere("groups", _sees_group).handle)
    found[ApiKey.LIST_TRANSACTIONS] = Everywhere("transaction_states", _sees_transaction).handle
    found[ApiKey.CREATE_TOPICS] = create_topics
    found[ApiKey.DELETE_TOPICS] = delete_topics
    found[ApiKey.CREATE_PARTITIONS] = create_partitions
    found[ApiKey.ELECT_LEADERS] = elect
    found[ApiKey.ALTER_PARTITION_REASSIGNMENTS] = reassign
    found[ApiKey.LIST_PARTITION_REASSIGNMENTS] = list_reassignments
    found[ApiKey.DESCRIBE_QUORUM] = adapt_quorum
    found[ApiKey.DESCRIBE_CONFIGS] = describe_configs
    found[ApiKey.ALTER_CONFIGS] = alter_configs
    found[ApiKey.INCREMENTAL_ALTER_CONFIGS] = alter_configs
    return found
