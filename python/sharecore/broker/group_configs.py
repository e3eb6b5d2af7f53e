"""What each group's configuration is: its own settings over the broker's defaults."""

from __future__ import annotations

from collections.abc import Callable

from sharecore.config import BrokerConfig, GroupConfig
from sharecore.storage import Configs, ResourceType
from sharecore.waiting import Done

_CACHE_MAX = 4096
_NAME_MAX = 1_000
"""A longer id is not remembered: clients choose them."""


class GroupConfigs:
    """Resolves and remembers configurations of groups.

    Args:
        configs: the groups' own settings.
        broker_config: the broker's configuration as it is now.
    """

    def __init__(self, configs: Configs, broker_config: Callable[[], BrokerConfig]) -> None:
        self._configs = configs
        self._broker_config = broker_config
        self._resolved: dict[str, GroupConfig] = {}
        self._listeners: list[Callable[[str], None]] = []
        configs.on_change(self._changed)

    def get(self, group_id: str) -> GroupConfig:
        """Return the configuration of a group; a group without settings of its own has the broker's
        defaults.
        """
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
        """Call back once `get` tells what any broker had set by now, or with why that cannot be known."""
        self._configs.when_current(done)

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Call `callback` with the id of a group whose settings were changed."""
        self._listeners.append(callback)

    def broker_changed(self) -> None:
        """The broker's defaults and bounds have changed."""
        self._resolved.clear()

    def _changed(self, kind: int, name: str) -> None:
        if kind != ResourceType.GROUP:
            return
        self._resolved.pop(name, None)
        for callback in self._listeners:
            callback(name)
