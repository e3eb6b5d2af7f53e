"""Listeners that encrypt, and the principals of their clients."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from sharecore.config import BrokerConfig, Listener
from sharecore.errors import ConfigError
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
        listeners: all listeners by their names.

    Raises:
        ConfigError: keys, certificates or rules that cannot be used.
    """

    def __init__(self, config: BrokerConfig, listeners: Mapping[str, Listener]) -> None:
        self._config = config
        self._tls: dict[str, TlsListener] = {}
        self._rules: dict[str, MappingRules] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._files = BlockingWork("tls")
        self._reloading: asyncio.Task[None] | None = None
        self._wanted: list[Callable[[], Awaitable[None]]] = []
        """Reloads that have yet to begin, in their order."""
        for name, listener in listeners.items():
            own = config.for_listener(name)
            if listener.tls:
                self._tls[name] = TlsListener(name, own)
            if listener.protocol == "SSL":
                self._rules[name] = MappingRules(own.ssl_principal_mapping_rules)

    def context_source(self, name: str) -> ContextSource | None:
        """Return what a listener's handshakes take their context from; None for one that does not encrypt."""
        tls = self._tls.get(name)
        return tls.context if tls is not None else None

    def start(self) -> None:
        """Start to look at the files from time to time, and when SIGHUP comes."""
        if not self._tls:
            return
        try:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.reload)
        except (RuntimeError, ValueError, NotImplementedError, AttributeError):
            log.debug("no SIGHUP here")  # not the main thread, or not a system that has it
        self._later()

    def stop(self) -> None:
        """Stop looking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._reloading is not None:
            self._reloading.cancel()

    def reload(self) -> None:
        """Read keys and certificates again; what cannot be used changes nothing."""
        for tls in self._tls.values():
            self._begin(partial(tls.reload, self._files))

    async def check(self, config: BrokerConfig) -> None:
        """Raise ConfigError when the listeners could not go on with `config`."""
        try:
            for name in self._tls:
                await self._files.run(partial(load, config.for_listener(name)), READ_SECONDS_MAX)
        except Blocked as blocked:
            raise ConfigError(f"keys and certificates cannot be read: {blocked}") from None

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply a changed configuration; a listener that cannot use it goes on as it was.

        Keys and certificates follow once they are read: see `settled`.
        """
        self._config = config
        for name, tls in self._tls.items():
            self._begin(partial(tls.reload, self._files, config.for_listener(name)))

    async def settled(self) -> None:
        """Wait until keys and certificates are those of the configuration that was applied last."""
        if self._reloading is not None:
            await asyncio.wait([self._reloading])

    def principal_of(self, connection: Connection) -> Principal:
        """Who has connected, as far as the connection itself tells.

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
        """Read files beside the event loop, one reload after the other."""
        self._wanted.append(reload)
        if self._reloading is None:
            self._reloading = asyncio.get_running_loop().create_task(self._reload_wanted())

    async def _reload_wanted(self) -> None:
        try:
            while self._wanted:
                await self._wanted.pop(0)()
        finally:
            self._reloading = None
