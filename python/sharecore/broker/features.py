"""Feature levels: supported and finalized (KIP-584, KIP-1022)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple, Protocol

from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.waiting import settle

GROUP, SHARE, TRANSACTION = "group.version", "share.version", "transaction.version"

SUPPORTED: Mapping[str, tuple[int, int]] = MappingProxyType(
    {GROUP: (0, 1), SHARE: (0, 2), TRANSACTION: (0, 2)}
)
"""Lowest and highest level of each feature, as in Apache Kafka 4.4.0."""

NO_SHARE_GROUPS = "The version of API is not supported."

WITHOUT_SHARE_GROUPS: Mapping[str, int] = MappingProxyType({SHARE: 0})
"""The limits of a broker that refuses share groups."""

_BEGIN = {GROUP: 1, SHARE: 2, TRANSACTION: 2}
_DEAD_LETTERS_SINCE = 2
_KEY = b"features"


class UpgradeType(IntEnum):
    """Permitted directions of an update."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


_UPGRADE_TYPES = frozenset(int(each) for each in UpgradeType)


class FeatureUpdate(NamedTuple):
    """New level of a feature."""

    name: str
    level: int
    upgrade_type: int


class LevelStore(Protocol):
    """The part of the broker's catalog that is used."""

    def get(self, key: bytes) -> bytes | None: ...

    async def put(self, key: bytes, value: bytes) -> None: ...

    def watch(self, prefix: bytes, notify: Callable[[bytes], object]) -> None: ...


class Features:
    """Finalized feature levels, stored in the catalog.

    Args:
        begin: initial levels of a new data directory, each such as `share.version=0`.
        limits: upper limits, whatever is set.

    Raises:
        ConfigError: a level of `begin` is invalid.
    """

    def __init__(
        self,
        catalog: LevelStore,
        node_id: int,
        begin: Iterable[str] = (),
        limits: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._catalog = catalog
        self._limits = limits
        self._node_id = node_id
        self._updating = asyncio.Lock()
        self._listeners: list[Callable[[], object]] = []
        self.has_share_groups = False
        if self.are_kept(catalog):
            self._read()
        else:
            self._set(1, {**_BEGIN, **_parse(begin)})
        catalog.watch(_KEY, self._changed_elsewhere)

    def _changed_elsewhere(self, key: bytes) -> None:
        """Take the levels that the leader of a home has stored."""
        if key == _KEY and self.are_kept(self._catalog):
            self._read()
            settle(self._listeners)

    def _read(self) -> None:
        kept = self._catalog.get(_KEY)
        assert kept is not None, "the caller has checked"
        read = json.loads(kept)
        self._set(read["epoch"], {**dict.fromkeys(SUPPORTED, 0), **read["levels"]})

    def _set(self, epoch: int, levels: dict[str, int]) -> None:
        self.epoch, self._levels = epoch, levels
        self.has_share_groups = min(levels[SHARE], self._limits.get(SHARE, levels[SHARE])) > 0

    @staticmethod
    def are_kept(catalog: LevelStore) -> bool:
        """Return whether a broker has stored the levels."""
        return catalog.get(_KEY) is not None

    async def keep(self) -> None:
        """Store missing levels; raise KafkaError on failure."""
        if self._catalog.get(_KEY) is None:
            await self._write(self.epoch, self._levels)

    @property
    def levels(self) -> Mapping[str, int]:
        """Levels above 0: a feature at level 0 is off."""
        limited = {name: min(level, self._limits.get(name, level)) for name, level in self._levels.items()}
        return {name: level for name, level in limited.items() if level}

    @property
    def has_dead_letters(self) -> bool:
        """Whether share groups may have dead letters (KIP-1191)."""
        return self._levels[SHARE] >= _DEAD_LETTERS_SINCE

    @property
    def has_consumer_groups(self) -> bool:
        """Whether consumer groups (KIP-848) are served."""
        return self._levels[GROUP] > 0

    def check_share_groups(self, message: str = "") -> None:
        """Raise KafkaError(UNSUPPORTED_VERSION) unless share groups are served."""
        if not self.has_share_groups:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)

    async def update(self, updates: Iterable[FeatureUpdate], *, validate_only: bool) -> None:
        """Update levels, all or none.

        Raises:
            KafkaError: INVALID_UPDATE_VERSION, KAFKA_STORAGE_ERROR.
        """
        async with self._updating:
            levels = dict(self._levels)
            for each in updates:
                reason = self._refusal(each)
                if reason:
                    raise KafkaError(
                        ErrorCode.INVALID_UPDATE_VERSION,
                        "The update failed for all features since the following feature had an error: "
                        f"Invalid update version {each.level} for feature {each.name}. {reason}",
                    )
                levels[each.name] = each.level
            if validate_only or levels == self._levels:
                return
            await self._write(self.epoch + 1, levels)
            self._set(self.epoch + 1, levels)
            settle(self._listeners)

    def on_change(self, callback: Callable[[], object]) -> None:
        """Call back after a change of levels."""
        self._listeners.append(callback)

    def _refusal(self, update: FeatureUpdate) -> str:
        """Return why an update is refused; empty if it is accepted."""
        if update.upgrade_type not in _UPGRADE_TYPES:
            return "The controller does not support the given upgrade type."
        if update.level < 0:
            return "A feature version cannot be less than 0."
        if update.name not in SUPPORTED:
            return f"Local controller {self._node_id} does not support this feature."
        low, high = SUPPORTED[update.name]
        if not low <= update.level <= high:
            return f"Local controller {self._node_id} only supports versions {low}-{high}"
        now, upgrades = self._levels[update.name], update.upgrade_type == UpgradeType.UPGRADE
        if update.level < now and upgrades:
            return (
                "Can't downgrade the version of this feature without setting the upgrade type to either "
                "safe or unsafe downgrade."
            )
        if update.level > now and not upgrades:
            return "Can't downgrade to a newer version."
        return ""

    async def _write(self, epoch: int, levels: Mapping[str, int]) -> None:
        await self._catalog.put(_KEY, json.dumps({"epoch": epoch, "levels": levels}).encode())


def _parse(settings: Iterable[str]) -> dict[str, int]:
    levels = {}
    for setting in settings:
        name, _, level = setting.partition("=")
        low, high = SUPPORTED.get(name, (0, -1))
        if not level.isdecimal() or not low <= int(level) <= high:
            allowed = ", ".join(f"{each} from {low} to {high}" for each, (low, high) in SUPPORTED.items())
            raise ConfigError(f"sharecore.features={setting}: no level of a feature; allowed: {allowed}")
        levels[name] = int(level)
    return levels
