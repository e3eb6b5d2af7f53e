"""Views of a cluster for the browser: plain values for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TypedDict

from sharecore.admin.doctor import LETTERS_TROUBLE
from sharecore.admin.model import LATEST_TIMESTAMP, Member, ShareGroup
from sharecore.admin.waiting import describe_reason
from sharecore.admin.watch import group_figures, partition_figures
from sharecore.client.configs import ConfigEntry
from sharecore.client.wire.cluster import TopicPartition
from sharecore.client.wire.transport import Transport
from sharecore.errors import ErrorCode, KafkaError
from sharecore.page.looker import Looker
from sharecore.page.window import Window, of_state
from sharecore.protocol import calls
from sharecore.sharestate.keys import SharePartitionKey

GROUPS_MAX = 500
PARTITIONS_MAX = 500
STRIPS_MAX = 16
MEMBERS_MAX = 1000
LIMIT_KEY = "share.delivery.count.limit"
LETTERS_KEY = "errors.deadletterqueue.topic.name"
_DEFAULT_LIMIT = 5

Json = dict[str, object]


def groups_view(looker: Looker, wanted: str) -> Json:
    """Return the groups with the highest lag whose name contains `wanted`."""
    if looker.now is None:
        return {"groups": [], "total": 0, "matching": 0}
    every = list(group_figures(looker.now, looker.before))
    found = [each for each in every if wanted.lower() in each.group_id.lower()]
    found.sort(key=lambda each: (-(each.lag or 0), each.group_id))
    return {
        "groups": [asdict(each) for each in found[:GROUPS_MAX]],
        "total": len(every),
        "matching": len(found),
        "came_back_known": looker.now.came_back is not None,
        "in_flight_known": looker.leaders is not None,
    }


async def group_view(looker: Looker, group_id: str, topic: str, first: int) -> Json:
    """One group: figures, members, partitions, and the windows of some partitions of a topic.

    Args:
        topic: whose windows are wanted; empty: of the first topic.
        first: the first partition whose window is wanted.

    Raises:
        KafkaError: the group may not be described, or is gone.
    """
    now = looker.now
    if now is None:
        return {"group": None}
    figures = next((each for each in group_figures(now, looker.before) if each.group_id == group_id), None)
    if figures is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no share group {group_id}")
    overview = now.groups[group_id]
    if overview.error is not None:
        raise overview.error
    described = await looker.admin.describe(group_id, authorized_operations=True)
    topics = sorted(overview.positions)
    topic = topic if topic in overview.positions else (topics[0] if topics else "")
    partitions = sorted(
        partition_figures(group_id, now, looker.before), key=lambda each: (each.topic, each.partition)
    )
    of_topic = [each.partition for each in partitions if each.topic == topic]
    shown = [each for each in of_topic if each >= first][:STRIPS_MAX]
    windows = await windows_of(looker, group_id, topic, shown) if shown else {}
    unknown = [TopicPartition(topic, each) for each in shown if _log_end(windows.get(each)) is None]
    ends = await looker.transport.offsets_for(unknown, LATEST_TIMESTAMP)
    behind = [
        TopicPartition(topic, each.partition)
        for each in partitions
        if each.topic == topic and each.partition in shown and each.lag != 0
    ]
    waiting = await looker.admin.waiting_of(group_id, behind)
    return {
        "group": asdict(figures),
        "topics": topics,
        "topic": topic,
        "members": [_member(each) for each in described.members[:MEMBERS_MAX]],
        "members_total": len(described.members),
        "epoch": described.epoch,
        "assignor": described.assignor,
        "operations": _operations(described),
        "waits": [
            *map(describe_reason, waiting.fetches),
            *waiting.of_partitions(),
            *(waiting.gaps() if figures.lag else ()),
        ],
        "paused": waiting.paused,
        "partitions": [asdict(each) for each in partitions[:PARTITIONS_MAX]],
        "partitions_total": len(partitions),
        "of_topic": of_topic,
        "windows": [
            _strip(
                each,
                overview.positions[topic][each].start_offset,
                windows.get(each),
                ends.get(TopicPartition(topic, each), 0),
            )
            for each in shown
        ],
    }


async def windows_of(
    looker: Looker, group_id: str, topic: str, partitions: Sequence[int]
) -> dict[int, Window]:
    """Return the windows that are known; of partitions that the principal may see."""
    found: dict[int, Window] = {}
    if looker.leaders is not None:
        found = await looker.leaders.windows(group_id, topic, partitions)
    others = [each for each in partitions if each not in found]
    if others:
        topic_id = (await looker.transport.topic(topic))[0]
        for partition in others:
            state = looker.watch.tail.state(SharePartitionKey(group_id, topic_id, partition))
            if state is not None:
                found[partition] = of_state(state)
    return found


class GroupSettings(TypedDict):
    """The settings of a group that the page shows."""

    limit: int
    limit_known: bool
    letters: str | None
    letters_trouble: str | None


async def group_settings(looker: Looker, group_id: str) -> GroupSettings:
    """Return the readable delivery limit and dead-letter topic of a group."""
    try:
        entries: Mapping[str, ConfigEntry] = await looker.admin.configs(group_id)
        trouble = await looker.admin.configs(group_id, [LETTERS_TROUBLE])
    except KafkaError:
        entries = trouble = {}
    limit, letters = entries.get(LIMIT_KEY), entries.get(LETTERS_KEY)
    known = limit is not None and limit.value is not None and limit.value.isdecimal()
    return {
        "limit": int(limit.value) if known and limit is not None and limit.value else _DEFAULT_LIMIT,
        "limit_known": known,
        "letters": letters.value if letters is not None and letters.value else None,
        "letters_trouble": next((entry.value for entry in trouble.values() if entry.value), None),
    }


async def cluster_id(transport: Transport) -> str | None:
    """Return the cluster's id; raise KafkaError."""
    answer = await transport.any(calls.METADATA, {"topics": [], "allow_auto_topic_creation": False})
    return answer.cluster_id


def _log_end(window: Window | None) -> int | None:
    return window.log_end if window is not None else None


def _strip(partition: int, start: int, window: Window | None, log_end: int) -> Json:
    if window is None:
        window = Window(start, start, (), "none")
    return {
        "partition": partition,
        "start": window.start_offset,
        "end": window.end_offset,
        "log_end": max(window.log_end or log_end, window.end_offset + (1 if window.runs else 0)),
        "runs": window.runs,
        "source": window.source,
        "cut": window.cut,
    }


def _member(member: Member) -> Json:
    return {
        "id": member.member_id,
        "client": member.client_id,
        "host": member.host,
        "epoch": member.epoch,
        "rack": member.rack_id,
        "assignment": _ranges(member.assignment),
    }


def _ranges(assignment: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in assignment:
        found.setdefault(topic, []).append(partition)
    return found


_READ, _DELETE, _ALTER_CONFIGS = 3, 6, 11


def _operations(group: ShareGroup) -> Json:
    """Return the principal's permitted actions on the group; all if the cluster does not report them."""
    bits = group.authorized_operations
    return {
        "read": bits is None or bool(bits >> _READ & 1),
        "delete": bits is None or bool(bits >> _DELETE & 1),
        "alter_configs": bits is None or bool(bits >> _ALTER_CONFIGS & 1),
    }
