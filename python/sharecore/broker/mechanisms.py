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
        self._keys: dict[str, TokenKeys] = {}
        self._refreshing: list[Periodic] = []
        self._offered = self._read(config)

    def of(self, listener: str) -> Mapping[str, Mechanism]:
        """What a listener offers; nothing without SASL."""
        return self._offered.get(listener, {})

    def start(self) -> None:
        """Fetches the keys that sign tokens from time to time."""
        self._refreshing = [_refreshing(keys) for keys in self._keys.values()]
        for each in self._refreshing:
            each.start()

    def stop(self) -> None:
        """Stops fetching."""
        for each in self._refreshing:
            each.stop()

    def check(self, config: BrokerConfig) -> None:
        """Raises ConfigError when the listeners could not go on with `config`."""
        self._read(config)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Applies a changed configuration; one that cannot be used changes nothing."""
        try:
            self._offered = self._read(config)
        except ConfigError as error:
            log.error("the mechanisms of authentication stay as they were: %s", error)

    def _read(self, config: BrokerConfig) -> dict[str, Mapping[str, Mechanism]]:
        return {name: mechanisms_of(config, name, self._credentials, self._keys_of) for name in self._names}

    def _keys_of(self, config: BrokerConfig) -> TokenKeys:
        url = config.sasl_oauthbearer_jwks_endpoint_url or ""
        if url not in self._keys:
            self._keys[url] = TokenKeys(config)
        return self._keys[url]


def _refreshing(keys: TokenKeys) -> Periodic:
    async def fetch() -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(None, keys.fetch)
        except (OSError, ValueError) as error:
            log.error("the keys of %s stay as they were: %s", keys.url, error)

    return Periodic(fetch, lambda: keys.refresh_ms, "fetching the keys that sign tokens")
