"""Settings that a broker starts with, or that a topic or a group is given, and what is said of them."""

from __future__ import annotations

from typing import NamedTuple

from sharecore.config import BrokerConfig, check_group_config, check_topic_config
from sharecore.errors import ConfigError


class Case(NamedTuple):
    """Settings to judge: the broker's own, or a topic's or group's beside the broker's."""

    scope: str
    settings: dict[str, str]
    broker: dict[str, str]


class Verdict(NamedTuple):
    """Why they are refused, and otherwise how long the broker keeps records by default."""

    refused: str | None
    retention_ms: int | None


def judge(case: Case) -> Verdict:
    """What this broker says."""
    own = case.settings if case.scope == "broker" else {}
    try:
        broker = BrokerConfig.from_properties(case.broker | own)
        if case.scope == "topic":
            check_topic_config(case.settings, broker)
        elif case.scope == "group":
            check_group_config(case.settings, broker)
    except ConfigError as error:
        return Verdict(str(error), None)
    return Verdict(None, broker.retention_ms)
