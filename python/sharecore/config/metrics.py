"""Settings of metrics and health."""

from __future__ import annotations

from dataclasses import dataclass

from sharecore.config.address import parse_address
from sharecore.config.keys import Kind, setting


def check_metrics_listener(text: str) -> None:
    """Allow empty, or an address as host:port"""
    if text:
        parse_address(text)


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class MetricsSettings:
    """Settings of metrics."""

    sharecore_metrics_listener: str = setting(
        Kind.STRING,
        "",
        "Address of /metrics, /healthz and /readyz as host:port, without access control; empty: off.",
        check=check_metrics_listener,
    )
    sharecore_metrics_connections_max: int = setting(
        Kind.INT,
        32,
        "Maximum number of connections to metrics and health; beyond it the oldest idle one is closed.",
        low=1,
    )
    sharecore_metrics_request_max_bytes: int = setting(
        Kind.INT, 8192, "Maximum size of request line and headers for metrics or health.", low=1024
    )
    sharecore_metrics_request_timeout_ms: int = setting(
        Kind.INT,
        5000,
        "Close connections to metrics and health that do not finish a request, or do not read the answer, "
        "in this time.",
        low=100,
    )
    sharecore_metrics_series_max: int = setting(
        Kind.INT,
        1000,
        "Maximum number of share partitions, and of topics of groups, with their own series.",
        low=0,
    )
    sharecore_telemetry_enable: bool = setting(
        Kind.BOOLEAN,
        False,
        "Whether clients are asked for their metrics (KIP-714), which are exported on /metrics.",
    )
    telemetry_max_bytes: int = setting(
        Kind.INT,
        1_048_576,
        "Maximum size of one push of client metrics; decompressed at most eight times that.",
        low=1,
    )
    sharecore_telemetry_instances_max: int = setting(
        Kind.INT,
        16_384,
        "Maximum number of clients with metrics; a further one replaces the one silent longest.",
        low=1,
    )
    sharecore_telemetry_series_max: int = setting(
        Kind.INT,
        20_000,
        "Maximum number of series of all clients' metrics.",
        low=0,
    )
    sharecore_telemetry_client_series_max: int = setting(
        Kind.INT,
        1000,
        "Maximum number of series of one client's metrics.",
        low=0,
    )
