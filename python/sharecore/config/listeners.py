"""Listeners: where to listen, and what clients are told."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, replace

from sharecore.config.broker import BrokerConfig
from sharecore.errors import ConfigError

_ADDRESS = re.compile(r"(?P<name>[A-Za-z0-9_]+)://(?P<host>\[[^\]]+\]|[^:\[\]]*):(?P<port>-?\d+)")
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True)
class Listener:
    """One address to listen on, and the address that clients are told.

    Args:
        name: the listener's name, in capitals.
        host: what to bind, empty for every address of the machine.
        port: what to bind; 0 lets the system choose.
        advertised_host: what clients are told.
        advertised_port: what clients are told; 0 means the port that is bound.
    """

    name: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int


def listeners_of(config: BrokerConfig) -> list[Listener]:
    """The listeners of a configuration, without those of Kafka's controllers.

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
        _check_protocol(name, config)
        found[name] = Listener(name, host, port, host or socket.getfqdn(), port)
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


def _check_protocol(name: str, config: BrokerConfig) -> None:
    pairs = config.listener_security_protocol_map
    protocols = dict(pair.upper().split(":", 1) for pair in pairs if ":" in pair)
    protocol = protocols.get(name)
    if protocol is None:
        raise ConfigError(
            f"listener.security.protocol.map={','.join(config.listener_security_protocol_map)}: "
            f"listener {name} is not in it; allowed: {name}:PLAINTEXT beside the others"
        )
    if protocol not in _PROTOCOLS:
        raise ConfigError(f"listener.security.protocol.map={name}:{protocol}: unknown; allowed: PLAINTEXT")
    if protocol != "PLAINTEXT":
        raise ConfigError(
            f"listener.security.protocol.map={name}:{protocol}: this broker speaks no TLS or SASL yet; "
            "allowed: PLAINTEXT"
        )
