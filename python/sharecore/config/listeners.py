"""Listeners: the addresses to bind, and the addresses that clients get."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, replace

from sharecore.config.broker import BrokerConfig
from sharecore.config.security import SECURITY_PROTOCOLS
from sharecore.errors import ConfigError

_ADDRESS = re.compile(r"(?P<name>[A-Za-z0-9_]+)://(?P<host>\[[^\]]+\]|[^:\[\]]*):(?P<port>-?\d+)")


@dataclass(frozen=True, slots=True)
class Listener:
    """One address to listen on, and the address that clients get.

    Args:
        name: the listener's name, in capitals.
        host: what to bind, empty for every address of the machine.
        port: what to bind; 0 lets the system choose.
        advertised_host: the host that clients get.
        advertised_port: the port that clients get; 0 means the port that is bound.
        protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
    """

    name: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int
    protocol: str = "PLAINTEXT"

    @property
    def tls(self) -> bool:
        """Whether it encrypts."""
        return self.protocol.endswith("SSL")

    @property
    def sasl(self) -> bool:
        """Whether clients say who they are before anything else."""
        return self.protocol.startswith("SASL")


def listeners_of(config: BrokerConfig) -> list[Listener]:
    """Return the listeners of a configuration, without those of Kafka's controllers.

    Raises:
        ConfigError: an address cannot be read, or its security protocol is not offered.
    """
    controllers = {name.upper() for name in config.controller_listener_names}
    found: dict[str, Listener] = {}
    for text in config.listeners:
        name, host, port = _parse("listeners", text)
        if name in controllers:
            continue
        if name in found:
            raise ConfigError(f"listeners={text}: {name} is there twice; allowed: each name once")
        protocol = _protocol(name, config)
        found[name] = Listener(name, host, port, host or socket.getfqdn(), port, protocol)
    if not found:
        text = ",".join(config.listeners)
        raise ConfigError(f"listeners={text}: nothing to listen on; allowed: NAME://host:port")
    for text in config.advertised_listeners or ():
        name, host, port = _parse("advertised.listeners", text)
        if name in controllers:
            continue
        if name not in found:
            raise ConfigError(f"advertised.listeners={text}: no such listener; allowed: {', '.join(found)}")
        if not host or host == "0.0.0.0":
            raise ConfigError(
                f"advertised.listeners={text}: clients cannot connect to it; allowed: a host's name"
            )
        found[name] = replace(found[name], advertised_host=host, advertised_port=port)
    return list(found.values())


def _parse(key: str, text: str) -> tuple[str, str, int]:
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 <= int(match["port"]) <= 65535:
        raise ConfigError(f"{key}={text}: not an address; allowed: NAME://host:port, port 0 to 65535")
    return match["name"].upper(), match["host"].strip("[]"), int(match["port"])


def _protocol(name: str, config: BrokerConfig) -> str:
    pairs = config.listener_security_protocol_map
    protocols = dict(pair.upper().split(":", 1) for pair in pairs if ":" in pair)
    protocol = protocols.get(name)
    if protocol is None:
        raise ConfigError(
            f"listener.security.protocol.map={','.join(config.listener_security_protocol_map)}: "
            f"listener {name} is not in it; allowed: {name}:PLAINTEXT beside the others"
        )
    if protocol not in SECURITY_PROTOCOLS:
        raise ConfigError(
            f"listener.security.protocol.map={name}:{protocol}: unknown; "
            f"allowed: {', '.join(SECURITY_PROTOCOLS)}"
        )
    return protocol
