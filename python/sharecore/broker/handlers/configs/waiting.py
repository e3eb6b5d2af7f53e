"""Reasons why records of a share group wait, which DescribeConfigs reports only by name."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sharecore.errors import KafkaError
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import ACQUIRED, AVAILABLE, unpack_batches

if TYPE_CHECKING:
    from sharecore.broker.requests.services import Services
    from sharecore.partition import SharePartition
    from sharecore.partition.leader import Engine
    from sharecore.storage import Topic

WAITING = "sharecore.waiting."
"""Prefix of read-only group settings `<prefix><topic>.<partition>`, reported only on request."""
HELD_BACK = "sharecore.held.back"
"""Read-only group setting, reported only on request."""

Reason = dict[str, object]


def waiting_text(broker: Services, leader: SharePartition, engine: Engine) -> str | None:
    """Return why records of a share partition wait, as JSON; None if its engine has failed."""
    try:
        found = engine.waiting_reasons(1)
        behind = max(0, leader.log.high_watermark - engine.next_fetch_offset)
    except KafkaError:
        return None  # reloaded by the next use
    reasons: list[Reason] = []
    if leader.takeover_left_ms:
        until_ms = broker.clock.now_ms() + leader.takeover_left_ms
        reasons.append({"reason": "takeover", "setting": "share.ordering.takeover.wait", "dueMs": until_ms})
    if found.backoff:
        due_ms = _wall_time(broker, found.backoff_due_ms)
        reasons.append({"reason": "backoff", "records": found.backoff, "dueMs": due_ms})
    if found.delivery:
        reasons.append({"reason": "delivery", "records": found.delivery, "dueMs": found.delivery_due_ms})
    if found.unread:
        reasons.append({"reason": "unread", "records": found.unread})
    if found.keys is not None and found.keys[0]:
        largest = found.keys[2][0] if found.keys[2] else (0, 0, None)
        reasons.append({"reason": "order", "records": found.keys[0], "most": largest[1], "first": largest[2]})
    if found.is_in_line:
        reasons.append({"reason": "order", "records": behind, "leased": found.leased})
    if found.kept:
        reasons.append({"reason": "kept", "records": found.kept})
    if found.is_full:
        locks = leader.config.share_partition_max_record_locks
        by_locks = not engine.has_rules or found.leased >= locks
        limit = locks if by_locks else leader.config.share_partition_max_waiting
        name = "share.partition.max.record.locks" if by_locks else "share.partition.max.waiting"
        reasons.append({"reason": "window", "setting": name, "limit": limit})
    return json.dumps(reasons)


def idle_text(broker: Services, group_id: str, topic: Topic, partition: int) -> str | None:
    """Return as JSON that no member fetches from a share partition, unless it has no records.

    Its state is not loaded, so what else they wait for is not known. None if another broker leads it.
    """
    if not broker.share.partitions.lacks(group_id, topic.topic_id, partition):
        return None
    state = broker.share.coordinator.look(SharePartitionKey(group_id, topic.topic_id, partition))
    if state is None or state.start_offset < 0:
        return None
    log, reason = topic.partitions[partition], Reason(reason="idle")
    # nobody follows a log of an upstream cluster for a share partition that is not loaded
    if log.is_known:
        complete = state.start_offset + max(0, state.delivery_complete_count)
        reason["records"] = max(0, log.high_watermark - complete)
        if not reason["records"]:
            return "[]"
    if broker.share.partitions.config(group_id).share_retry_backoff_ms:
        reason["returned"] = sum(
            last - first + 1
            for first, last, status, deliveries in unpack_batches(state.batches())
            if status in (AVAILABLE, ACQUIRED) and deliveries
        )
    return json.dumps([reason])


def held_back_text(broker: Services, group_id: str) -> str:
    """Return why fetches of a group wait although records are available, as JSON."""
    by_rate, by_member, by_breaker = broker.share.partitions.held_back(group_id)
    reasons: Iterable[Reason] = (
        {"reason": "rate", "fetches": by_rate, "setting": "share.records.per.second"},
        {"reason": "member", "fetches": by_member, "setting": "share.member.max.record.locks"},
    )
    found = [each for each in reasons if each["fetches"]]
    breaker = broker.share.partitions.breaker(group_id)
    if breaker is not None and breaker[0]:
        due_ms = _wall_time(broker, breaker[1])
        found.append(
            {"reason": "breaker", "fetches": by_breaker, "setting": "share.breaker.percent", "dueMs": due_ms}
        )
    return json.dumps(found)


def _wall_time(broker: Services, monotonic_ms: int | None) -> int | None:
    """Convert monotonic time to milliseconds since the epoch."""
    if monotonic_ms is None:
        return None
    return monotonic_ms + broker.clock.now_ms() - broker.clock.monotonic_ms()
