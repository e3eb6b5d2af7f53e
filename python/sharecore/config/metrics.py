"""Settings of metrics and health."""

from __future__ import annotations

from dataclasses import dataclass

from sharecore.config.address import parse_address
from sharecore.config.keys import Kind, setting


def check_metrics_listener(text: str) -> None:
    """empty, or an address as host:port"""
    if text:
        parse_address(text)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MetricsSettings:
    """Where the broker tells about itself."""

    sharecore_metrics_listener: str = setting(
        Kind.STRING,
        "",
        "Address of /metrics, /healthz and /readyz, as host:port, for whoever can reach it; empty: none.",
        check=check_metrics_listener,
    )
    sharecore_metrics_series_max: int = setting(
        Kind.INT,
        1000,
        "Share partitions, and topics of groups, with series of their own: of each at most so many.",
        low=0,
    )
