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
    """Where the broker listens and what one client may take of it."""

    listeners: tuple[str, ...] = setting(
        Kind.LIST, ("PLAINTEXT://localhost:9092",), "Addresses to listen on, as NAME://host:port."
    )
    advertised_listeners: tuple[str, ...] | None = setting(
        Kind.LIST, None, "Addresses that clients are told to use; the listeners when not set."
    )
    listener_security_protocol_map: tuple[str, ...] = setting(
        Kind.LIST,
        ("PLAINTEXT:PLAINTEXT", "SSL:SSL", "SASL_PLAINTEXT:SASL_PLAINTEXT", "SASL_SSL:SASL_SSL"),
        "Security protocol of each listener name.",
    )
    controller_listener_names: tuple[str, ...] = setting(
        Kind.LIST, (), "Listeners that are for Kafka's controllers; they are left out."
    )
    socket_request_max_bytes: int = setting(Kind.INT, 104857600, "Largest request that is read.", low=1)
    socket_send_buffer_bytes: int = setting(
        Kind.INT,
        524288,
        "Bytes of an answer that a connection's socket takes at a time; negative: as many as the operating "
        "system finds right. Less has other connections wait for less, more is faster over long distances. "
        "Kafka's default is 102400.",
    )
    socket_listen_backlog_size: int = setting(
        Kind.INT, 50, "Connections that may wait to be accepted.", low=1
    )
    max_connections: int = setting(
        Kind.INT, 2147483647, "Connections in all.", low=0, dynamic=Dynamic.CLUSTER_WIDE
    )
    max_connections_per_ip: int = setting(
        Kind.INT, 2147483647, "Connections from one address.", low=0, dynamic=Dynamic.CLUSTER_WIDE
    )
    max_connections_per_ip_overrides: str = setting(
        Kind.STRING,
        "",
        "Connections from one address, for single addresses: host:number, with commas between.",
        check=per_ip_overrides,
        dynamic=Dynamic.CLUSTER_WIDE,
    )
    max_connection_creation_rate: int = setting(
        Kind.INT, 2147483647, "New connections a second; more wait.", low=0, dynamic=Dynamic.CLUSTER_WIDE
    )
    quota_window_num: int = setting(
        Kind.INT, 11, "Samples that rates are measured over which clients have quotas of.", low=1
    )
    quota_window_size_seconds: int = setting(Kind.INT, 1, "Length of such a sample.", low=1)
    controller_quota_window_num: int = setting(
        Kind.INT, 11, "Samples whose changes of topics a client may make at a time.", low=1
    )
    controller_quota_window_size_seconds: int = setting(Kind.INT, 1, "Length of such a sample.", low=1)
    connections_max_idle_ms: int = setting(
        Kind.LONG, 600000, "A connection that is silent for so long is closed; negative: never."
    )
    queued_max_request_bytes: int = setting(
        Kind.LONG,
        134217728,
        "Bytes of requests that may be in memory at a time; negative: no bound. Kafka's default is none. "
        "A user, or an address without one, has half of it at most; clients that have not said who they are "
        "share a sixteenth of as much again.",
    )
    sharecore_max_unread_bytes: int = setting(
        Kind.LONG,
        134217728,
        "Bytes of answers that may wait for their clients to read them; negative: no bound. A user, or an "
        "address without one, has half of it at most. Beyond, answers with records wait.",
    )
    sharecore_fetch_sessions_bytes_max: int = setting(
        Kind.LONG,
        67108864,
        "Memory that the partitions of fetch sessions may take. A client whose session has no room fetches "
        "without one.",
        low=0,
    )
    sharecore_request_entries_max: int = setting(
        Kind.INT,
        250000,
        "Entries that the arrays of one request may have in all; a request with more closes its connection. "
        "Requests with more than 5,000 entries wait for each other beyond this number.",
        low=10000,
    )
    sharecore_connection_max_pipelined_requests: int = setting(
        Kind.INT, 64, "Requests of one connection that may wait for their answers at a time.", low=1
    )
    sharecore_connection_max_unread_bytes: int = setting(
        Kind.INT, 1048576, "Bytes of answers that may wait for one client to read them.", low=1
    )
