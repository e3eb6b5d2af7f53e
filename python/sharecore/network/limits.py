"""The bounds of the network layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sharecore.rates import Window


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """Bounds of one listener's connections.

    Args:
        connections_max: connections that are open.
        creation_rate_max: new ones a second.
    """

    connections_max: int = 2147483647
    creation_rate_max: int = 2147483647


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the network layer.

    Args:
        frame_bytes_max: largest request (socket.request.max.bytes).
        pipeline_max: requests of one connection that may wait for their answers at a time.
        pipelined: APIs whose requests may do so, as bits; of the others one waits at a time, and the next is
            handed on when its answer has been sent. None for all.
        write_buffer_bytes_max: bytes of answers that may wait for one client to read them.
        send_buffer_bytes: bytes of those that the operating system takes at a time, which no other client is
            served meanwhile (socket.send.buffer.bytes); negative: as many as it finds right.
        request_bytes_max: bytes of all requests in memory (queued.max.request.bytes); negative means no
            bound.
        answer_bytes_max: bytes of all answers that wait for their clients to read them
            (sharecore.max.unread.bytes); negative means no bound.
        connections_max: connections in all (max.connections).
        connections_max_per_ip: connections of one address (max.connections.per.ip).
        connections_max_of: the same for single addresses (max.connections.per.ip.overrides).
        creation_rate_max: new connections a second (max.connection.creation.rate).
        listeners: what single listeners may have of these.
        window: what rates are measured over.
        stalled_ms_max: when others wait for memory, a connection that does not go on with its request is
            closed after so long.
        unread_ms_max: when others wait for memory, a connection that does not read its answer is closed after
            so long.
        idle_ms_max: a connection that neither sends nor waits for so long is closed
            (connections.max.idle.ms).
        handshake_ms_max: a TLS handshake that takes longer is given up.
        handshakes_max: TLS handshakes under way.
    """

    frame_bytes_max: int = 104857600
    pipeline_max: int = 64
    pipelined: int | None = None
    write_buffer_bytes_max: int = 1048576
    send_buffer_bytes: int = -1
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
