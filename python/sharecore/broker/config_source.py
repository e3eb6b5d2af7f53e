"""Sources of a configuration value, numbered as in Kafka."""

from __future__ import annotations

from enum import IntEnum


class ConfigSource(IntEnum):
    """Source of a configuration value."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8
