"""Settings of listeners, connections and memory."""

from __future__ import annotations

from dataclasses import dataclass

from sharecore.config.keys import Dynamic, Kind, setting


def per_ip_overrides(text: str) -> dict[str, int]:
    """Return the connections that a host may have, by host: host:number, with commas between."""
    found = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        host, _, number = pair.rpartition(":")
        if not host or not number.strip().isdecimal():
            raise ValueError(f"{pair!r} is not a host and a number")
        found[host.strip().strip("[]")] = int(number)
    return found


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class NetworkSettings:
    """Settings of listeners, and limits of a client."""

    listeners: tuple[str, ...] = setting(
        Kind.LIST, ("PLAINTEXT://localhost:9092",), "Addresses to listen on, as NAME://host:port."
    )
    advertised_listeners: tuple[str, ...] | None = setting(
        Kind.LIST, None, "Addresses given to clients; defaults to the listeners."
    )
    listener_security_protocol_map: tuple[str, ...] = setting(
        Kind.LIST,
        ("PLAINTEXT:PLAINTEXT", "SSL:SSL", "SASL_PLAINTEXT:SASL_PLAINTEXT", "SASL_SSL:SASL_SSL"),
        "Security protocol of each listener, by name.",
    )
    controller_listener_names: tuple[str, ...] = setting(
        Kind.LIST, (), "Listeners for Kafka's controllers; they are ignored."
    )
    socket_request_max_bytes: int = setting(Kind.INT, 104857600, "Maximum size of a request.", low=1)
    socket_send_buffer_bytes: int = setting(
        Kind.INT,
        524288,
        "Send buffer of a connection's socket; negative: sized by the operating system. A smaller buffer "
        "shortens waits of other connections, a larger one is faster over long distances. Kafka's default "
        "is 102400.",
    )
    socket_listen_backlog_size: int = setting(
        Kind.INT,
        1024,
        "Maximum number of connections waiting to be accepted; the client of another one tries again after a "
        "second. Kafka's default is 50.",
        low=1,
    )
    max_connections: int = setting(
        Kind.INT, 2147483647, "Maximum number of connections.", low=0, dynamic=Dynamic.CLUSTER_WIDE
    )
    max_connections_per_ip: int = setting(
        Kind.INT,
        2147483647,
        "Maximum number of connections from one address.",
        low=0,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    max_connections_per_ip_overrides: str = setting(
        Kind.STRING,
        "",
        "Overrides of max.connections.per.ip, as comma-separated host:number pairs.",
        check=per_ip_overrides,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    max_connection_creation_rate: int = setting(
        Kind.INT,
        2147483647,
        "Maximum new connections per second; more wait.",
        low=0,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    quota_window_num: int = setting(Kind.INT, 11, "Number of samples kept for client quotas.", low=1)
    quota_window_size_seconds: int = setting(
        Kind.INT, 1, "Length of a sample for controller mutation quotas.", low=1
    )
    controller_quota_window_num: int = setting(
        Kind.INT, 11, "Number of samples kept for controller mutation quotas.", low=1
    )
    controller_quota_window_size_seconds: int = setting(
        Kind.INT, 1, "Length of a sample for controller mutation quotas.", low=1
    )
    connections_max_idle_ms: int = setting(
        Kind.LONG, 600000, "Close connections idle for this long; negative: never."
    )
    queued_max_request_bytes: int = setting(
        Kind.LONG,
        134217728,
        "Maximum bytes of requests in memory; negative: unlimited, as Kafka's default. A user (an address "
        "before login) gets at most half. Clients before login share an additional sixteenth.",
    )
    sharecore_max_unread_bytes: int = setting(
        Kind.LONG,
        134217728,
        "Maximum bytes of unread answers; negative: unlimited. A user (an address before login) gets at "
        "most half. Beyond it, answers with records wait.",
    )
    sharecore_fetch_sessions_bytes_max: int = setting(
        Kind.LONG,
        67108864,
        "Memory for the partitions of fetch sessions. Beyond it, clients fetch without a session.",
        low=0,
    )
    sharecore_request_entries_max: int = setting(
        Kind.INT,
        250000,
        "Maximum number of array entries in a request; a request with more closes its connection. It also "
        "bounds the entries of all concurrent requests that have more than 5,000.",
        low=10000,
    )
    sharecore_io_threads: int = setting(
        Kind.INT,
        0,
        "Threads that write to sockets; 0: one per CPU, up to 4. If many clients have an answer at once, "
        "threads beside the event loop's send them. They start when needed. Connections with TLS use one.",
        low=0,
        high=64,
    )
    sharecore_loop_commit_clients_max: int = setting(
        Kind.INT,
        16,
        "If the event loop serves at most this many clients in a turn, and commits have lately taken less "
        "than 0.3 ms, it writes to the disk by itself instead of waking a thread: with "
        "sharecore.durability=fsync only for one client, with bucket and for connections with TLS never. "
        "0: never.",
        low=0,
        high=1024,
    )
    sharecore_connection_max_pipelined_requests: int = setting(
        Kind.INT, 64, "Maximum number of unanswered requests of one connection.", low=1
    )
    sharecore_connection_max_unread_bytes: int = setting(
        Kind.INT, 1048576, "Maximum bytes of answers that one client has not read.", low=1
    )
