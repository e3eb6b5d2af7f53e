"""TLS listeners, and the principals of their clients."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from sharecore.config import BrokerConfig, Listener
from sharecore.errors import ConfigUnavailable
from sharecore.network import Connection, Disconnect
from sharecore.network.handshakes import ContextSource
from sharecore.security.distinguished_name import subject_of
from sharecore.security.files import READ_SECONDS_MAX
from sharecore.security.mapping_rules import MappingRules
from sharecore.security.principal import ANONYMOUS, USER, Principal
from sharecore.security.tls import TlsListener, load
from sharecore.waiting import Blocked, BlockingWork

log = logging.getLogger("sharecore.security")


class Transport:
    """Keys, certificates and principals of each listener.

    Args:
        config: the configuration.
        listeners: all listeners by name.

    Raises:
        ConfigError: invalid keys, certificates or rules.
    """

    def __init__(self, config: BrokerConfig, listeners: Mapping[str, Listener]) -> None:
        self._config = config
        self._tls: dict[str, TlsListener] = {}
        self._rules: dict[str, MappingRules] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._files = BlockingWork("tls")
        self._reloading: asyncio.Task[None] | None = None
        self._wanted: list[Callable[[], Awaitable[None]]] = []
        """Reloads that have not started, in order."""
        for name, listener in listeners.items():
            own = config.for_listener(name)
            if listener.tls:
                self._tls[name] = TlsListener(name, own)
            if listener.protocol == "SSL":
                self._rules[name] = MappingRules(own.ssl_principal_mapping_rules)

    def context_source(self, name: str) -> ContextSource | None:
        """Return the source of a listener's TLS contexts; None without TLS."""
        tls = self._tls.get(name)
        return tls.context if tls is not None else None

    def start(self) -> None:
        """Start to check the files periodically and on SIGHUP."""
        if not self._tls:
            return
        try:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.reload)
        except (RuntimeError, ValueError, NotImplementedError, AttributeError):
            log.debug("no SIGHUP here")  # not the main thread, or a system without signal handlers
        self._later()

    def stop(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._reloading is not None:
            self._reloading.cancel()

    def reload(self) -> None:
        """Reload keys and certificates; unusable ones change nothing."""
        for tls in self._tls.values():
            self._begin(partial(tls.reload, self._files))

    async def check(self, config: BrokerConfig) -> None:
        """Raise ConfigError if the listeners cannot use `config`."""
        try:
            for name in self._tls:
                await self._files.run(partial(load, config.for_listener(name)), READ_SECONDS_MAX)
        except Blocked as blocked:
            raise ConfigUnavailable(f"cannot read keys and certificates: {blocked}") from None

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply a changed configuration; a listener that cannot use it keeps the previous one.

        Keys and certificates follow once they are read: see `settled`.
        """
        self._config = config
        for name, tls in self._tls.items():
            self._begin(partial(tls.reload, self._files, config.for_listener(name)))

    async def settled(self) -> None:
        """Wait until keys and certificates of the last configuration are loaded."""
        if self._reloading is not None:
            await asyncio.wait([self._reloading])

    def principal_of(self, connection: Connection) -> Principal:
        """Return the principal of a connection, from its certificate if it has one.

        Raises:
            Disconnect: no rule maps the name in its certificate to a principal.
        """
        rules = self._rules.get(connection.listener)
        certificate = connection.certificate() if rules is not None else None
        if rules is None or certificate is None:
            return ANONYMOUS
        subject = subject_of(certificate)
        name = rules.name(subject)
        if name is None:
            raise Disconnect(f"no rule of ssl.principal.mapping.rules fits {subject}")
        return Principal(USER, name)

    def _later(self) -> None:
        interval_ms = self._config.sharecore_ssl_reload_interval_ms
        if interval_ms:
            self._timer = asyncio.get_running_loop().call_later(interval_ms / 1000, self._look)

    def _look(self) -> None:
        if self._reloading is None:
            for tls in self._tls.values():
                self._begin(partial(tls.reload, self._files, changed_only=True))
        self._later()

    def _begin(self, reload: Callable[[], Awaitable[None]]) -> None:
        """Queue a reload; files are read beside the event loop, one reload at a time."""
        self._wanted.append(reload)
        if self._reloading is None:
            self._reloading = asyncio.get_running_loop().create_task(self._reload_wanted())

    async def _reload_wanted(self) -> None:
        try:
            while self._wanted:
                await self._wanted.pop(0)()
        finally:
            self._reloading = None
