"""Configurations for DescribeConfigs: current values and their synonyms."""

from __future__ import annotations

import json
from collections.abc import Collection, Container, Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

from sharecore.broker.handlers.configs.waiting import (
    HELD_BACK,
    WAITING,
    held_back_text,
    idle_text,
    waiting_text,
)
from sharecore.config import (
    ConfigKey,
    Dynamic,
    Kind,
    Status,
    broker_keys,
    find_unserved,
    group_keys,
    ignored_keys,
    listener_key,
    topic_keys,
)
from sharecore.config.client_metrics import client_metrics_keys
from sharecore.errors import ConfigError, KafkaError
from sharecore.sharestate.records import ACQUIRED as ACQUIRED_STATE
from sharecore.storage import ResourceType

if TYPE_CHECKING:
    from sharecore.protocol import messages

    Entry: TypeAlias = messages.DescribeConfigsResourceResult
    from sharecore.broker.requests.services import Services


class ConfigSource(IntEnum):
    """Source of a configuration value, numbered as in Kafka."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


CLUSTER_WIDE = ""
"""Name of the broker resource for all brokers."""

LETTERS_WRITTEN, LETTERS_MISSING = "sharecore.dead.letters.written", "sharecore.dead.letters.missing"
LETTERS_TROUBLE = "sharecore.dead.letters.trouble"
"""Read-only group setting, reported only on request."""
ACQUIRED = "sharecore.acquired."
"""Prefix of read-only group settings `<prefix><topic>.<partition>`, reported only on request."""
DAMAGE, COPY_TROUBLE = "sharecore.damage", "sharecore.bucket.trouble"
"""Read-only broker settings, reported only on request."""
_DAMAGE_MAX = 20
"""Maximum number of named damaged batches."""

_AS_GIVEN = (ConfigSource.DYNAMIC_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER)
_INTERNAL = "internal."
"""Prefix of keys that Kafka never reports."""
_WITHOUT_EFFECT: Mapping[str, tuple[str, ...]] = {
    "compression.lz4.level": ("compression.lz4.level",),
    "file.delete.delay.ms": ("log.segment.delete.delay.ms",),
    "flush.messages": ("log.flush.interval.messages",),
    "flush.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "index.interval.bytes": ("log.index.interval.bytes",),
    "local.retention.bytes": ("log.local.retention.bytes",),
    "local.retention.ms": ("log.local.retention.ms",),
    "max.decompressed.message.bytes": ("max.decompressed.message.bytes",),
    "preallocate": ("log.preallocate",),
    "remote.copy.lag.bytes": ("log.remote.copy.lag.bytes",),
    "remote.copy.lag.ms": ("log.remote.copy.lag.ms",),
    "segment.index.bytes": ("log.index.size.max.bytes",),
    "segment.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "unclean.leader.election.enable": ("unclean.leader.election.enable",),
}
"""Kafka's broker keys behind topic keys without effect here; the last one has the topic key's default."""
_RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")

Value = tuple[str, str | None, ConfigSource]


def topic_entries(broker: Services, overrides: Mapping[str, str]) -> list[Entry]:
    """Return all settings of a topic; keys without effect have Kafka's defaults."""
    entries = []
    for name, (_, key) in topic_keys().items():
        if name not in overrides and (key.own or name.startswith(_INTERNAL)):
            continue
        values: list[Value] = []
        if name in overrides:
            values.append((name, _as_read(key, overrides[name]), ConfigSource.TOPIC))
        if key.synonym in _RETENTION:
            behind = _retention_values(broker)
            value = _milliseconds((values + behind)[0])
            # of the broker's three keys, Kafka reports only the one in milliseconds, and only if set
            if any(behind_name == _RETENTION[0] for behind_name, _, _ in behind):
                values += behind
            entries.append(_entry(key, values, value))
            continue
        values += _broker_values(broker, key.synonym) if key.synonym else _values_without_effect(broker, key)
        entries.append(_entry(key, values, values[0][1] if values else key.format(key.default)))
    return entries


def broker_entries(broker: Services) -> list[Entry]:
    """Return all settings of this broker."""
    entries = []
    for name, (_, key) in broker_keys().items():
        values = _broker_values(broker, name)
        value = values[0][1] if values else None
        if name == _RETENTION[0]:
            values = _retention_values(broker)
        if value is not None and values[0][2] in _AS_GIVEN:
            value = _as_read(key, value)
        entries.append(_entry(key, values, value, read_only=key.dynamic is Dynamic.READ_ONLY))
    for name, text in sorted(broker.static_config.without_effect.items()):
        key = ignored_keys()[name]
        values = [(name, _as_read(key, text), ConfigSource.STATIC_BROKER)]
        entries.append(_entry(key, values, values[0][1], read_only=True))
    own = broker.configs.get(ResourceType.BROKER, str(broker.identity.node_id))
    return entries + _altered(own.keys() - broker_keys().keys(), own, ConfigSource.DYNAMIC_BROKER)


