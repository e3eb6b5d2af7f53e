"""The broker's configuration: every key that has an effect here, typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from sharecore.config.bucket import BucketSettings
from sharecore.config.cleaner import CleanerSettings
from sharecore.config.consumer import ConsumerSettings, TransactionSettings
from sharecore.config.dead_letters import DeadLetterSettings
from sharecore.config.keys import ConfigKey, Kind, Value, changed, keys_of, setting
from sharecore.config.metrics import MetricsSettings
from sharecore.config.network import NetworkSettings
from sharecore.config.page import PageSettings
from sharecore.config.relations import check_relations
from sharecore.config.security import (
    LISTENER_PREFIX,
    SASL_MECHANISMS,
    AuditSettings,
    AuthorizerSettings,
    HandshakeSettings,
    SaslSettings,
    TlsSettings,
)
from sharecore.config.share import PERSISTER_PREFIX, ShareCoordinatorSettings, ShareSettings
from sharecore.config.tier import INTER_NODE_PREFIX, UPSTREAM_PREFIX, TierSettings
from sharecore.config.topics import TopicSettings
from sharecore.config.unserved import refusals
from sharecore.config.unserved_values import ignored_keys
from sharecore.errors import ConfigError

DURABILITIES = ("fsync", "os", "bucket")


@dataclass(frozen=True, kw_only=True)
class BrokerConfig(
    NetworkSettings,
    TopicSettings,
    CleanerSettings,
    ShareSettings,
    ShareCoordinatorSettings,
    DeadLetterSettings,
    ConsumerSettings,
    TransactionSettings,
    TlsSettings,
    HandshakeSettings,
    SaslSettings,
    AuthorizerSettings,
    MetricsSettings,
    PageSettings,
    AuditSettings,
    BucketSettings,
    TierSettings,
):
    """All settings of one broker; a field's name with dots instead of underscores is Kafka's name of the
    key.
    """

    node_id: int = setting(Kind.INT, 1, "Id of this broker.", low=0)
    broker_rack: str | None = setting(Kind.STRING, None, "Rack of this broker, as advertised to clients.")
    log_dirs: tuple[str, ...] = setting(Kind.LIST, ("data",), "The data directory; exactly one.")
    sharecore_durability: str = setting(
        Kind.STRING,
        "fsync",
        "fsync: confirmed writes survive a power failure; os: a crash of the process; bucket: the loss of "
        "the machine (see `sharecore.bucket.url`).",
        choices=DURABILITIES,
    )
    sharecore_features: tuple[str, ...] = setting(
        Kind.LIST,
        (),
        "Feature levels of a new data directory, such as share.version=0.",
    )
    explicit: frozenset[str] = frozenset()
    """Kafka's names of the keys that were set, not left at their defaults."""
    persister_settings: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    """What was set under `group.share.persister.` for a persister of the user's, without that prefix."""
    upstream_settings: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    """What was set under `sharecore.upstream.` for the cluster behind a tier, without that prefix."""
    inter_node_settings: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    """What was set under `sharecore.tier.inter.node.` for connections between nodes, without that prefix."""
    listener_properties: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False, hash=False)
    """What was set for one listener alone: its name in lower case to the keys without their prefix."""

    without_effect: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """What was set of Kafka's keys that have no effect here."""

    @property
    def data_dir(self) -> str:
        """The directory of everything that is kept."""
        return self.log_dirs[0]

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> BrokerConfig:
        """Read keys by Kafka's names; unknown names are skipped (see `unknown_names`).

        Raises:
            ConfigError: a value is not allowed, by itself or beside another; or something is asked for that
                this broker does not do, a line for each.
        """
        unserved = {
            name: text for name, text in properties.items() if listener_key(name) not in broker_keys()
        }
        refused = refusals({listener_key(name): text for name, text in unserved.items()})
        refused += _wrong_values(unserved)
        if refused:
            raise ConfigError("\n".join(refused))
        values: dict[str, Value] = {}
        persister_settings, upstream_settings, inter_node_settings = {}, {}, {}
        explicit = set()
        for name, text in properties.items():
            known = broker_keys().get(ALIASES.get(name, name))
            if known is None and name.startswith(PERSISTER_PREFIX):
                persister_settings[name.removeprefix(PERSISTER_PREFIX)] = text.strip()
            if name.startswith(UPSTREAM_PREFIX):
                upstream_settings[name.removeprefix(UPSTREAM_PREFIX)] = text.strip()
            if known is None and name.startswith(INTER_NODE_PREFIX):
                inter_node_settings[name.removeprefix(INTER_NODE_PREFIX)] = text.strip()
            if known is None or (name in ALIASES and ALIASES[name] in properties):
                continue
            attribute, key = known
            values[attribute] = key.parse(text)
            explicit.add(key.name)
        config = cls(
            explicit=frozenset(explicit),
            persister_settings=persister_settings,
            upstream_settings=upstream_settings,
            inter_node_settings=inter_node_settings,
            listener_properties=_listener_properties(properties),
            without_effect={name: text.strip() for name, text in unserved.items() if name in ignored_keys()},
        )
        config = changed(config, values)
        config.check()
        return config

    @property
    def serves_share_groups(self) -> bool:
        """Whether `group.coordinator.rebalance.protocols`, where it was set, names share groups."""
        name, protocols = "group.coordinator.rebalance.protocols", self.group_coordinator_rebalance_protocols
        return name not in self.explicit or "share" in protocols

    def with_properties(self, properties: Mapping[str, str]) -> BrokerConfig:
        """Return this configuration with overrides; raise ConfigError as `from_properties` does."""
        keys = broker_keys()
        values = {
            keys[name][0]: keys[name][1].parse(text) for name, text in properties.items() if name in keys
        }
        own = {name: dict(some) for name, some in self.listener_properties.items()}
        for listener, some in _listener_properties(properties).items():
            own.setdefault(listener, {}).update(some)
        config = replace(changed(self, values), listener_properties=own)
        config.check()
        return config

    def for_listener(self, name: str, mechanism: str = "") -> BrokerConfig:
        """Return this configuration with one listener's overrides.

        Args:
            name: the listener.
            mechanism: of SASL; its keys (`listener.name.x.plain.sasl.jaas.config`) stand over the listener's.
        """
        own = dict(self.listener_properties.get(name.lower(), {}))
        prefix = f"{mechanism.lower()}."
        own |= {key.removeprefix(prefix): own[key] for key in own if key.lower().startswith(prefix)}
        keys = broker_keys()
        return changed(self, {keys[each][0]: keys[each][1].parse(own[each]) for each in own if each in keys})

    def value(self, name: str) -> Value:
        """Return the value of a key by Kafka's name; raise KeyError for a name that is not known here."""
        found: Value = getattr(self, broker_keys()[name][0])
        return found

    def check(self) -> None:
        """Raise ConfigError if two values contradict each other."""
        if len(self.log_dirs) != 1:
            raise ConfigError(
                f"log.dirs={','.join(self.log_dirs)}: this broker keeps one directory; allowed: one path"
            )
        for listener in self.listener_properties:
            self.for_listener(listener)
        if self.retention_ms == 0:
            raise ConfigError(
                "log.retention.ms=0: nothing would be kept; allowed: at least 1, negative: for ever"
            )
        if self.sharecore_bucket_url is not None:
            self._check_bucket(self.sharecore_bucket_url)
        elif self.sharecore_durability == "bucket":
            raise ConfigError(
                "sharecore.durability=bucket: set sharecore.bucket.url, as s3://BUCKET/PREFIX, "
                "gs://BUCKET/PREFIX, az://ACCOUNT/CONTAINER/PREFIX or file:///DIRECTORY"
            )
        self._check_cache()
        check_relations(self.value, self.explicit)

    def _check_cache(self) -> None:
        cache_bytes = self.sharecore_bucket_cache_bytes
        if cache_bytes == 0:
            return
        named = f"sharecore.bucket.cache.bytes={cache_bytes}"
        if self.sharecore_durability != "bucket":
            raise ConfigError(
                f"{named}: records may leave the disk only when the bucket has all that was confirmed; set "
                "sharecore.durability=bucket, with sharecore.bucket.url"
            )
        if cache_bytes < CACHE_BYTES_MIN:
            raise ConfigError(f"{named}; allowed: 0 (everything stays local), or at least {CACHE_BYTES_MIN}")

    def _check_bucket(self, url: str) -> None:
        if self.upstream_settings:
            raise ConfigError(
                f"sharecore.bucket.url={url}: a node in front of a cluster keeps nothing to copy; "
                "leave it out, or leave out sharecore.upstream.*"
            )
        directory = url.removeprefix("file://")
        if directory != url and Path(directory).resolve().is_relative_to(Path(self.data_dir).resolve()):
            raise ConfigError(
                f"sharecore.bucket.url={url}: the copy would be lost with the data directory around it; "
                "allowed: a directory of another disk"
            )


