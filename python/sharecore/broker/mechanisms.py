"""The SASL mechanisms of each listener, as the configuration that counts has them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping

from sharecore.config import BrokerConfig, Listener
from sharecore.errors import ConfigError
from sharecore.security.mechanisms import mechanisms_of
from sharecore.security.oauth import TokenKeys
from sharecore.security.sasl import Mechanism
from sharecore.security.scram import Credentials
from sharecore.waiting import Periodic

log = logging.getLogger("sharecore.security")


class Mechanisms:
    """The mechanisms that each listener offers.

    Args:
        config: the configuration.
        listeners: all listeners.
        credentials: the users of SCRAM.

    Raises:
        ConfigError: a mechanism that is not offered here, or that lacks a setting.
    """

    def __init__(self, config: BrokerConfig, listeners: Iterable[Listener], credentials: Credentials) -> None:
        self._names = [listener.name for listener in listeners if listener.sasl]
        self._credentials = credentials
        self._checked: dict[str, TokenKeys] = {}
        """What the last check fetched, so that a change that passed does not fetch it again."""
        self._refreshing: dict[TokenKeys, Periodic] | None = None
        """Of the keys that are in use; None while nothing is fetched from time to time."""
        self._keys: dict[str, TokenKeys] = {}
        self._offered, self._keys = self._read(config)

    def of(self, listener: str) -> Mapping[str, Mechanism]:
        """What a listener offers; nothing without SASL."""
        return self._offered.get(listener, {})

    def start(self) -> None:
        """Fetches the keys that sign tokens from time to time."""
        self._refreshing = {}
        self._refresh()

    def stop(self) -> None:
        """Stops fetching."""
        for each in (self._refreshing or {}).values():
            each.stop()
        self._refreshing = None

    def check(self, config: BrokerConfig) -> None:
        """Raises ConfigError when the listeners could not go on with `config`."""
        self._checked = self._read(config)[1]

    def reconfigure(self, config: BrokerConfig) -> None:
        """Applies a changed configuration; one that cannot be used changes nothing."""
        try:
            self._offered, self._keys = self._read(config)
        except ConfigError as error:
            log.error("the mechanisms of authentication stay as they were: %s", error)
        self._checked = {}
        self._refresh()

    def _read(self, config: BrokerConfig) -> tuple[dict[str, Mapping[str, Mechanism]], dict[str, TokenKeys]]:
        """The mechanisms of each listener, and the keys that they go by, by their addresses."""
        known, used = self._checked | self._keys, dict[str, TokenKeys]()

        def keys_of(config: BrokerConfig) -> TokenKeys:
            url = config.sasl_oauthbearer_jwks_endpoint_url or ""
            if url not in used:
                used[url] = known.get(url) or TokenKeys(config)
            return used[url]

        offered: dict[str, Mapping[str, Mechanism]] = {
            name: mechanisms_of(config, name, self._credentials, keys_of) for name in self._names
        }
        return offered, used

    def _refresh(self) -> None:
        """Has the keys fetched that are in use, and no others."""
        if self._refreshing is None:
            return
        used = set(self._keys.values())
        for keys in self._refreshing.keys() - used:
            self._refreshing.pop(keys).stop()
        for keys in used - self._refreshing.keys():
            self._refreshing[keys] = _refreshing(keys)
            self._refreshing[keys].start()


def _refreshing(keys: TokenKeys) -> Periodic:
    async def fetch() -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(None, keys.fetch)
        except (OSError, ValueError) as error:
            log.error("the keys of %s stay as they were: %s", keys.url, error)

    return Periodic(fetch, lambda: keys.refresh_ms, "fetching the keys that sign tokens")