def cluster_entries(broker: Services) -> list[Entry]:
    """Return the settings of all brokers."""
    settings = broker.configs.get(ResourceType.BROKER, CLUSTER_WIDE)
    return _altered(settings, settings, ConfigSource.DYNAMIC_DEFAULT_BROKER)


def _altered(names: Iterable[str], settings: Mapping[str, str], source: ConfigSource) -> list[Entry]:
    """Return altered settings, including those of single listeners."""
    entries = []
    for name in sorted(names):
        known = broker_keys().get(listener_key(name))
        value: Value = (name, settings[name], source)
        if known is not None:
            entries.append(_written(name, [value], settings[name], int(known[1].kind), known[1].doc))
        elif (unserved := find_unserved(listener_key(name))) is not None:
            entries.append(_written(name, [value], settings[name], int(Kind.STRING), unserved.reason))
    return entries


def group_entries(
    broker: Services, overrides: Mapping[str, str], wanted: Collection[str] = ()
) -> list[Entry]:
    """Return all settings of a group, or those of them in `wanted`."""
    entries = []
    for name, (_, key) in group_keys().items():
        if (wanted and name not in wanted) or _hidden(name, key, overrides):
            continue
        values: list[Value] = []
        if name in overrides:
            values.append((name, key.format(key.parse(overrides[name])), ConfigSource.GROUP))
        values += _broker_values(broker, key.synonym) if key.synonym else []
        if not key.synonym:
            values.append((name, key.format(key.default), ConfigSource.DEFAULT))
        entries.append(_entry(key, values, values[0][1]))
    return entries


def client_metrics_entries(overrides: Mapping[str, str]) -> list[Entry]:
    """Return all settings of a client-metrics subscription."""
    entries = []
    for name, (_, key) in client_metrics_keys().items():
        value, values = key.format(key.default), []
        if name in overrides:
            value = _parsed(key, overrides[name])
            values = [(name, value, ConfigSource.CLIENT_METRICS)]
        entries.append(_entry(key, values, value))
    return entries


def letter_entries(broker: Services, group_id: str, wanted: Container[str]) -> list[Entry]:
    """Return a group's dead-letter counters since startup, which are reported only by name."""
    if not any(name in wanted for name in (LETTERS_WRITTEN, LETTERS_MISSING, LETTERS_TROUBLE)):
        return []
    counts = broker.share.dead_letters.counts.get(group_id)
    shown = {
        LETTERS_WRITTEN: ("Dead letters that were written since the broker started.", "letters"),
        LETTERS_MISSING: (
            "Records that were archived without their dead letter since the broker started.",
            "without_letter",
        ),
    }
    entries = [
        _written(name, [], str(getattr(counts, attribute, 0)), int(Kind.LONG), doc, read_only=True)
        for name, (doc, attribute) in shown.items()
    ]
    trouble, doc = broker.share.dead_letters.trouble(group_id), "Why no dead letter could be written now."
    return [*entries, _written(LETTERS_TROUBLE, [], trouble, int(Kind.STRING), doc, read_only=True)]


def partition_topics(names: Iterable[str]) -> dict[str, str]:
    """Return the topics of settings such as `sharecore.acquired.jobs.0`."""
    prefixes = (ACQUIRED, WAITING)
    return {
        name: name.removeprefix(prefix).rpartition(".")[0]
        for name in names
        for prefix in prefixes
        if name.startswith(prefix)
    }


def held_back_entry(broker: Services, group_id: str) -> Entry:
    """Return why fetches of a group wait although records are available."""
    doc = "Why fetches wait although there are records, and how many."
    return _written(HELD_BACK, [], held_back_text(broker, group_id), int(Kind.STRING), doc, read_only=True)


def partition_entry(broker: Services, group_id: str, name: str, topic_name: str) -> Entry | None:
    """Return a share partition's leases or waiting reasons; None if another broker leads it."""
    topic, index = broker.topics.get(topic_name), name.rpartition(".")[2]
    if topic is None or not index.isdecimal() or int(index) >= len(topic.partitions):
        return None
    leader = broker.share.partitions.peek(group_id, topic.topic_id, int(index))
    engine = None if leader is None else leader.engine
    if name.startswith(WAITING):
        doc = "Why records do not come."
        if leader is not None and engine is not None:
            text = waiting_text(broker, leader, engine)
        else:
            text = idle_text(broker, group_id, topic, int(index))
        return None if text is None else _written(name, [], text, int(Kind.STRING), doc, read_only=True)
    if engine is None:
        return None
    try:
        runs = engine.inflight()
    except KafkaError:
        return None  # the engine has failed, and is reloaded by the next use
    leased = [[first, last, count] for first, last, state, count in runs if state == ACQUIRED_STATE]
    doc = "Offsets leased to members now: the first, the last, and how often they were delivered."
    return _written(name, [], json.dumps(leased), int(Kind.STRING), doc, read_only=True)


