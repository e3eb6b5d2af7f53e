"""Topics of a tier's state and settings: required settings, and their correction.

Topics created manually or altered later may have settings with which the cluster deletes data of the tier:
with retention, share state is lost and acknowledged records are redelivered.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from sharecore.config import BrokerConfig
from sharecore.errors import ErrorCode, KafkaError
from sharecore.sharestate.records import state_bytes_max
from sharecore.tier.names import settings_topic

logger = logging.getLogger("sharecore.tier")

_REQUEST_BYTES = 104_857_600
"""Kafka's default of socket.request.max.bytes."""
_ROOM_BYTES = 1 << 20
"""Request overhead beside its records, with a margin."""
MESSAGE_BYTES_MIN = 1_048_588
"""Kafka's default of max.message.bytes: a snapshot of share state may come near it."""


class WrongSetting(NamedTuple):
    """A setting of one of the topics that must be corrected.

    Attributes:
        found, wanted: its values.
        why: the consequence of the current value.
        is_fatal: whether nodes must not use the topic with it.
        is_ours: whether a node or `sharecore tier repair` corrects it; otherwise operators must decide.
        costs_data: whether it makes the cluster delete data of the tier.
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
        return f"{self.topic}: {self.name} is {self.found}; it must be {self.wanted}: {self.why}"


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


_KEPT = "the cluster deletes state of share groups, and acknowledged records are redelivered"
_COMMON = (
    _Rule(
        "max.message.bytes",
        str(MESSAGE_BYTES_MIN),
        _at_least(MESSAGE_BYTES_MIN),
        "larger records of the tier are rejected",
        costs_data=False,
    ),
    _Rule(
        "unclean.leader.election.enable",
        "false",
        _is("false"),
        "a replica that lacks records may be elected, and confirmed acknowledgements are lost",
        is_ours=False,
    ),
)
_STATE = (
    _Rule(
        "cleanup.policy",
        "delete",
        _is("delete"),
        "compaction deletes incremental updates of the state",
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
    """Reads and alters topic settings (`upstream.Administration`)."""

    async def topic_configs(self, name: str) -> dict[str, str | None]: ...

    async def set_topic_configs(self, name: str, values: Mapping[str, str]) -> None: ...


async def find_wrong(admin: Configuring, config: BrokerConfig) -> list[WrongSetting]:
    """Return the incorrect settings of both topics.

    The settings topic is skipped if this user may not describe it, as older versions needed only the state
    topic.

    Raises:
        KafkaError: the settings cannot be read.
    """
    state = config.sharecore_tier_state_topic
    found = judge(state, (*_STATE, _sized(config)), await admin.topic_configs(state), config)
    topic = settings_topic(state)
    try:
        found += judge(topic, _SETTINGS, await admin.topic_configs(topic), config)
    except KafkaError as error:
        if error.code is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise
        logger.warning("cannot check whether %s is compacted: %s", topic, error)
    return found


def state_record_bytes(config: BrokerConfig) -> int:
    """Return the required record size of the state topic: a snapshot of a full share partition."""
    locks = config.group_share_max_partition_max_record_locks
    return max(MESSAGE_BYTES_MIN, state_bytes_max(locks))


def oversized(config: BrokerConfig) -> str:
    """Return a warning if a snapshot may exceed the brokers' default request size; empty otherwise."""
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
    why = "acknowledgements fail once the state of a share partition exceeds the record size"
    return _Rule("max.message.bytes", str(wanted), _at_least(wanted), why, costs_data=False)


def judge(
    topic: str, rules: Sequence[_Rule], values: Mapping[str, str | None], config: BrokerConfig
) -> list[WrongSetting]:
    """Return the incorrect settings of a topic; unreported ones count as correct, later rules win."""
    in_sync = config.sharecore_tier_min_insync_replicas
    replicated = _Rule(
        "min.insync.replicas",
        str(in_sync),
        _at_least(in_sync),
        "confirmed records may have a single copy (see sharecore.tier.min.insync.replicas)",
        is_ours=False,
    )
    return [
        WrongSetting(
            topic, rule.name, value, rule.wanted, rule.why, rule.is_fatal, rule.is_ours, rule.costs_data
        )
        for rule in {rule.name: rule for rule in (*rules, replicated)}.values()
        if (value := values.get(rule.name)) is not None and not rule.holds(value)
    ]


async def set_right(
    admin: Configuring, wrong: Sequence[WrongSetting]
) -> list[tuple[WrongSetting, KafkaError]]:
    """Correct the tier's own settings; return those that failed, with the cluster's errors."""
    failed: list[tuple[WrongSetting, KafkaError]] = []
    for topic in dict.fromkeys(each.topic for each in wrong):
        ours = [each for each in wrong if each.topic == topic and each.is_ours]
        if not ours:
            continue
        try:
            await admin.set_topic_configs(topic, {each.name: each.wanted for each in ours})
        except KafkaError as error:
            failed += [(each, error) for each in ours]
    return failed
