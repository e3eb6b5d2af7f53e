"""Limits of the network layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sharecore.rates import Window


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """Limits on one listener's connections.

    Args:
        connections_max: maximum number of open connections.
        creation_rate_max: maximum new connections per second.
    """

    connections_max: int = 2147483647
    creation_rate_max: int = 2147483647


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the network layer.

    Args:
        frame_bytes_max: maximum request size (socket.request.max.bytes).
        pipeline_max: maximum concurrent requests of one connection.
        pipelined: APIs with concurrent requests, as bits; requests of others are dispatched one at a time.
            None for all.
        write_buffer_bytes_max: maximum unread answer bytes of one client.
        send_buffer_bytes: bytes passed to the operating system at a time, during which no other client is
            served (socket.send.buffer.bytes); negative for its default.
        io_threads: threads that may write to sockets, the loop's included (sharecore.io.threads).
        request_bytes_max: maximum bytes of all requests in memory (queued.max.request.bytes); negative for no
            limit.
        answer_bytes_max: maximum bytes of all unread answers (sharecore.max.unread.bytes); negative for no
            limit.
        connections_max: maximum connections in total (max.connections).
        connections_max_per_ip: maximum connections of one address (max.connections.per.ip).
        connections_max_of: overrides for single addresses (max.connections.per.ip.overrides).
        creation_rate_max: maximum new connections per second (max.connection.creation.rate).
        listeners: limits of single listeners.
        window: window of rate measurements.
        stalled_ms_max: time after which a stalled request is closed while others wait for memory.
        unread_ms_max: time after which a client that does not read is closed while others wait for memory.
        idle_ms_max: time after which an idle connection is closed (connections.max.idle.ms).
        handshake_ms_max: TLS handshake timeout.
        handshakes_max: maximum number of pending TLS handshakes.
    """

    frame_bytes_max: int = 104857600
    pipeline_max: int = 64
    pipelined: int | None = None
    write_buffer_bytes_max: int = 1048576
    send_buffer_bytes: int = -1
    io_threads: int = 1
    request_bytes_max: int = -1
    answer_bytes_max: int = -1
    connections_max: int = 2147483647
    connections_max_per_ip: int = 2147483647
    connections_max_of: Mapping[str, int] = field(default_factory=dict)
    creation_rate_max: int = 2147483647
    listeners: Mapping[str, ListenerLimits] = field(default_factory=dict)
    window: Window = field(default_factory=Window)
    idle_ms_max: int = 600000
    stalled_ms_max: int = 150
    unread_ms_max: int = 1000
    handshake_ms_max: int = 10000
    handshakes_max: int = 1000
