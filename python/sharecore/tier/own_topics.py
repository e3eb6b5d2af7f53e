"""The topics that a tier keeps its state and settings in: how they must be set, and how that is put right.

Topics that were made by hand, or altered later, may have settings under which the cluster deletes what the
tier needs: with retention share state goes, and records that were settled come again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from sharecore.config import BrokerConfig
from sharecore.errors import ErrorCode, KafkaError
from sharecore.sharestate.records import state_bytes_max
from sharecore.tier.names import settings_topic

logger = logging.getLogger(__name__)

_REQUEST_BYTES = 104_857_600
"""Kafka's default of socket.request.max.bytes."""
_ROOM_BYTES = 1 << 20
"""What a request has beside its records, and to spare."""
MESSAGE_BYTES_MIN = 1_048_588
"""Kafka's default of max.message.bytes: a snapshot of share state may come near it."""


class Wrong(NamedTuple):
    """A setting of one of the topics that must not stay as it is.

    Attributes:
        found, wanted: its values.
        why: what happens with the value that was found.
        is_fatal: nodes must not use the topic with it.
        is_ours: whether a node, or `sharecore tier repair`, sets it right; else operators have to judge.
        costs_data: whether the cluster deletes with it what the tier needs.
    """

    topic: str
    name: str
    found: str
    wanted: str
    why: str
    is_fatal: bool = False
    is_ours: bool = True
    costs_data: bool = True

    def __str__(self) -> str:
        return f"{self.topic}: {self.name} is {self.found}, and has to be {self.wanted}: {self.why}"


class _Rule(NamedTuple):
    name: str
    wanted: str
    holds: Callable[[str], bool]
    why: str
    is_fatal: bool = False
    is_ours: bool = True
    costs_data: bool = True


def _is(wanted: str) -> Callable[[str], bool]:
    return lambda found: found == wanted


def _at_least(wanted: int) -> Callable[[str], bool]:
    return lambda found: not found.lstrip("-").isdecimal() or int(found) >= wanted


_KEPT = "the cluster deletes state that share groups need, and records that were settled come again"
_COMMON = (
    _Rule(
        "max.message.bytes",
        str(MESSAGE_BYTES_MIN),
        _at_least(MESSAGE_BYTES_MIN),
        "larger records of the tier are refused",
        costs_data=False,
    ),
    _Rule(
        "unclean.leader.election.enable",
        "false",
        _is("false"),
        "a replica that lacks records may be elected, and what was answered is lost",
        is_ours=False,
    ),
)
_STATE = (
    _Rule(
        "cleanup.policy",
        "delete",
        _is("delete"),
        "state is written in updates that follow on each other, and compaction takes them away",
        is_fatal=True,
    ),
    _Rule("retention.ms", "-1", _is("-1"), _KEPT),
    _Rule("retention.bytes", "-1", _is("-1"), _KEPT),
    *_COMMON,
)
_SETTINGS = (
    _Rule(
        "cleanup.policy",
        "compact",
        _is("compact"),
        "the cluster deletes users, rights, quotas and settings of groups once they are old",
    ),
    *_COMMON,
)


class Configuring(Protocol):
    """Who tells and alters settings of topics (`upstream.Administration`)."""

    async def topic_configs(self, name: str) -> dict[str, str | None]: ...

    async def set_topic_configs(self, name: str, values: Mapping[str, str]) -> None: ...


async def find_wrong(admin: Configuring, config: BrokerConfig) -> list[Wrong]:
    """Return what is wrong with the settings of both topics. Those of the settings topic are not looked at
    where this user may not, as older versions asked for the state topic's alone.

    Raises:
        KafkaError: they cannot be asked for.
    """
    state = config.sharecore_tier_state_topic
    found = judge(state, (*_STATE, _sized(config)), await admin.topic_configs(state), config)
    topic = settings_topic(state)
    try:
        found += judge(topic, _SETTINGS, await admin.topic_configs(topic), config)
    except KafkaError as error:
        if error.code is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise
        logger.warning("whether %s is compacted cannot be looked at: %s", topic, error)
    return found


def state_record_bytes(config: BrokerConfig) -> int:
    """Return how large the records of the state topic must be allowed to be: a snapshot holds all that is in
    flight in a share partition.
    """
    locks = config.group_share_max_partition_max_record_locks
    return max(MESSAGE_BYTES_MIN, state_bytes_max(locks))


def oversized(config: BrokerConfig) -> str:
    """Return what to set upstream where a snapshot of share state may be larger than a request that Kafka's
    brokers read by default; empty where it is not.
    """
    wanted = state_record_bytes(config)
    if wanted <= _REQUEST_BYTES:
        return ""
    locks = config.group_share_max_partition_max_record_locks
    return (
        f"group.share.max.partition.max.record.locks={locks} allows share state of {wanted} bytes: set "
        f"socket.request.max.bytes={wanted + _ROOM_BYTES} on the brokers upstream, whose default is "
        f"{_REQUEST_BYTES}"
    )


def _sized(config: BrokerConfig) -> _Rule:
    wanted = state_record_bytes(config)
    why = "nothing is settled any more once a share partition has more in flight than a record holds"
    return _Rule("max.message.bytes", str(wanted), _at_least(wanted), why, costs_data=False)


def judge(
    topic: str, rules: Sequence[_Rule], values: Mapping[str, str | None], config: BrokerConfig
) -> list[Wrong]:
    """Return what is wrong with a topic's settings; one that the cluster does not tell is taken for right.
    Of two rules about a setting the later counts.
    """
    in_sync = config.sharecore_tier_min_insync_replicas
    replicated = _Rule(
        "min.insync.replicas",
        str(in_sync),
        _at_least(in_sync),
        "what is confirmed may have a single copy (see sharecore.tier.min.insync.replicas)",
        is_ours=False,
    )
    return [
        Wrong(topic, rule.name, value, rule.wanted, rule.why, rule.is_fatal, rule.is_ours, rule.costs_data)
        for rule in {rule.name: rule for rule in (*rules, replicated)}.values()
        if (value := values.get(rule.name)) is not None and not rule.holds(value)
    ]


async def set_right(admin: Configuring, wrong: Sequence[Wrong]) -> list[tuple[Wrong, KafkaError]]:
    """Set what is the tier's to set; return what could not be set, with the cluster's error."""
    failed: list[tuple[Wrong, KafkaError]] = []
    for topic in dict.fromkeys(each.topic for each in wrong):
        ours = [each for each in wrong if each.topic == topic and each.is_ours]
        if not ours:
            continue
        try:
            await admin.set_topic_configs(topic, {each.name: each.wanted for each in ours})
        except KafkaError as error:
            failed += [(each, error) for each in ours]
    return failed
