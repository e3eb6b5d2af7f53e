"""Listeners that encrypt, and the principals of their clients."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Mapping

from sharecore.config import BrokerConfig, Listener
from sharecore.network import Connection, Disconnect
from sharecore.network.handshakes import ContextSource
from sharecore.security.distinguished_name import subject_of
from sharecore.security.mapping_rules import MappingRules
from sharecore.security.principal import ANONYMOUS, USER, Principal
from sharecore.security.tls import TlsListener, server_context

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
        for name, listener in listeners.items():
            own = config.for_listener(name)
            if listener.tls:
                self._tls[name] = TlsListener(name, own)
            if listener.protocol == "SSL":
                self._rules[name] = MappingRules(own.ssl_principal_mapping_rules)

    def context_source(self, name: str) -> ContextSource | None:
        """What a listener's handshakes take their context from; None for one that does not encrypt."""
        tls = self._tls.get(name)
        return tls.context if tls is not None else None

    def start(self) -> None:
        """Starts to look at the files from time to time, and when SIGHUP comes."""
        if not self._tls:
            return
        try:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.reload)
        except (RuntimeError, ValueError, NotImplementedError, AttributeError):
            log.debug("no SIGHUP here")  # not the main thread, or not a system that has it
        self._later()

    def stop(self) -> None:
        """Stops looking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def reload(self) -> None:
        """Reads keys and certificates again; what cannot be used changes nothing."""
        for tls in self._tls.values():
            tls.reload()

    def check(self, config: BrokerConfig) -> None:
        """Raises ConfigError when the listeners could not go on with `config`."""
        for name in self._tls:
            server_context(config.for_listener(name))

    def reconfigure(self, config: BrokerConfig) -> None:
        """Applies a changed configuration; a listener that cannot use it goes on as it was."""
        self._config = config
        for name, tls in self._tls.items():
            tls.reload(config.for_listener(name))

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
        for tls in self._tls.values():
            tls.reload(changed_only=True)
        self._later()