def damage_entries(broker: Services) -> list[Entry]:
    """Return the known damaged record batches, one per line, which are reported only by name."""
    damage = broker.backend.damage()
    lines = [str(each) for each in damage[:_DAMAGE_MAX]]
    if len(damage) > _DAMAGE_MAX:
        lines.append(f"and {len(damage) - _DAMAGE_MAX} more")
    doc = "Damaged record batches that were found on the disk, one a line."
    return [_written(DAMAGE, [], "\n".join(lines), int(Kind.STRING), doc, read_only=True)]


def copy_entries(broker: Services) -> list[Entry]:
    """Return the problem of the copy in a bucket, which is reported only by name."""
    doc = "How far behind the copy in the bucket is, and why; empty if it is near."
    trouble = broker.backend.copy_trouble()
    return [_written(COPY_TROUBLE, [], trouble, int(Kind.STRING), doc, read_only=True)]


def _hidden(name: str, key: ConfigKey, overrides: Mapping[str, str]) -> bool:
    """Return whether a key is omitted: one without effect, or our own, appears only where it is set."""
    return (key.status is not Status.WORKS or key.own) and name not in overrides


def _broker_values(broker: Services, name: str) -> list[Value]:
    """Return the values of a broker key in order of precedence; empty if it is not set."""
    _, key = broker_keys()[name]
    values: list[Value] = []
    own = broker.configs.get(ResourceType.BROKER, str(broker.identity.node_id))
    everyones = broker.configs.get(ResourceType.BROKER, CLUSTER_WIDE)
    if name in own:
        values.append((name, own[name], ConfigSource.DYNAMIC_BROKER))
    if name in everyones:
        values.append((name, everyones[name], ConfigSource.DYNAMIC_DEFAULT_BROKER))
    if name in broker.static_config.explicit:
        values.append((name, key.format(broker.static_config.value(name)), ConfigSource.STATIC_BROKER))
    if key.default is not None:
        values.append((name, key.format(key.default), ConfigSource.DEFAULT))
    return values


def _values_without_effect(broker: Services, key: ConfigKey) -> list[Value]:
    """Return the values of the broker keys behind a topic key without effect, as Kafka lists them."""
    names, static = _WITHOUT_EFFECT.get(key.name, ()), broker.static_config.without_effect
    # if the first broker key has no default, Kafka lists synonyms only if it is set
    if not names or (len(names) > 1 and names[0] not in static):
        return []
    values = [(name, static[name], ConfigSource.STATIC_BROKER) for name in names if name in static]
    return [*values, (names[-1], key.format(key.default), ConfigSource.DEFAULT)]


def _retention_values(broker: Services) -> list[Value]:
    """Return the values of the three retention keys in order of precedence."""
    return [value for name in _RETENTION for value in _broker_values(broker, name)]


def _as_read(key: ConfigKey, text: str) -> str | None:
    """Return a set value in Kafka's format; unchanged if only an older version accepts it."""
    try:
        return _parsed(key, text)
    except ConfigError:
        return text


def _parsed(key: ConfigKey, text: str) -> str | None:
    """Return a value in Kafka's format, without duplicates in lists; raise ConfigError if it is invalid."""
    value = key.parse(text)
    return key.format(tuple(dict.fromkeys(value)) if isinstance(value, tuple) else value)


def _milliseconds(value: Value) -> str | None:
    """Return a retention in milliseconds, whichever key sets it."""
    name, text, _ = value
    if text is None or text == "-1":
        return text
    unit = {"log.retention.minutes": 60_000, "log.retention.hours": 3_600_000}.get(name, 1)
    return str(int(text) * unit)


def _entry(key: ConfigKey, values: list[Value], value: str | None, *, read_only: bool = False) -> Entry:
    return _written(key.name, values, value, int(key.kind), key.doc, read_only=read_only)


def _written(
    name: str, values: list[Value], value: str | None, kind: int, doc: str, *, read_only: bool = False
) -> Entry:
    if sensitive := kind == Kind.PASSWORD:
        value, values = None, [(synonym, None, source) for synonym, _, source in values]
    return {
        "name": name,
        "value": value,
        "is_sensitive": sensitive,
        "read_only": read_only,
        "config_source": values[0][2] if values else ConfigSource.DEFAULT,
        "synonyms": [{"name": synonym, "value": text, "source": source} for synonym, text, source in values],
        "config_type": kind,
        "documentation": doc,
    }