def _wrong_values(unserved: Mapping[str, str]) -> list[str]:
    """Return a line for each key without effect whose value Kafka would refuse."""
    lines = []
    for name, text in sorted(unserved.items()):
        key = ignored_keys().get(listener_key(name))
        try:
            if key is not None:
                key.parse(text)
        except ConfigError as error:
            lines.append(str(error))
    return lines


def listener_key(name: str) -> str:
    """Return the key that a name sets: `listener.name.x.ssl.key.password` sets ssl.key.password for one
    listener, `listener.name.x.plain.sasl.jaas.config` sets sasl.jaas.config for one of its mechanisms.
    """
    listener, key = split_listener(name)
    mechanism, _, rest = key.partition(".")
    return rest if listener is not None and mechanism.upper() in SASL_MECHANISMS else key


def split_listener(name: str) -> tuple[str | None, str]:
    """Return the listener of a listener's key, in lower case, and the key without its prefix; None for all
    listeners.
    """
    if not name.lower().startswith(LISTENER_PREFIX):
        return None, name
    listener, _, key = name[len(LISTENER_PREFIX) :].partition(".")
    return listener.lower(), key


def _listener_properties(properties: Mapping[str, str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for name, text in properties.items():
        listener, key = split_listener(name)
        if listener is not None:
            found.setdefault(listener, {})[key] = text
    return found


CACHE_BYTES_MIN = 16 << 20
"""A quarter of it is for pieces of 1 MiB that readers fetch."""

ALIASES = {"log.dir": "log.dirs", "broker.id": "node.id"}
"""Names that stand for another where that one is not set."""


@cache
def broker_keys() -> dict[str, tuple[str, ConfigKey]]:
    """Every key of the broker: Kafka's name to the attribute of `BrokerConfig` and the key."""
    return keys_of(BrokerConfig)
