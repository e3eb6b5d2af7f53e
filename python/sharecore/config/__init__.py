"""The typed configuration, under the names of Kafka's `server.properties`, with 4.4.0's defaults and
limits.
"""

from __future__ import annotations

from sharecore.config.broker import BrokerConfig, broker_keys, listener_key, split_listener
from sharecore.config.group import GroupConfig, OffsetReset, check_group_config, group_keys
from sharecore.config.keys import ConfigKey, Dynamic, Kind, Status
from sharecore.config.listeners import Listener, listeners_of
from sharecore.config.network import per_ip_overrides
from sharecore.config.properties import (
    check_names,
    check_spelling,
    misspelled,
    parse_properties,
    read_properties,
    remarks_on,
    unknown_names,
)
from sharecore.config.security import SASL_MECHANISMS
from sharecore.config.share import DEFAULT_PERSISTER, NO_PERSISTER
from sharecore.config.topic import TopicConfig, check_topic_config, parse_topic_config, topic_keys
from sharecore.config.unserved import find_unserved, remarks
from sharecore.config.unserved_values import ignored_keys

__all__ = [
    "DEFAULT_PERSISTER",
    "NO_PERSISTER",
    "SASL_MECHANISMS",
    "BrokerConfig",
    "ConfigKey",
    "Dynamic",
    "GroupConfig",
    "Kind",
    "Listener",
    "OffsetReset",
    "Status",
    "TopicConfig",
    "broker_keys",
    "check_group_config",
    "check_names",
    "check_spelling",
    "check_topic_config",
    "find_unserved",
    "group_keys",
    "ignored_keys",
    "listener_key",
    "listeners_of",
    "misspelled",
    "parse_properties",
    "parse_topic_config",
    "per_ip_overrides",
    "read_properties",
    "remarks",
    "remarks_on",
    "split_listener",
    "topic_keys",
    "unknown_names",
]
