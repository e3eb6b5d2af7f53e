"""Waiting until all of Apache Kafka's broker knows of a change that it has answered.

A broker publishes a change of metadata to its parts one after the other. A consumer group's member that
asks for a topic has its partitions in the first answer (the assignor does not run in the background:
`side.SETTINGS`), so that a member on each partition of `__consumer_offsets` shows which topics the
coordinator knows. Changes of configurations come in their order: where a later one is shown, so is an
earlier one.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tests.differential.wire.script import Ask
from tests.differential.wire.side import Side

_SECONDS_MAX = 60.0
_STATES_SECONDS_MAX = 5.0
_PUBLISHED_SECONDS = 0.02
_CLOSED_SECONDS = 0.04
_numbers = itertools.cycle(range(45_000, 60_000))
_PROBES = ("probe-0", "probe-1")
"""Groups whose records are in different partitions of `__consumer_offsets`, of which there are two."""


def settle_topics(apache: Side, ours: Side, names: list[str]) -> None:
    """Wait until Apache Kafka's coordinator has the partitions that our broker has of these topics, and
    that of a cluster behind ours too.

    Raises:
        TimeoutError: it has not after some seconds.
    """
    wanted = _counts(_existing(ours, names))
    for side in (apache, ours) if ours.reads_behind else (apache,):
        for group in _PROBES:
            _settle_topics(side, group, names, wanted)


def _settle_topics(side: Side, group: str, names: list[str], wanted: Counter[str]) -> None:
    until = time.monotonic() + _SECONDS_MAX
    while True:
        there = _existing(side, names)
        known = {(topic_id, index) for _, topic_id, index in there}
        assigned = _assigned(side, group, names)
        if _counts(there) == wanted and assigned == known:
            break
        if time.monotonic() > until:
            shown = f"{there} where {wanted} is wanted, {assigned} assigned"
            raise TimeoutError(f"{side.kind} does not publish a change of {names}: {shown}")
        time.sleep(0.01)


def settle_states(sides: Sequence[Side], group: str, topics: list[str]) -> None:
    """Wait until both brokers have made the state of a share group's partitions, for some seconds at most.

    Args:
        topics: some that the group is subscribed to; those that exist are to have state.
    """
    asked = {"groups": [{"group_id": group, "topics": None}]}
    wanted = {(name, index) for name, _, index in _existing(sides[1], topics)} if topics else set()
    until = time.monotonic() + _STATES_SECONDS_MAX
    while time.monotonic() < until:
        made = [
            _initialized(side.ask(Ask("DESCRIBE_SHARE_GROUP_OFFSETS", 1, asked, "probe"))) for side in sides
        ]
        if made[0] == made[1] and made[0] >= wanted:
            break
        time.sleep(0.005)


def settle_releases(sides: Sequence[Side], topic: str | None) -> None:
    """Wait until what a share session held is given back: some time after its last answer, or the end of its
    connection.

    Args:
        topic: one that exists; state of it that is made now is written behind what is given back.
    """
    time.sleep(_CLOSED_SECONDS)
    for side in sides:
        side.rest()
    partitions = [{"partition_index": 0, "start_offset": 0}]
    topics = [{"topic_name": topic, "partitions": partitions}] if topic else []
    barrier = Ask("ALTER_SHARE_GROUP_OFFSETS", 0, {"group_id": "barrier", "topics": topics}, "probe")
    for side in sides:
        side.send(barrier, barrier.fields)
    for side in sides:
        side.receive(barrier)


def settle_transaction(sides: Sequence[Side], transactional_id: str) -> None:
    """Wait until both brokers have written the markers of a transaction that is to end, for some seconds
    at most.
    """
    asked = Ask("DESCRIBE_TRANSACTIONS", 0, {"transactional_ids": [transactional_id]}, "probe")
    until = time.monotonic() + _STATES_SECONDS_MAX
    while time.monotonic() < until:
        apache, ours = (side.ask(asked).transaction_states[0].transaction_state for side in sides)
        if apache == ours and not apache.startswith("Prepare"):
            break
        time.sleep(0.002)


def settle_groups(sides: Sequence[Side], group: str) -> None:
    """Wait until a classic group looks alike on both brokers, for some seconds at most: a request that waits
    has been read by then.
    """
    asked = Ask("DESCRIBE_GROUPS", 6, {"groups": [group]}, "probe")
    until = time.monotonic() + _STATES_SECONDS_MAX
    while time.monotonic() < until:
        apache, ours = (
            (each.group_state, len(each.members)) for side in sides for each in side.ask(asked).groups
        )
        if apache == ours:
            break
        time.sleep(0.005)


def _initialized(answer: Any) -> set[tuple[str, int]]:
    return {
        (topic.topic_name, each.partition_index)
        for topic in answer.groups[0].topics
        for each in topic.partitions
    }


def _counts(partitions: set[tuple[str, UUID, int]]) -> Counter[str]:
    return Counter(name for name, _, _ in partitions)


def settle_configs(side: Side) -> None:
    """Wait until the broker shows a change of configurations that is made now.

    Raises:
        TimeoutError: it does not within some seconds.
    """
    number = str(next(_numbers))
    config = {"name": "consumer.session.timeout.ms", "config_operation": 0, "value": number}
    change = {"resource_type": 32, "resource_name": "probe", "configs": [config]}
    fields = {"resources": [change], "validate_only": False}
    side.ask(Ask("INCREMENTAL_ALTER_CONFIGS", 1, fields, "probe"))
    look = {"resource_type": 32, "resource_name": "probe", "configuration_keys": [config["name"]]}
    until = time.monotonic() + _SECONDS_MAX
    while True:
        shown = side.ask(Ask("DESCRIBE_CONFIGS", 4, {"resources": [look]}, "probe")).results[0].configs[0]
        if shown.value == number:
            break
        if time.monotonic() > until:
            raise TimeoutError(f"{side.kind} does not publish a change of configurations")
        time.sleep(0.005)
    time.sleep(_PUBLISHED_SECONDS)  # from visible to effective
    side.rest()


def _existing(side: Side, names: list[str]) -> set[tuple[str, UUID, int]]:
    wanted = [{"topic_id": None, "name": name} for name in names]
    answer = side.ask(Ask("METADATA", 13, {"topics": wanted}, "probe"))
    return {
        (topic.name, topic.topic_id, each.partition_index)
        for topic in answer.topics
        for each in topic.partitions
    }


def _assigned(side: Side, group: str, names: list[str]) -> set[tuple[UUID, int]]:
    asked: dict[str, Any] = {
        "group_id": group,
        "member_id": "probe",
        "member_epoch": 0,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout_ms": 5000,
        "subscribed_topic_names": names,
        "subscribed_topic_regex": None,
        "server_assignor": None,
        "topic_partitions": [],
    }
    answer = side.ask(Ask("CONSUMER_GROUP_HEARTBEAT", 1, asked, "probe"))
    left = asked | {"member_epoch": -1, "subscribed_topic_names": None, "topic_partitions": None}
    side.ask(Ask("CONSUMER_GROUP_HEARTBEAT", 1, left, "probe"))
    topics = answer.assignment.topic_partitions if answer.assignment else []
    return {(topic.topic_id, each) for topic in topics for each in topic.partitions}
