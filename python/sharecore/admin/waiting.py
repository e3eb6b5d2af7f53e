"""Why records of a share group do not come, as its brokers tell."""

from __future__ import annotations

import json
import time
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sharecore.admin.pausing import pause_of, time_text
from sharecore.client.configs import ResourceKind
from sharecore.client.wire.cluster import TopicPartition
from sharecore.client.wire.transport import Transport
from sharecore.errors import KafkaError
from sharecore.plural import counted
from sharecore.protocol import ApiKey

_WAITING = "sharecore.waiting."
_HELD_BACK = "sharecore.held.back"
"""Settings of a group in which brokers of sharecore tell it."""

Reason = Mapping[str, Any]


@dataclass(slots=True)
class Waiting:
    """Why records of a share group do not come; empty where brokers do not tell.

    Args:
        fetches: why fetches wait although there are records.
        partitions: why records of a share partition wait.
    """

    fetches: list[Reason] = field(default_factory=list)
    partitions: dict[TopicPartition, list[Reason]] = field(default_factory=dict)


async def waiting_of(transport: Transport, group_id: str, partitions: Iterable[TopicPartition]) -> Waiting:
    """Ask every broker, as only the leader of a share partition knows; those that refuse tell nothing."""
    names = {f"{_WAITING}{each.topic}.{each.partition}": each for each in partitions}
    resource = {
        "resource_type": ResourceKind.GROUP,
        "resource_name": group_id,
        "configuration_keys": [_HELD_BACK, *names],
    }
    message = {"resources": [resource], "include_synonyms": False, "include_documentation": False}
    found = Waiting()
    try:
        answers = await transport.all(ApiKey.DESCRIBE_CONFIGS, message)
    except KafkaError:
        return found
    for entry in (entry for answer in answers for each in answer.results for entry in each.configs):
        if entry.name == _HELD_BACK:
            found.fetches += json.loads(entry.value)
        elif entry.name in names:
            found.partitions.setdefault(names[entry.name], []).extend(json.loads(entry.value))
    return found


def reason_lines(waiting: Waiting) -> list[str]:
    """Return all reasons in words."""
    lines = [describe_reason(reason) for reason in waiting.fetches]
    return lines + [
        f"{partition}: {describe_reason(reason)}"
        for partition, reasons in sorted(waiting.partitions.items())
        for reason in reasons
    ]


async def hindrances(
    transport: Transport,
    group_id: str,
    partitions: Iterable[TopicPartition] = (),
    only: Container[str] | None = None,
) -> list[str]:
    """Describe why no records of a group are delivered: its pause, breaker, rate, limit of members.

    Args:
        partitions: share partitions whose own reasons are added.
        only: which of these reasons; None for all.

    Raises:
        KafkaError: the broker did not answer.
    """
    paused = (await pause_of(transport, group_id)).describe(round(time.time() * 1000))
    waiting = await waiting_of(transport, group_id, partitions)
    if only is not None:
        for partition, reasons in waiting.partitions.items():
            waiting.partitions[partition] = [each for each in reasons if each["reason"] in only]
    lines = reason_lines(waiting)
    return [paused, *lines] if paused else lines


def describe_reason(reason: Reason) -> str:
    """Return a reason in a few words."""
    records = counted(reason.get("records", 0), "record")
    due = f" until {time_text(reason['dueMs'])}" if reason.get("dueMs") is not None else ""
    match reason["reason"]:
        case "backoff":
            return f"{records} in back-off{', the first' if due else ''}{due}"
        case "delivery":
            whose = "its" if reason["records"] == 1 else "their"
            return f"{records} before {whose} delivery time{', the first' if due else ''}{due}"
        case "unread":
            return f"{records} not read yet since the partition was loaded"
        case "order" if "leased" in reason:
            return f"{records} behind {reason['leased']} in flight, in the order of the partition"
        case "order":
            most = f"; a key has {reason['most']}, from offset {reason['first']} on" if reason["most"] else ""
            return f"{records} behind others of their key{most}"
        case "window":
            return f"no new records: {reason['setting']}={reason['limit']} is reached"
        case "kept":
            return f"{records} held longer than a lock lasts, by members that are connected"
        case "takeover":
            return f"no records{due}, as members may hold some since before a takeover: {reason['setting']}"
        case "breaker":
            open_ = f"open{due}" if due else "half open, 10 records at a time"
            return f"the breaker of {reason['setting']} is {open_}"
        case "rate" | "member":
            return f"{counted(reason['fetches'], 'fetch')} held back by {reason['setting']}"
    return str(reason["reason"])
