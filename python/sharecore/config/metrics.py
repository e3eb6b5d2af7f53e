"""Settings of metrics and health."""

from __future__ import annotations

from dataclasses import dataclass

from sharecore.config.address import parse_address
from sharecore.config.keys import Kind, setting


def check_metrics_listener(text: str) -> None:
    """empty, or an address as host:port"""
    if text:
        parse_address(text)


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class MetricsSettings:
    """Where the broker tells about itself."""

    sharecore_metrics_listener: str = setting(
        Kind.STRING,
        "",
        "Address of /metrics, /healthz and /readyz, as host:port, for whoever can reach it; empty: none.",
        check=check_metrics_listener,
    )
    sharecore_metrics_connections_max: int = setting(
        Kind.INT,
        32,
        "Connections for metrics and health at a time; for a further one the oldest that waits for no answer "
        "is closed.",
        low=1,
    )
    sharecore_metrics_request_max_bytes: int = setting(
        Kind.INT, 8192, "Bytes of the line and the headers of a request for metrics or health.", low=1024
    )
    sharecore_metrics_request_timeout_ms: int = setting(
        Kind.INT,
        5000,
        "A connection for metrics or health that brings no whole request, or does not read the answer, for "
        "so long is closed.",
        low=100,
    )
    sharecore_metrics_series_max: int = setting(
        Kind.INT,
        1000,
        "Share partitions, and topics of groups, with series of their own: of each at most so many.",
        low=0,
    )
    sharecore_telemetry_enable: bool = setting(
        Kind.BOOLEAN,
        False,
        "Whether clients are asked for their metrics (KIP-714), which /metrics then has.",
    )
    telemetry_max_bytes: int = setting(
        Kind.INT,
        1_048_576,
        "Bytes of one push of a client's metrics, at most; they may expand to eight times that.",
        low=1,
    )
    sharecore_telemetry_instances_max: int = setting(
        Kind.INT,
        16_384,
        "Clients whose metrics are kept; a further one takes the place of who was heard least lately.",
        low=1,
    )
    sharecore_telemetry_series_max: int = setting(
        Kind.INT,
        20_000,
        "Series of clients' metrics, of all clients together.",
        low=0,
    )
    sharecore_telemetry_client_series_max: int = setting(
        Kind.INT,
        1000,
        "Series of one client's metrics.",
        low=0,
    )
