"""Connection limits from the settings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from sharecore.broker.served import PIPELINED, as_bits
from sharecore.config import BrokerConfig, per_ip_overrides
from sharecore.errors import ConfigUnavailable
from sharecore.network import Limits, ListenerLimits
from sharecore.rates import Window
from sharecore.waiting import HostAddresses

_IO_THREADS_MAX = 4
"""Default bound of `sharecore.io.threads`: more have not been measured."""


def connection_limits(config: BrokerConfig, listeners: Iterable[str], addresses: Mapping[str, str]) -> Limits:
    """Return the configured limits.

    Args:
        config: the settings.
        listeners: the listener names.
        addresses: addresses of the hosts of `max.connections.per.ip.overrides`; others have no override yet.
    """
    each = {name: config.for_listener(name) for name in listeners}
    overrides = per_ip_overrides(config.max_connections_per_ip_overrides)
    return Limits(
        frame_bytes_max=config.socket_request_max_bytes,
        pipeline_max=config.sharecore_connection_max_pipelined_requests,
        pipelined=as_bits(PIPELINED),
        write_buffer_bytes_max=config.sharecore_connection_max_unread_bytes,
        send_buffer_bytes=config.socket_send_buffer_bytes,
        io_threads=config.sharecore_io_threads or min(_cpus(), _IO_THREADS_MAX),
        request_bytes_max=config.queued_max_request_bytes,
        answer_bytes_max=config.sharecore_max_unread_bytes,
        connections_max=config.max_connections,
        connections_max_per_ip=config.max_connections_per_ip,
        connections_max_of={addresses[host]: most for host, most in overrides.items() if host in addresses},
        creation_rate_max=config.max_connection_creation_rate,
        listeners={
            name: ListenerLimits(own.max_connections, own.max_connection_creation_rate)
            for name, own in each.items()
        },
        window=Window(config.quota_window_num, config.quota_window_size_seconds * 1000),
        idle_ms_max=config.connections_max_idle_ms,
        handshake_ms_max=config.sharecore_handshake_timeout_ms,
        handshakes_max=config.sharecore_handshakes_max,
    )


async def check_hosts(hosts: HostAddresses, config: BrokerConfig) -> None:
    """Resolve the hosts of `max.connections.per.ip.overrides`; raise ConfigUnavailable if one has none."""
    for host in per_ip_overrides(config.max_connections_per_ip_overrides):
        if await hosts.find(host) is None:
            raise ConfigUnavailable(
                f"max.connections.per.ip.overrides: the host {host!r} has no address; "
                "name one that has, or an address"
            )


def _cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
