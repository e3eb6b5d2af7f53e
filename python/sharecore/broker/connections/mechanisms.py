"""SASL mechanisms of each listener, from the current configuration."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from sharecore.config import BrokerConfig, Listener
from sharecore.errors import ConfigError, ConfigUnavailable
from sharecore.security.mechanisms import mechanisms_of
from sharecore.security.oauth import TokenKeys
from sharecore.security.sasl import Mechanism
from sharecore.security.scram import Credentials
from sharecore.waiting import Blocked, BlockingWork, Periodic

log = logging.getLogger("sharecore.security")

_TOKENS = "OAUTHBEARER"
_FETCH_SECONDS_MAX = 15.0
_Read = tuple[dict[str, Mapping[str, Mechanism]], dict[str, TokenKeys]]


class Mechanisms:
    """Mechanisms of each listener.

    Args:
        config: the configuration.
        listeners: all listeners.
        credentials: the SCRAM users.

    Raises:
        ConfigError: an unsupported mechanism, or a missing setting.
    """

    def __init__(self, config: BrokerConfig, listeners: Iterable[Listener], credentials: Credentials) -> None:
        self._names = [listener.name for listener in listeners if listener.sasl]
        self._credentials = credentials
        self._checked: dict[str, TokenKeys] = {}
        """Keys fetched by the last check, so that the following change need not fetch them again."""
        self._refreshing: dict[TokenKeys, Periodic] | None = None
        """Refresh tasks of the keys in use; None while refreshing is off."""
        self._keys: dict[str, TokenKeys] = {}
        self._fetching = BlockingWork("token-keys")
        self._wanted: BrokerConfig | None = None
        """Configuration that is not applied yet."""
        self._applying: asyncio.Task[None] | None = None
        self._offered, self._keys = self._read(config)

    def of(self, listener: str) -> Mapping[str, Mechanism]:
        """Return a listener's mechanisms; empty without SASL."""
        return self._offered.get(listener, {})

    def start(self) -> None:
        """Start to refresh token signing keys."""
        self._refreshing = {}
        self._refresh()

    def stop(self) -> None:
        """Stop refreshing."""
        for each in (self._refreshing or {}).values():
            each.stop()
        if self._applying is not None:
            self._applying.cancel()
        self._refreshing = None

    async def check(self, config: BrokerConfig) -> None:
        """Raise ConfigError if the listeners cannot use `config`."""
        self._checked = (await self._read_apart(config))[1]

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply a changed configuration; an unusable one changes nothing.

        The change takes effect once token signing keys are fetched, if there are any: see `settled`.
        """
        self._wanted = config
        if self._applying is None:
            self._applying = asyncio.get_running_loop().create_task(self._apply())

    async def settled(self) -> None:
        """Wait until the last configuration is applied."""
        if self._applying is not None:
            await asyncio.wait([self._applying])

    async def _apply(self) -> None:
        try:
            while self._wanted is not None:
                config, self._wanted = self._wanted, None
                try:
                    self._offered, self._keys = await self._read_apart(config)
                except ConfigError as error:
                    log.error("cannot change the SASL mechanisms, keeping the previous ones: %s", error)
                self._checked = {}
                self._refresh()
        finally:
            self._applying = None

    async def _read_apart(self, config: BrokerConfig) -> _Read:
        """Run `_read`, fetching unknown keys beside the event loop."""
        known = self._checked | self._keys
        if all(own.sasl_oauthbearer_jwks_endpoint_url in known for own in self._with_tokens(config)):
            return self._read(config)
        try:
            return await self._fetching.run(partial(self._read, config), _FETCH_SECONDS_MAX)
        except Blocked as blocked:
            raise ConfigUnavailable(f"cannot fetch the token signing keys: {blocked}") from None

    def _with_tokens(self, config: BrokerConfig) -> Iterator[BrokerConfig]:
        """Yield the settings of each listener with OAUTHBEARER."""
        for name in self._names:
            if _TOKENS in config.for_listener(name).sasl_enabled_mechanisms:
                yield config.for_listener(name, _TOKENS)

    def _read(self, config: BrokerConfig) -> _Read:
        """Return the mechanisms of each listener, and the signing keys in use by URL."""
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
        """Refresh the keys in use, and no others."""
        if self._refreshing is None:
            return
        used = set(self._keys.values())
        for keys in self._refreshing.keys() - used:
            self._refreshing.pop(keys).stop()
        for keys in used - self._refreshing.keys():
            self._refreshing[keys] = _refreshing(keys)
            self._refreshing[keys].start()


def _refreshing(keys: TokenKeys) -> Periodic:
    fetching = BlockingWork("token-keys", at_once_max=1)

    async def fetch() -> None:
        try:
            await fetching.run(keys.fetch, _FETCH_SECONDS_MAX)
        except (OSError, ValueError, Blocked) as error:
            log.error("cannot refresh the keys of %s, keeping the previous ones: %s", keys.url, error)

    return Periodic(fetch, lambda: keys.refresh_ms, "fetching the token signing keys")
