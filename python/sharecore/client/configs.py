"""Reading and changing the settings of topics, brokers and groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum

from sharecore.client.wire.refusals import accept, on_settings
from sharecore.client.wire.transport import Transport
from sharecore.protocol import ApiKey, calls


class ResourceKind(IntEnum):
    """The kind of a resource, with Kafka's number."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


class ConfigSource(Enum):
    """The source of a value, with Kafka's number."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A setting and the source of its value."""

    name: str
    value: str | None
    source: ConfigSource
    documentation: str | None = None

    @property
    def own(self) -> bool:
        """Whether it is set for the topic or the group itself."""
        return self.source in (ConfigSource.GROUP, ConfigSource.TOPIC)


_SET, _DELETE = 0, 1


async def describe_configs(
    transport: Transport, kind: ResourceKind, name: str, names: Collection[str] = ()
) -> dict[str, ConfigEntry]:
    """Return settings of a resource by name, all or those in `names`.

    Args:
        name: topic or group name, or broker ID.

    Raises:
        KafkaError: a broker returned an error or did not respond.
    """
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": [*names] or None}
    message = {"resources": [resource], "include_synonyms": False, "include_documentation": True}
    if kind is ResourceKind.BROKER:
        answer = await transport.node(int(name), calls.DESCRIBE_CONFIGS, message)
    else:
        answer = await transport.any(calls.DESCRIBE_CONFIGS, message)
    described = accept(answer.results[0], on_settings(ApiKey.DESCRIBE_CONFIGS, name))
    return {
        entry.name: ConfigEntry(
            entry.name, entry.value, _source(entry.config_source), getattr(entry, "documentation", None)
        )
        for entry in sorted(described.configs, key=lambda entry: entry.name)
    }


async def alter_configs(
    transport: Transport,
    kind: ResourceKind,
    name: str,
    values: Mapping[str, object] | None = None,
    *,
    unset: Collection[str] = (),
    validate_only: bool = False,
) -> None:
    """Set settings of a topic or a group, and reset others to their defaults; all or none.

    Raises:
        KafkaError: INVALID_CONFIG with the allowed values, or a broker returned an error or did not respond.
    """
    configs: list[dict[str, object]] = [
        {"name": key, "config_operation": _SET, "value": config_text(value)}
        for key, value in (values or {}).items()
    ]
    configs += [{"name": key, "config_operation": _DELETE, "value": None} for key in unset]
    if not configs:
        return
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    message = {"resources": [resource], "validate_only": validate_only}
    answer = await transport.any(calls.INCREMENTAL_ALTER_CONFIGS, message)
    accept(answer.responses[0], on_settings(ApiKey.INCREMENTAL_ALTER_CONFIGS, name))


def config_text(value: object) -> str:
    """Return a value in Kafka's notation."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _source(number: int) -> ConfigSource:
    try:
        return ConfigSource(number)
    except ValueError:
        return ConfigSource.UNKNOWN
