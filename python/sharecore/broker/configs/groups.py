"""Group configurations: a group's own settings over the broker's defaults."""

from __future__ import annotations

from collections.abc import Callable

from sharecore.config import BrokerConfig, GroupConfig
from sharecore.storage import Configs, ResourceType
from sharecore.waiting import Done

_CACHE_MAX = 4096
_NAME_MAX = 1_000
"""Maximum length of a cached group id: clients choose them."""


class GroupConfigs:
    """Resolve and cache group configurations.

    Args:
        configs: the groups' own settings.
        broker_config: returns the broker's current configuration.
    """

    def __init__(self, configs: Configs, broker_config: Callable[[], BrokerConfig]) -> None:
        self._configs = configs
        self._broker_config = broker_config
        self._resolved: dict[str, GroupConfig] = {}
        self._listeners: list[Callable[[str], None]] = []
        configs.on_change(self._changed)

    def get(self, group_id: str) -> GroupConfig:
        """Return a group's configuration; without own settings, the broker's defaults."""
        config = self._resolved.get(group_id)
        if config is None:
            if len(group_id) > _NAME_MAX:
                return self._resolve(group_id)
            if len(self._resolved) >= _CACHE_MAX:
                self._resolved.clear()
            config = self._resolved[group_id] = self._resolve(group_id)
        return config

    def _resolve(self, group_id: str) -> GroupConfig:
        own = self._configs.get(ResourceType.GROUP, group_id)
        return GroupConfig.resolve(own, self._broker_config())

    def when_current(self, done: Done) -> None:
        """Call back once `get` returns the current settings of every broker, or with an error."""
        self._configs.when_current(done)

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Call `callback` with the id of each group whose settings change."""
        self._listeners.append(callback)

    def broker_changed(self) -> None:
        """Apply changed defaults and limits of the broker."""
        self._resolved.clear()

    def _changed(self, kind: int, name: str) -> None:
        if kind != ResourceType.GROUP:
            return
        self._resolved.pop(name, None)
        for callback in self._listeners:
            callback(name)
