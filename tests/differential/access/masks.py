"""Answers without what has nothing to do with rights, or what two brokers cannot share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from sharecore.protocol import ApiKey
from sharecore.tier.membership.view import FIRST_NODE_ID

if TYPE_CHECKING:
    from tests.differential.access.brokers import Guarded

_ANY = {
    *("base_offset", "log_append_time_ms", "log_start_offset", "high_watermark", "last_stable_offset"),
    *("producer_id", "producer_epoch", "partition_size", "total_bytes", "usable_bytes", "log_dir"),
    *("records", "acquired_records", "cluster_id", "low_watermark", "group_epoch"),
    *("assignment_epoch", "member_epoch", "heartbeat_interval_ms", "acquisition_lock_timeout_ms"),
    *("start_offset", "lag", "committed_offset", "client_host"),
    *("leader_epoch", "committed_leader_epoch", "metadata", "offset", "end_offset", "throttle_time_ms"),
    *("subscription_id", "session_id"),
    *("controller_id", "acknowledge_error_message", "future_partition_size", "finalized_features_epoch"),
}
_ONLY_WHETHER = {"configs", "synonyms", "aborted_transactions"}
_OF_STATE = (3, 42, 121)
"""What becomes of an acknowledgement that may be tried: nobody has fetched what it is about."""
_INTERNAL = "__"


def masked(key: ApiKey, answer: Any, topics: dict[UUID, str], broker: Guarded) -> Any:
    """Return an answer as dictionaries and lists."""

    def plain(name: str, value: Any) -> Any:
        if name in _ANY:
            return "<any>"
        if name in _ONLY_WHETHER:
            return bool(value)
        if broker.kind == "node":
            if value == FIRST_NODE_ID:
                return 0
            if isinstance(value, str):
                value = value.replace(str(FIRST_NODE_ID), "0")
        if name == "port":
            return "<port>" if value in (broker.port, broker.inside) else value
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return {field: plain(field, each) for field, each in zip(value._fields, value, strict=True)}
        if isinstance(value, list | tuple):
            items = [plain(name, each) for each in value]
            return [each for each in items if not _is_internal(each)]
        if isinstance(value, UUID):
            return topics.get(value, "<unknown>" if value.int else "<none>")
        if isinstance(value, bytes):
            return value.hex()
        return value

    found = plain("", answer)
    if key is ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
        found["results"].sort(key=lambda each: str(each["user"]))
    if key is ApiKey.LIST_TRANSACTIONS:
        found["transaction_states"].sort(key=lambda each: str(each["transactional_id"]))
    if key is ApiKey.SHARE_ACKNOWLEDGE:
        for topic in found["responses"]:
            for part in topic["partitions"]:
                if part["error_code"] in _OF_STATE:
                    part["error_code"] = part["error_message"] = "<of state>"
    if key is ApiKey.CREATE_TOPICS:
        for topic in found["topics"]:
            topic["topic_id"] = "<any>"
    if key is ApiKey.JOIN_GROUP and found["member_id"]:
        found["member_id"] = "<chosen>"
    return found


def _is_internal(item: Any) -> bool:
    return isinstance(item, dict) and str(item.get("name", "")).startswith(_INTERNAL)
